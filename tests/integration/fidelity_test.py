"""What arrives in Kafka is what PostgreSQL shows, byte for byte."""

from __future__ import annotations

import pytest
from psycopg import sql

from kit.lab import TABLE, Lab
from kit.rows import EVENTS, arrival, arrivals, insert, make_table, section, stored

ODD_TEXT = "q\"'\\ \t\n\r\x01\x1f\x7f é ÿ 😀 \u2028 \ufeff \uffff {}[],:null"
ODD_COLUMN = 'we"ird\\col'
ODD_JSON = '{ "b":1.10,  "a":123456789012345678901234567890.123456789, "a":2, "z":-0, "e":1e400 }'


@pytest.fixture(autouse=True)
def topic(lab: Lab) -> str:
    return lab.topic("order")


# ------------------------------------------------------------------ text and JSON


def test_control_characters_quotes_and_emoji_arrive_in_key_value_and_headers_A15(lab: Lab) -> None:
    make_table(lab, sql.SQL('payload text, {} text').format(sql.Identifier(ODD_COLUMN)).as_string(lab.conn))
    lab.running_relay(section(lab, headers=ODD_COLUMN))
    values = {"aggregate_id": ODD_TEXT, "payload": ODD_TEXT * 3, "event_type": ODD_TEXT, ODD_COLUMN: ODD_TEXT}
    event = insert(lab, EVENTS, **values)
    record = arrival(lab, event)
    assert record.key == ODD_TEXT.encode()
    assert record.value == (ODD_TEXT * 3).encode()
    assert record.headers[1:] == (("type", ODD_TEXT.encode()), (ODD_COLUMN, ODD_TEXT.encode()))


@pytest.mark.parametrize("type_", ["text", "varchar", "json"])
def test_a_json_payload_with_an_escaped_nul_arrives_verbatim_A16(lab: Lab, type_: str) -> None:
    make_table(lab, f"payload {type_}")
    lab.running_relay(section(lab))
    written = '{"x":"a\\u0000b \\ud83d\\ude00 \\u0001\\"\\\\/"}'
    assert arrival(lab, insert(lab, EVENTS, payload=written)).value == written.encode()


def test_a_json_payload_keeps_spaces_digits_and_doubled_keys_A17(lab: Lab) -> None:
    make_table(lab, "payload json")
    lab.running_relay(section(lab))
    assert arrival(lab, insert(lab, EVENTS, payload=ODD_JSON)).value == ODD_JSON.encode()


def test_a_jsonb_payload_arrives_as_the_server_shows_it_A17(lab: Lab) -> None:
    lab.running_relay()
    event = insert(lab, payload=ODD_JSON, aggregate_type="order", aggregate_id="k")
    value = arrival(lab, event).value
    assert value == stored(lab, event, "payload", TABLE)
    assert b"1.10" in value and b"1e400" not in value


def test_null_the_json_null_and_empty_are_four_different_payloads_A20(lab: Lab) -> None:
    lab.kafka.alter_topic(lab.prefix + "order", cleanup_policy="compact")
    make_table(lab, "payload text")
    lab.running_relay(section(lab))
    payloads = [None, "null", "", "{}"]
    ids = [insert(lab, EVENTS, payload=payload) for payload in payloads]
    ids.append(insert(lab, payload="null", aggregate_type="order", aggregate_id="k", event_type="created"))
    records = arrivals(lab, *ids)
    assert [record.value for record in records] == [None, b"null", b"", b"{}", b"null"]
    assert all(record.key == b"k" and record.header("type") == b"created" for record in records)


# ------------------------------------------------------------------------- bytea


def test_a_bytea_payload_arrives_as_its_bytes_A19(lab: Lab) -> None:
    make_table(lab, "payload bytea")
    lab.running_relay(section(lab))
    payloads = [bytes.fromhex("deadbeef"), b"", bytes(1_000_000 - 1000), None, b"\\x41", bytes(range(256))]
    ids = [insert(lab, EVENTS, payload=payload) for payload in payloads]
    assert [record.value for record in arrivals(lab, *ids)] == payloads


