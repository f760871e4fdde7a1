"""The kit against real servers."""

from __future__ import annotations

import pytest
from confluent_kafka import Producer

from kit.lab import Lab
from kit.postgres import Postgres
from kit.wait import wait_until


def publish(lab: Lab, *ids: str, kind: str = "order", key: str = "k") -> None:
    """Do by hand what the relay does."""
    producer = Producer({"bootstrap.servers": lab.kafka.bootstrap, "enable.idempotence": True})
    for event in ids:
        producer.produce(lab.prefix + kind, b"{}", key, headers={"id": event})
    assert producer.flush(30) == 0


def test_what_was_committed_and_published_passes(lab: Lab) -> None:
    lab.topic("order", partitions=3)
    publish(lab, *lab.writer.number("k", 1, 2, 3))
    lab.checker.wait_complete(30)
    assert lab.checker.check(duplicates=0).published == 3


def test_a_committed_event_that_is_not_published_fails(lab: Lab) -> None:
    lab.topic("order")
    publish(lab, *lab.writer.number("k", 1, 2))
    lab.writer.insert("k")
    with pytest.raises(AssertionError, match="lost 1"):
        lab.checker.check()


def test_a_rolled_back_event_that_is_published_fails(lab: Lab) -> None:
    lab.topic("order")
    with lab.writer.transaction(rollback=True):
        event = lab.writer.insert("k")
    publish(lab, event)
    with pytest.raises(AssertionError, match="rolled back and yet published"):
        lab.checker.check()


def test_events_published_in_another_order_fail(lab: Lab) -> None:
    lab.topic("order")
    publish(lab, *reversed(lab.writer.number("k", 1, 2)))
    with pytest.raises(AssertionError, match="disordered 1"):
        lab.checker.check()


def test_duplicates_are_counted_against_their_limit(lab: Lab) -> None:
    lab.topic("order")
    ids = lab.writer.number("k", 1, 2)
    publish(lab, *ids, *ids)
    assert lab.checker.check().duplicates == 2
    with pytest.raises(AssertionError, match="2 duplicates"):
        lab.checker.check(duplicates=1)


def test_a_topic_that_comes_later_is_read_too(lab: Lab) -> None:
    assert lab.checker.collect() == []
    lab.topic("late")
    publish(lab, lab.writer.insert("k", kind="late"), kind="late")
    lab.checker.wait_complete(30)


def test_events_written_elsewhere_are_taken_from_the_table(lab: Lab) -> None:
    lab.conn.execute(
        "INSERT INTO outbox_events (aggregate_type, aggregate_id, payload)"
        " SELECT 'order', 'k', jsonb_build_object('n', n) FROM generate_series(1, 5) n"
    )
    assert lab.checker.commit_table(lab.conn, "outbox_events", "(payload->>'n')::int") == 5
    assert len(lab.checker.missing()) == 5


def test_a_slot_that_nobody_reads_falls_behind_and_is_seen(lab: Lab) -> None:
    lab.make_slot()
    assert lab.wait_quiet() < 1 << 20
    lab.conn.execute("CREATE TABLE noise AS SELECT repeat('x', 100) FROM generate_series(1, 20000)")
    with pytest.raises(TimeoutError, match="bytes behind"):
        lab.wait_quiet(timeout=0.2)


def test_a_frozen_broker_answers_again_after_the_thaw(lab: Lab) -> None:
    lab.topic("order")
    lab.kafka.freeze()
    lab.kafka.thaw()
    publish(lab, lab.writer.insert("k"))
    lab.checker.wait_complete(30)


def test_a_killed_server_comes_back_on_its_port_with_its_data(lab: Lab) -> None:
    event = lab.writer.insert("k")
    port = lab.postgres.port
    lab.postgres.restart("immediate")
    wait_until(lambda: lab.postgres.running, 10, "PostgreSQL runs")
    assert lab.postgres.port == port
    assert lab.postgres.execute("SELECT id::text FROM outbox_events", db=lab.db) == [(event,)]


def test_a_replica_follows_its_primary_and_takes_writes_once_it_is_promoted(server: Postgres) -> None:
    server.execute("CREATE TABLE t (n int)")
    with server.replica() as replica:
        server.execute("INSERT INTO t VALUES (1)")
        replica.wait_replayed(str(server.execute("SELECT pg_current_wal_lsn()")[0][0]))
        assert replica.execute("SELECT n FROM t") == [(1,)] and replica.in_recovery()
        server.stop("immediate")
        replica.promote()
        replica.execute("INSERT INTO t VALUES (2)")
        with replica.replica() as next_one:
            assert next_one.execute("SELECT count(*) FROM t") == [(2,)]
