"""Whatever the database's encoding and the role's settings, records are UTF-8 and read the same."""

from __future__ import annotations

import re
from typing import Any, Iterator

import psycopg
import pytest

from kit.lab import OUTBOX_SQL, TABLE, Lab
from kit.relay import Config
from kit.rows import EVENTS, arrival, insert, make_table, section

LATIN1_TEXT = "café ÿ × \xa0\x80"
CONFIG_EXIT, POISON_EXIT = 78, 65


class Other:
    """A database of another encoding, with the outbox table and the lab's slot."""

    def __init__(self, lab: Lab, encoding: str) -> None:
        self.lab = lab
        self.name = f"{lab.db}_{encoding.lower()}"
        lab.postgres.create_database(self.name, encoding, "C")
        lab.postgres.psql(self.name, OUTBOX_SQL)
        self.conn = lab.postgres.connect(self.name, client_encoding="UTF8")
        self.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [lab.slot])

    def changes(self, more: Config | None = None) -> dict[str, dict[str, str]]:
        return {"postgres": {"dsn": self.lab.postgres.dsn(self.name)}, **{k: dict(v) for k, v in (more or {}).items()}}

    def insert_bytes(self, payload: bytes, key: bytes = b"k") -> str:
        """Insert text given as bytes of the database's encoding; commits at once."""
        row = self.conn.execute(
            f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, payload)"
            f" VALUES ('order', {escaped(key)}, {escaped(payload)}) RETURNING id::text"
        ).fetchone()
        assert row is not None
        self.lab.checker.commit(row[0])
        return str(row[0])

    def close(self) -> None:
        for relay in self.lab.relays:
            relay.kill()
        self.conn.close()
        self.lab.postgres.drop_database(self.name)


def escaped(text: bytes) -> str:
    """These bytes as a literal of SQL."""
    return "E'" + "".join(f"\\x{byte:02x}" for byte in text) + "'"


@pytest.fixture(autouse=True)
def topic(lab: Lab) -> str:
    return lab.topic("order")


@pytest.fixture
def other(lab: Lab, request: pytest.FixtureRequest) -> Iterator[Other]:
    place = Other(lab, request.param)
    yield place
    place.close()


def text_payload(other: Other) -> None:
    other.conn.execute(f"ALTER TABLE {TABLE} ALTER payload TYPE text")


# ---------------------------------------------------------- single-byte encodings


@pytest.mark.parametrize("other", ["LATIN1"], indirect=True)
def test_a_latin1_database_is_converted_to_utf8_A18(lab: Lab, other: Other) -> None:
    text_payload(other)
    other.conn.execute(f'ALTER TABLE {TABLE} ADD "naïve" text')
    lab.running_relay(other.changes({f"table {TABLE}": {"headers": "naïve:x-naive, naïve"}}))
    values = {"aggregate_type": "order", "aggregate_id": LATIN1_TEXT, "payload": LATIN1_TEXT, "naïve": "ï"}
    record = arrival(lab, insert(lab, TABLE, other.conn, **values))
    assert (record.key, record.value) == (LATIN1_TEXT.encode(), LATIN1_TEXT.encode())
    assert record.headers[1:] == (("x-naive", "ï".encode()), ("naïve", "ï".encode()))


@pytest.mark.parametrize("other", ["LATIN1"], indirect=True)
def test_bytea_of_a_latin1_database_is_not_converted_A18_A19(lab: Lab, other: Other) -> None:
    other.conn.execute(f"ALTER TABLE {TABLE} ALTER payload TYPE bytea USING NULL")
    lab.running_relay(other.changes())
    event = insert(lab, TABLE, other.conn, aggregate_type="order", aggregate_id="ÿ", payload=bytes(range(256)))
    record = arrival(lab, event)
    assert (record.key, record.value) == ("ÿ".encode(), bytes(range(256)))


@pytest.mark.parametrize("other", ["WIN1251"], indirect=True)
def test_every_character_of_win1251_arrives_A18(lab: Lab, other: Other) -> None:
    text_payload(other)
    lab.running_relay(other.changes())
    characters = bytes(byte for byte in range(1, 256) if byte != 0x98)  # 0x98 is none
    record = arrival(lab, other.insert_bytes(characters))
    assert record.value == characters.decode("cp1251").encode()