def test_bytea_and_domains_over_it_serve_as_value_key_and_header_A19(lab: Lab) -> None:
    lab.conn.execute("CREATE DOMAIN raw AS bytea; CREATE DOMAIN rawer AS raw CHECK (length(VALUE) < 9)")
    make_table(lab, "payload rawer, body raw, trace bytea, name text")
    lab.running_relay(section(lab, key="body", headers="trace, name"))
    event = insert(lab, EVENTS, payload=b"\x00\xff", body=b"\xde\xad", trace=b"", name="beef")
    empty = insert(lab, EVENTS, payload=b"")
    record, nothing = arrivals(lab, event, empty)
    assert (record.value, record.key) == (b"\x00\xff", b"\xde\xad")
    assert record.headers[2:] == (("trace", b""), ("name", b"beef"))
    assert (nothing.value, nothing.key) == (b"", None)


# ----------------------------------------------------------------- other columns


def test_numbers_that_are_none_leave_their_header_out_A21(lab: Lab) -> None:
    make_table(lab, "payload jsonb, n numeric, f float8, r real")
    lab.running_relay(section(lab, headers="n, f, r"))
    rows = [("NaN", "NaN", "NaN"), ("Infinity", "-Infinity", "Infinity"), ("-0", "-0", "-0"), ("0.10", "1e-7", "1e30")]
    ids = [insert(lab, EVENTS, n=n, f=f, r=r) for n, f, r in rows]
    headers = [dict(record.headers[2:]) for record in arrivals(lab, *ids)]
    assert headers[:2] == [{}, {}]
    assert headers[2] == {"n": b"0", "f": b"-0", "r": b"-0"}
    assert headers[3] == {"n": b"0.10", "f": b"1e-07", "r": b"1e+30"}


DATES = ["infinity", "-infinity", "0044-03-15 10:00:00 BC", "294276-01-01 00:00:00", "1883-11-18 12:00:00.123456"]


def test_dates_beyond_every_calendar_arrive_as_text_A22(lab: Lab) -> None:
    make_table(lab, "payload jsonb, z timestamptz, t timestamp, d date, h time, hz timetz, i interval")
    lab.running_relay(section(lab, headers="z, t, d, h, hz, i"))
    times = {"h": "24:00:00", "hz": "12:00:00.5-04:56:02", "i": "-1 year 2 mons -3 days 04:05:06.7"}
    ids = [insert(lab, EVENTS, z=date, t=date, d=date, **times) for date in DATES]
    ids.append(insert(lab, EVENTS, z="1883-11-18 12:00 America/New_York"))
    records = arrivals(lab, *ids)
    for event, record in zip(ids, records):
        for column, value in record.headers[2:]:
            assert value == stored(lab, event, column), column
    assert [len(record.headers) for record in records] == [8] * 5 + [3]
    assert records[5].header("z") == b"1883-11-18 17:00:00+00"


def test_ids_of_64_bits_keep_every_digit_A23(lab: Lab) -> None:
    lab.conn.execute(f"CREATE TABLE {EVENTS} (id bigint, aggregate_type text, aggregate_id bigint, payload text)")
    lab.running_relay(section(lab, type=""))
    ids = ["9223372036854775807", "9007199254740993", "-1", "-9223372036854775808"]
    for number in ids:
        insert(lab, EVENTS, id=number, aggregate_type="order", aggregate_id=number)
    assert [record.key for record in arrivals(lab, *ids)] == [number.encode() for number in ids]


def test_a_uuid_arrives_in_its_canonical_form_A23(lab: Lab) -> None:
    lab.running_relay()
    given = "A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11"
    assert insert(lab, id=given, aggregate_type="order") == given.lower()
    assert arrival(lab, given.lower()).header("id") == given.lower().encode()


def test_columns_of_every_kind_arrive_as_their_text_A24(lab: Lab) -> None:
    lab.conn.execute(
        "CREATE TYPE mood AS ENUM ('so so', 'o\"k'); CREATE DOMAIN positive AS numeric CHECK (VALUE > 0);"
        " CREATE TYPE pair AS (a int, b text)"
    )
    columns = {
        "numbers": ("int[]", "{1,NULL,3}"),
        "words": ("text[]", '{"a b",NULL,"q\\"\\\\",""}'),
        "feeling": ("mood", 'o"k'),
        "amount": ("positive", "1.50"),
        "couple": ("pair", '(1,"x, ""y""")'),
        "price": ("money", "$1,234.50"),
        "span": ("interval", "1 mon 2 days"),
        "days": ("daterange", "[2026-01-01,2026-02-01)"),
        "flag": ("boolean", "true"),
        "bits": ("bit varying", "0101"),
        "net": ("inet", "10.0.0.1/8"),
        "small": ("smallint", "-7"),
        "padded": ("char(5)", "ab"),
        "doc": ("xml", "<a b='c'/>"),
    }
    make_table(
        lab, "payload jsonb, " + ", ".join(f"{name} {type_}" for name, (type_, _) in columns.items())
        + ", doubled int GENERATED ALWAYS AS (small * 2) STORED",
    )  # fmt: skip
    lab.running_relay(section(lab, headers=", ".join([*columns, "doubled"])))
    event = insert(lab, EVENTS, **{name: value for name, (_, value) in columns.items()})
    headers = dict(arrival(lab, event).headers[2:])
    assert headers.pop("padded") == b"ab   "  # ::text would strip it
    assert headers == {name: stored(lab, event, name) for name in [*columns, "doubled"] if name != "padded"}
    assert headers["numbers"] == b"{1,NULL,3}" and headers["doubled"] == b"-14"


