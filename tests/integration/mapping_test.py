"""Columns become topic, key, value, headers and partition as the configuration says."""

from __future__ import annotations

from configparser import RawConfigParser
from typing import Iterator

import pytest

from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.postgres import Postgres
from kit.relay import ROOT, Relay
from kit.rows import EVENTS, arrival, arrivals, insert, make_table, section

DEBEZIUM_TABLE = (
    "CREATE TABLE outboxevent (id uuid PRIMARY KEY, aggregatetype varchar(255) NOT NULL,"
    " aggregateid varchar(255) NOT NULL, type varchar(255) NOT NULL, payload jsonb)"
)
SMALL_TABLE = (
    "CREATE TABLE outbox (id bigserial PRIMARY KEY, topic text NOT NULL, payload jsonb, published_at timestamptz)"
)
IDS = ["6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a10", "6f1c1f5e-0b5a-4c57-9d3a-1d1f4d2f7a11"]


# ---------------------------------------------------------------------- examples


@pytest.fixture
def plain(postgres: Postgres, kafka: Kafka) -> Iterator[Lab]:
    """A lab whose topics have the names that the examples give them."""
    with Lab(postgres, kafka, "examples", prefix="outbox.event.") as place:
        place.topic("order")
        yield place


def example(lab: Lab, name: str) -> Relay:
    """A relay that streams with a file of docs/examples; only the addresses are ours."""
    parser = RawConfigParser(delimiters=("=",), comment_prefixes=("#", ";"))
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    assert parser.read(ROOT / "docs" / "examples" / name)
    config = {title: dict(parser[title]) for title in parser.sections()}
    config["postgres"].update(dsn=lab.postgres.dsn(lab.db), slot=lab.slot)
    config["kafka"]["bootstrap.servers"] = lab.kafka.bootstrap
    lab.make_slot()
    relay = lab.relay()
    relay.write_config(config)
    relay.start()
    lab.wait_streaming(relay)
    return relay


def test_the_default_example_publishes_the_default_table(plain: Lab) -> None:
    example(plain, "default.conf")
    row = {"aggregate_type": "order", "aggregate_id": "42", "event_type": "OrderPlaced", "payload": '{"total": 12.5}'}
    record = arrival(plain, insert(plain, TABLE, id=IDS[0], **row))
    assert (record.topic, record.key, record.value) == ("outbox.event.order", b"42", b'{"total": 12.5}')
    assert record.headers == (("id", IDS[0].encode()), ("type", b"OrderPlaced"))


def test_the_debezium_example_publishes_the_routers_table(plain: Lab) -> None:
    plain.conn.execute(DEBEZIUM_TABLE)
    example(plain, "debezium.conf")
    row = {"aggregatetype": "order", "aggregateid": "42", "type": "OrderPlaced"}
    insert(plain, "outboxevent", id=IDS[0], payload='{"total": 12.5}', **row)
    insert(plain, "outboxevent", id=IDS[1], payload=None, **row)
    record, tombstone = arrivals(plain, *IDS)
    assert (record.topic, record.key, record.value) == ("outbox.event.order", b"42", b'{"total": 12.5}')
    assert record.headers == (("id", IDS[0].encode()), ("type", b"OrderPlaced"))
    assert (tombstone.key, tombstone.value) == (b"42", None)


def test_the_small_example_publishes_a_table_whose_rows_name_their_topic(plain: Lab) -> None:
    plain.topic("other")
    plain.conn.execute(SMALL_TABLE)
    example(plain, "small.conf")
    ids = [insert(plain, "outbox", topic="outbox.event." + kind, payload="[1]") for kind in ("order", "other")]
    records = arrivals(plain, *ids)
    assert [record.topic for record in records] == ["outbox.event.order", "outbox.event.other"]
    assert [record.headers for record in records] == [(("id", event.encode()),) for event in ids]
    assert all((record.key, record.value) == (None, b"[1]") for record in records)


# ------------------------------------------------------------------------ headers


