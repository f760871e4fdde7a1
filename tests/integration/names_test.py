"""Names and passwords with special characters, from the configuration to the stream."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Iterator
from urllib.parse import quote

import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from kit.lab import OUTBOX_SQL, TABLE, Lab
from kit.relay import Relay
from kit.rows import arrivals, insert, section

PASSWORD = "p@ss:w/o rd'\\%&=#"
USER = 'we"ird'
DENIED_EXIT, CONFIG_EXIT = 77, 78


class Odd:
    """A database `… My Db` with the outbox table and the lab's slot, and the role that may read it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.user = f"{USER} {lab.db}"
        self.name = f"{lab.db} My Db"
        lab.postgres.create_database(self.name)
        lab.postgres.psql(self.name, OUTBOX_SQL)
        self.conn = lab.postgres.connect(self.name)
        self.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [lab.slot])
        self.conn.execute(
            sql.SQL("CREATE ROLE {} LOGIN REPLICATION PASSWORD {}").format(sql.Identifier(self.user), PASSWORD)
        )

    @property
    def parts(self) -> dict[str, Any]:
        return {"host": "127.0.0.1", "port": self.lab.postgres.port, "user": self.user, "dbname": self.name}

    def relay(self, dsn: str, env: "dict[str, str] | None" = None) -> Relay:
        return self.lab.relay({"postgres": {"dsn": dsn}, "relay": {"log_level": "debug"}}, env=env)

    def close(self) -> None:
        for relay in self.lab.relays:
            relay.kill()
        self.conn.close()
        self.lab.postgres.drop_database(self.name)
        self.lab.conn.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(self.user)))


@pytest.fixture
def odd(lab: Lab) -> Iterator[Odd]:
    place = Odd(lab)
    yield place
    place.close()


def in_uri(odd: Odd) -> "tuple[str, dict[str, str]]":
    user, password, database = (quote(part, safe="") for part in (odd.user, PASSWORD, odd.name))
    return f"postgresql://{user}:{password}@127.0.0.1:{odd.lab.postgres.port}/{database}", {}


def in_key_words(odd: Odd) -> "tuple[str, dict[str, str]]":
    return make_conninfo(password=PASSWORD, **odd.parts), {}


def in_password_file(odd: Odd) -> "tuple[str, dict[str, str]]":
    file = odd.lab.directory / "pgpass"
    file.touch(mode=0o600)
    file.write_text("*:*:*:*:" + PASSWORD.replace("\\", "\\\\").replace(":", "\\:") + "\n")
    return make_conninfo(**odd.parts), {"PGPASSFILE": str(file)}


def in_environment(odd: Odd) -> "tuple[str, dict[str, str]]":
    host, port, user, name = (str(odd.parts[key]) for key in ("host", "port", "user", "dbname"))
    variables = {"PGHOST": host, "PGPORT": port, "PGUSER": user, "PGDATABASE": name, "PGPASSWORD": PASSWORD}
    return "application_name=odd", variables


def in_secret_file(odd: Odd) -> "tuple[str, dict[str, str]]":
    file = odd.lab.directory / "dsn"
    file.touch(mode=0o600)
    file.write_text(in_key_words(odd)[0] + "\n")
    return "", {"WALRELAY_POSTGRES_DSN_FILE": str(file)}


def shows_password(relay: Relay) -> bool:
    """Is the password, or its encoded form, in the log or in what ps shows?"""
    shown = relay.log_text() + (Path(f"/proc/{relay.pid}/cmdline").read_text() if relay.running else "")
    return any(secret in shown for secret in (PASSWORD, quote(PASSWORD, safe=""), "p@ss", "o rd'"))


# --------------------------------------------------------- the connection string


@pytest.mark.parametrize("form", [in_uri, in_key_words, in_password_file, in_environment, in_secret_file])
def test_a_relay_streams_whatever_the_form_of_its_password_and_shows_it_nowhere_A12(
    lab: Lab, odd: Odd, form: Any
) -> None:
    lab.topic("order")
    dsn, env = form(odd)
    relay = odd.relay(dsn, env)
    relay.start()
    lab.wait_streaming(relay)
    event = insert(lab, TABLE, odd.conn, aggregate_type="order", aggregate_id="k", payload="{}")
    assert arrivals(lab, event)[0].value == b"{}"
    assert not shows_password(relay)
    assert relay.stop() == 0
    assert not shows_password(relay)


def test_a_connection_that_fails_does_not_show_its_password_A12(lab: Lab, odd: Odd) -> None:
    wrong = [({"dbname": "no such"}, "does not exist"), ({"user": "nobody"}, "nobody"), ({"sslmode": "require"}, "SSL")]
    for parts, words in wrong:
        relay = odd.relay(make_conninfo(password=PASSWORD, **{**odd.parts, **parts}))
        relay.start()
        relay.wait_for_log(rf"^\S+ (error|warning) .*{words}")
        assert not shows_password(relay)
        relay.kill()


def test_a_wrong_password_ends_the_relay_in_the_servers_words_A13(lab: Lab, odd: Odd) -> None:
    relay = odd.relay(make_conninfo(password="se/cret", **odd.parts))
    relay.start()
    assert relay.wait_exit() == DENIED_EXIT
    errors = re.findall(r"^\S+ error .*$", relay.log_text(), re.MULTILINE)
    assert len(errors) == 1 and "password authentication failed for user" in errors[0]
    assert "se/cret" not in relay.log_text()


# ------------------------------------------------------------------------- tables

TABLES = ['"Sales Dept"."Out box.v1"', '"a,b"."c*d"', '"quo\'te"."back\\slash"', '"日本"."表"', '"X"."x y"']
LONGEST = '"' + "n" * 63 + '"."' + "é" * 31 + '"'


def test_tables_with_odd_names_are_streamed_and_their_neighbours_are_not_A14(lab: Lab) -> None:
    kinds = [f"k{n}" for n in range(len(TABLES) + 1)]
    for kind in kinds:
        lab.topic(kind, partitions=1)
    changes: dict[str, dict[str, str]] = {}
    for name in [*TABLES, LONGEST, '"x"."x y"', '"a"."b"', '"Sales Dept"."Out box"']:
        lab.conn.execute(f"CREATE SCHEMA IF NOT EXISTS {name.split('.')[0]}")
        lab.conn.execute(f"CREATE TABLE {name} (LIKE {TABLE} INCLUDING ALL)")
        if name in (*TABLES, LONGEST):
            changes.update(section(lab, name))
    lab.running_relay(changes)
    for other in ('"x"."x y"', '"a"."b"', '"Sales Dept"."Out box"'):
        lab.conn.execute(f"INSERT INTO {other} (aggregate_type, event_type) VALUES ('k0', 'e')")
    ids = [
        insert(lab, name, aggregate_type=kind, aggregate_id="k", event_type="e", payload=f'"{kind}"')
        for name, kind in zip([*TABLES, LONGEST], kinds)
    ]
    records = arrivals(lab, *ids)
    assert [record.value for record in records] == [f'"{kind}"'.encode() for kind in kinds]
    lab.verify(duplicates=0)


def test_a_table_that_does_not_exist_ends_the_relay_with_the_nearest_name_A14(lab: Lab) -> None:
    lab.make_slot()
    relay = lab.relay(section(lab, '"public"."Outbox_Events"'))
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    error = relay.wait_for_log(r"^\S+ error .*$").group()
    assert f'table public."Outbox_Events" does not exist in this database, the nearest name is {TABLE}' in error