# ------------------------------------------------------------ columns that change


def test_columns_are_found_by_name_in_each_row_A25(lab: Lab) -> None:
    lab.conn.execute(
        f"CREATE TABLE {EVENTS} (payload jsonb, event_type text, aggregate_id text, aggregate_type text, id text)"
    )
    row = {"aggregate_type": "order", "aggregate_id": "k", "event_type": "e"}
    lab.conn.execute(f"ALTER TABLE {EVENTS} ADD trace text")
    relay = lab.running_relay(section(lab, headers="trace"))
    with lab.conn.transaction():
        lab.conn.execute(f"ALTER TABLE {EVENTS} DROP trace")
        insert(lab, EVENTS, id="1", payload='{"n": 1}', **row)
        lab.conn.execute(f"ALTER TABLE {EVENTS} ADD trace text DEFAULT 'd'")
        insert(lab, EVENTS, id="2", payload='{"n": 2}', **row)
        lab.conn.execute(f"ALTER TABLE {EVENTS} DROP event_type; ALTER TABLE {EVENTS} ADD event_type text")
        insert(lab, EVENTS, id="3", payload='{"n": 3}', **row)
    records = arrivals(lab, "1", "2", "3")
    assert [record.value for record in records] == [b'{"n": 1}', b'{"n": 2}', b'{"n": 3}']
    assert [dict(record.headers).get("trace") for record in records] == [None, b"d", b"d"]
    assert [record.header("type") for record in records] == [b"e"] * 3
    assert relay.running


def test_a_row_without_a_needed_column_stops_the_relay_and_is_named_A25(lab: Lab) -> None:
    relay = lab.running_relay()
    kept = insert(lab, payload="{}", aggregate_type="order", aggregate_id="k")
    with lab.conn.transaction():
        lab.conn.execute(f"ALTER TABLE {TABLE} DROP payload")
        event = lab.conn.execute(f"INSERT INTO {TABLE} (aggregate_type) VALUES ('order') RETURNING id::text").fetchone()
    assert event is not None
    assert relay.wait_exit() == 65
    line = relay.wait_for_log(r"^.*the row has no column payload.*$").group()
    assert TABLE in line and event[0] in line and "LSN" in line
    assert arrival(lab, kept).value == b"{}"


# ----------------------------------------------------------------- header weight


def test_headers_count_in_the_size_of_a_record_A26(lab: Lab) -> None:
    make_table(lab, "payload text, trace text")
    changes = section(lab, headers="trace")
    relay = lab.running_relay(changes)
    kept = insert(lab, EVENTS, payload="before")
    large = insert(lab, EVENTS, payload="p" * 200_000, trace="t" * 900_000)
    after = insert(lab, EVENTS, payload="after")
    assert relay.wait_exit() == 65
    line = relay.wait_for_log(r"^.*MSG_SIZE_TOO_LARGE.*$").group()
    assert large in line and lab.prefix + "order" in line and EVENTS in line
    assert "message.max.bytes" in line and "ppp" not in line and "ttt" not in line
    assert [record.header("id") for record in lab.checker.collect()] == [kept.encode()]
    lab.kafka.alter_topic(lab.prefix + "order", max_message_bytes=3_000_000)
    lab.running_relay({**changes, "kafka": {"message.max.bytes": "3000000"}})
    first, second = arrivals(lab, large, after)
    assert (len(first.value or b""), len(first.header("trace") or b"")) == (200_000, 900_000)
    assert first.offset < second.offset
    lab.checker.check(duplicates=0)