# ---------------------------------------------------------------------- SQL_ASCII


@pytest.mark.parametrize("other", ["SQL_ASCII"], indirect=True)
def test_a_sql_ascii_database_is_read_until_a_value_is_not_utf8_A18(lab: Lab, other: Other) -> None:
    text_payload(other)
    relay = lab.running_relay(other.changes())
    good = other.insert_bytes("café 😀".encode(), "ÿ".encode())
    bad = other.insert_bytes(b"caf\xe9")
    lab.checker.committed.pop(bad)
    assert relay.wait_exit() == POISON_EXIT
    line = relay.wait_for_log(r"^.*column payload is not valid UTF-8.*$").group()
    assert bad in line and TABLE in line and "LSN" in line and "caf" not in line
    record = arrival(lab, good)
    assert (record.key, record.value) == ("ÿ".encode(), "café 😀".encode())


@pytest.mark.parametrize("other", ["SQL_ASCII"], indirect=True)
def test_columns_that_are_not_published_need_not_be_utf8_A18(lab: Lab, other: Other) -> None:
    other.conn.execute(f"ALTER TABLE {TABLE} ADD note text")
    lab.running_relay(other.changes())
    other.conn.execute(f"ALTER TABLE {TABLE} ALTER note SET DEFAULT E'\\xe9\\xff'")
    assert arrival(lab, insert(lab, TABLE, other.conn, aggregate_type="order", payload="{}")).value == b"{}"


@pytest.mark.parametrize("other", ["EUC_JP"], indirect=True)
def test_other_encodings_of_many_bytes_end_the_relay_at_its_start_A18(lab: Lab, other: Other) -> None:
    relay = lab.relay(other.changes())
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    assert re.search("encoding EUC_JP is not supported", relay.log_text())


# ------------------------------------------------- settings of role and database

SETTINGS = {
    "bytea_output": "escape",
    "datestyle": "SQL, DMY",
    "intervalstyle": "iso_8601",
    "timezone": "Asia/Kathmandu",
    "extra_float_digits": "-15",
    "client_encoding": "LATIN1",
    "xmlbinary": "hex",
    "standard_conforming_strings": "off",
    "lc_monetary": "C",
}


def settled(conn: "psycopg.Connection[Any]", subject: str) -> None:
    for name, value in SETTINGS.items():
        conn.execute(f"ALTER {subject} SET {name} = '{value}'")


@pytest.mark.parametrize("where", ["database", "role", "dsn"])
def test_settings_of_role_database_and_dsn_do_not_change_what_arrives(lab: Lab, where: str) -> None:
    make_table(lab, "payload bytea, raw bytea, at timestamptz, span interval, f float8, word text")
    changes: dict[str, dict[str, str]] = section(lab, headers="raw, at, span, f, word", timestamp="at")
    role = f"{lab.db}_role"
    lab.conn.execute(f"CREATE ROLE {role} LOGIN SUPERUSER REPLICATION PASSWORD 'pw'")
    dsn = lab.postgres.dsn(lab.db, user=role, password="pw")
    try:
        if where == "dsn":
            options = [f"-c {name}={value}".replace(", ", ",\\ ") for name, value in SETTINGS.items()]
            dsn = lab.postgres.dsn(lab.db, options=" ".join(options))
        else:
            settled(lab.conn, f"DATABASE {lab.db}" if where == "database" else f"ROLE {role}")
        lab.running_relay({**changes, "postgres": {"dsn": dsn}})
        event = insert(
            lab, EVENTS, payload=bytes.fromhex("deadbeef5c"), raw=b"\\\x00", at="2026-01-02 03:04:05.678+00",
            span="1 year 2 days 03:04:05", f="0.1234567890123456", word="é\\",
        )  # fmt: skip
        record = arrival(lab, event)
    finally:
        lab.relays[0].kill()
        lab.conn.execute(f"DROP ROLE {role}")
    assert record.value == bytes.fromhex("deadbeef5c")
    assert dict(record.headers[2:]) == {
        "raw": b"\\\x00",
        "at": b"2026-01-02 03:04:05.678+00",
        "span": b"1 year 2 days 03:04:05",
        "f": b"0.1234567890123456",
        "word": "é\\".encode(),
    }
    assert record.timestamp_ms == 1767323045678
