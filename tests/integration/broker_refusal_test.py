"""What the broker refuses: a timestamp gives way, a record that is to blame is named."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

from kit.lab import TABLE, Lab
from kit.rows import EVENTS, arrivals, insert, make_table, section
from kit.wait import wait_until

HOUR_MS = 3600 * 1000


def test_timestamps_that_the_topic_refuses_give_way_to_the_commit_time_in_order(lab: Lab) -> None:
    lab.kafka.alter_topic(lab.topic("order", partitions=1), message_timestamp_before_max_ms=HOUR_MS)
    make_table(lab, "payload jsonb, z timestamptz")
    lab.make_slot()
    now = datetime.now(timezone.utc)
    old = now - timedelta(hours=2)
    with lab.conn.transaction():
        ids = [insert(lab, EVENTS, aggregate_id=f"k{n % 3}", z=old if n % 50 == 20 else now) for n in range(300)]
    lab.running_relay(section(lab, timestamp="z"))
    records = arrivals(lab, *ids)
    refused = [record for n, record in enumerate(records) if n % 50 == 20]
    for record in refused:
        assert record.timestamp_ms > now.timestamp() * 1000 - HOUR_MS
        assert datetime.fromisoformat((record.header("walrelay.timestamp") or b"").decode()) == old
    # Those that shared a batch with a refused one may have given way, too.
    kept = [record for record in records if len(record.headers) == 2]
    assert kept and all(record.timestamp_ms == int(now.timestamp() * 1000) for record in kept)
    assert [record.offset for record in records] == sorted(record.offset for record in records)
    lab.verify(duplicates=0)


def test_a_topic_that_refuses_even_the_commit_time_is_waited_for_and_named(lab: Lab) -> None:
    name = lab.topic("order", partitions=1)
    lab.kafka.alter_topic(name, message_timestamp_before_max_ms=1)
    lab.make_slot()
    ids = lab.writer.number("k", 1, 2, 3)
    relay = lab.running_relay()
    line = relay.wait_for_log(r"^.* warning .*INVALID_TIMESTAMP.*$").group()
    assert name in line and "message.timestamp.before.max.ms" in line
    assert relay.running
    lab.kafka.alter_topic(name, message_timestamp_before_max_ms=HOUR_MS)
    records = arrivals(lab, *ids)
    assert [record.offset for record in records] == sorted(record.offset for record in records)
    lab.verify(duplicates=0)


def test_an_event_without_a_key_for_a_compacted_topic_is_refused(lab: Lab) -> None:
    order = lab.topic("order", partitions=1)
    lab.kafka.alter_topic(order, cleanup_policy="compact")
    relay = lab.running_relay()
    kept = insert(lab, aggregate_type="order", aggregate_id="k", payload="{}")
    lab.checker.wait_complete()
    bad = insert(lab, aggregate_type="order", aggregate_id=None, payload="{}")
    assert relay.wait_exit() == 65
    line = relay.wait_for_log(r"^\S+ error .*$").group()
    for words in ("a compacted topic takes no record without a key", "INVALID_RECORD", order, TABLE, bad):
        assert words in line
    lab.kafka.alter_topic(order, cleanup_policy="delete")
    lab.running_relay()
    lab.verify(duplicates=0)
    assert [record.header("id") for record in lab.checker.records] == [kept.encode(), bad.encode()]


def test_a_refused_first_record_lets_none_behind_it_overtake(lab: Lab) -> None:
    """A broker without state of a producer takes any sequence number: what was sent behind a refused
    first record would be appended. Requests of few records that pile up while it is frozen are the
    worst case."""
    order = lab.topic("order", partitions=1, config={"max.message.bytes": "20000"})
    lab.make_slot()
    small_requests = {"kafka": {"batch.size": "1000", "compression.codec": "none", "linger.ms": "0"}}
    relay = lab.running_relay(small_requests)
    lab.kafka.freeze()
    big = lab.writer.insert("k", f'"{"x" * 30000}"')
    small = lab.writer.number("k", *range(200))
    ((end,),) = lab.postgres.execute("SELECT pg_current_wal_lsn()::text")
    sent = "SELECT count(*) FROM pg_stat_replication WHERE sent_lsn >= %s::pg_lsn"
    wait_until(lambda: lab.postgres.execute(sent, end) == [(1,)], 10, "the relay has got all")
    lab.kafka.thaw()
    assert relay.wait_exit() == 65
    line = relay.wait_for_log(r"^\S+ error .*$").group()
    for words in ("MSG_SIZE_TOO_LARGE", order, big, "30002 bytes", "max.message.bytes"):
        assert words in line
    assert lab.checker.collect() == []
    lab.kafka.alter_topic(order, max_message_bytes=100000)
    lab.running_relay(small_requests)
    records = arrivals(lab, big, *small)
    assert [record.offset for record in records] == list(range(201))
    lab.verify(duplicates=0)