def test_headers_have_their_order_and_the_names_that_were_chosen(lab: Lab) -> None:
    lab.topic("order")
    make_table(lab, 'payload jsonb, trace_id text, tenant int, "a:b,c" text, "Upper" text')
    settings = {"type": "event_type:kind", "headers": 'tenant:x-tenant, trace_id, "a:b,c":odd, Upper, tenant'}
    lab.running_relay(section(lab, **settings))
    full = insert(lab, EVENTS, trace_id="t", tenant=7, Upper="u", **{"a:b,c": "o"})
    empty = insert(lab, EVENTS, trace_id="", event_type=None)
    first, second = arrivals(lab, full, empty)
    assert [name for name, _ in first.headers] == ["id", "kind", "x-tenant", "trace_id", "odd", "Upper", "tenant"]
    assert [value for _, value in first.headers[1:]] == [b"created", b"7", b"t", b"o", b"u", b"7"]
    assert second.headers[1:] == (("trace_id", b""),)


def test_one_column_may_serve_several_settings(lab: Lab) -> None:
    lab.topic("order")
    make_table(lab, "payload bytea")
    settings = {"key": "payload", "headers": "payload:copy, aggregate_type", "type": "payload:type"}
    lab.running_relay(section(lab, **settings))
    record = arrival(lab, insert(lab, EVENTS, payload=b"\xde\xad"))
    assert (record.key, record.value, record.header("copy")) == (b"\xde\xad",) * 3
    assert record.header("type") == b"\xde\xad" and record.header("aggregate_type") == b"order"


# ------------------------------------------------------------- topic, key, partition


def test_a_topic_is_named_after_several_columns(lab: Lab) -> None:
    make_table(lab, "payload jsonb, region text, version int")
    lab.running_relay(section(lab, topic=lab.prefix + "{region}.{aggregate_type}_v{version}"))
    for name in ("eu.order_v1", "us.order_v1", "eu.order_v2"):
        lab.topic(name)
    rows = [("eu", 1), ("us", 1), ("eu", 2), ("eu", 1)]
    records = arrivals(lab, *[insert(lab, EVENTS, region=region, version=version) for region, version in rows])
    assert [record.topic for record in records] == [lab.prefix + f"{r}.order_v{v}" for r, v in rows]


def test_a_null_key_is_no_key_and_an_empty_one_is_empty(lab: Lab) -> None:
    lab.topic("order")
    lab.running_relay()
    ids = [insert(lab, aggregate_type="order", aggregate_id=key, payload="{}") for key in (None, "", "k")]
    assert [record.key for record in arrivals(lab, *ids)] == [None, b"", b"k"]


def test_a_partition_column_is_obeyed_and_null_goes_by_the_key(lab: Lab) -> None:
    lab.topic("order", partitions=12)
    make_table(lab, "payload jsonb, shard smallint")
    lab.running_relay(section(lab, partition="shard"))
    by_key = arrival(lab, insert(lab, EVENTS, shard=None)).partition
    ids = [insert(lab, EVENTS, shard=shard) for shard in range(12)]
    ids.append(insert(lab, EVENTS, shard=None))
    assert [record.partition for record in arrivals(lab, *ids)] == [*range(12), by_key]


def test_a_key_goes_to_the_partition_that_javas_producer_chooses_A63(lab: Lab) -> None:
    ours, theirs = lab.topic("order", partitions=12), lab.topic("java", partitions=12)
    keys = [f"key {n} é 😀"[: 4 + n % 9] + str(n * 7919) for n in range(1000)]
    lab.running_relay()
    with lab.writer.transaction():
        for key in keys:
            lab.writer.insert(key)
    lab.kafka.tool(
        "org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", lab.kafka.bootstrap, "--topic", theirs,
        "--reader-property", "parse.key=true", "--reader-property", "parse.headers=true",
        text="".join(f"id:java\t{key}\tv\n" for key in keys),
    )  # fmt: skip
    records = lab.checker.wait_records(2000)
    places = {topic: {r.key: r.partition for r in records if r.topic == topic} for topic in (ours, theirs)}
    assert len(places[ours]) == 1000
    assert places[ours] == places[theirs]
    assert len(set(places[ours].values())) == 12
