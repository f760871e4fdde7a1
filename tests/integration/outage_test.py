"""Kafka is away: before the relay starts, for long, with much to keep, or with little room for it."""

from __future__ import annotations

from kit.lab import Lab
from kit.load import rows, take_table, write_backlog
from kit.wait import wait_until

# A change of state is told once, and what lasts once a minute: never once a second.
FEW_LINES = 8


def test_a_relay_that_starts_without_kafka_waits_and_says_so_now_and_then_A52(lab: Lab, full: bool) -> None:
    lab.topic("order")
    lab.make_slot()
    lab.writer.number("k", 1, 2, 3)
    end = lab.end_of_wal()
    lab.kafka.stop()
    relay = lab.relay()
    relay.start()
    lab.wait_streaming(relay)
    lab.wait_speaking(90 if full else 12)
    assert not lab.confirmed_at_least(end)
    said = relay.warnings()
    assert any("Connection refused" in line and lab.kafka.bootstrap in line for line in said), said
    assert len(said) < FEW_LINES, "\n".join(said)
    lab.kafka.start()
    lab.verify(duplicates=0)
    assert relay.running


def test_a_broker_whose_name_does_not_resolve_is_named_A52(lab: Lab) -> None:
    lab.topic("order")
    lab.make_slot()
    lab.writer.number("k", 1)
    end = lab.end_of_wal()
    relay = lab.relay({"kafka": {"bootstrap.servers": "nosuch.invalid:9092"}})
    relay.start()
    relay.wait_for_log("warning .*resolve.*nosuch.invalid:9092")
    relay.wait_for_log("acknowledged nothing for", 40)
    assert len(relay.warnings()) < FEW_LINES, relay.log_text()
    assert relay.running and not lab.confirmed_at_least(end)
    assert relay.stop() == 0
    lab.running_relay()
    lab.verify(duplicates=0)


def test_events_outlast_a_broker_that_is_away_longer_than_they_may_live_elsewhere_A53(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.number("k0", 0)
    lab.verify()
    lab.kafka.stop()
    for n in range(1, 1001):
        lab.writer.number(f"k{n % 3}", n)
    end = lab.end_of_wal()
    # librdkafka gives a message up after five minutes by default
    lab.wait_speaking(330 if full else 10)
    assert not lab.confirmed_at_least(end)
    lab.kafka.start()
    assert lab.verify(90, duplicates=0).published == 1001
    assert relay.running


def test_an_outage_fills_the_servers_disk_and_not_the_relays_memory_A51(big_lab: Lab, full: bool) -> None:
    lab, events, fill = big_lab, 400_000 if full else 20_000, 5_000
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    lab.kafka.stop()
    write_backlog(lab, events, fill=fill)
    wait_until(lab.is_blocked, 60, "the relay has stopped reading")
    lab.wait_speaking(60 if full else 3)
    assert lab.postgres.slot_lag(lab.slot) > events * 100
    lab.kafka.start()
    lab.verify(900 if full else 120, duplicates=0)
    assert relay.peak_rss_kb() < 48 << 10


def test_a_small_queue_of_librdkafka_neither_loses_nor_reorders_A56(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay({"kafka": {"queue.buffering.max.messages": "100"}})
    lab.writer.insert("first")
    lab.verify()
    lab.kafka.freeze()
    lab.conn.execute(rows("1", "10000", "order", 3, 20))
    assert take_table(lab, lab.conn) == 10_000
    lab.wait_speaking(60 if full else 5)
    lab.kafka.thaw()
    lab.verify(duplicates=0)
    assert relay.running
