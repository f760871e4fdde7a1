"""Who stops while others wait: the relay, PostgreSQL, or both with a frozen broker."""

from __future__ import annotations

import os
import signal

import pytest

from kit.lab import Lab
from kit.load import Load, rows, take_table
from kit.relay import Relay
from kit.wait import wait_until

SMALL = {"relay": {"memory": "1MB"}}


def shut_down_postgresql(lab: Lab) -> None:
    """What `pg_ctl stop -m fast` does; the server must be gone soon, whoever is connected."""
    os.kill(lab.postgres.pid, signal.SIGINT)
    wait_until(lambda: not lab.postgres.running, 5, "the postmaster is gone")


def bring_back(lab: Lab) -> None:
    """Start server and broker again; everything must arrive, in order."""
    lab.postgres.start()
    lab.kafka.thaw()
    writer = lab.new_writer()
    writer.insert("last")
    lab.verify()


def warm_relay(lab: Lab, changes: dict[str, dict[str, str]] | None = None) -> Relay:
    """A relay that has delivered an event already."""
    lab.topic("order")
    relay = lab.running_relay(changes)
    lab.writer.insert("first")
    lab.verify()
    return relay


def test_a_fast_shutdown_of_postgresql_does_not_wait_for_the_relay(lab: Lab) -> None:
    relay = warm_relay(lab)
    with Load(lab):
        seen = len(lab.checker.collect())
        lab.checker.wait_records(seen + 50)
        shut_down_postgresql(lab)
        assert relay.running
        lab.postgres.start()
        lab.checker.wait_records(len(lab.checker.records) + 50)
    lab.verify()


def test_a_fast_shutdown_of_postgresql_does_not_wait_for_a_frozen_broker(lab: Lab) -> None:
    relay = warm_relay(lab)
    lab.kafka.freeze()
    lab.writer.number("k", *range(100))
    shut_down_postgresql(lab)
    relay.wait_for_log("PostgreSQL is shutting down")
    bring_back(lab)
    assert relay.running


def test_a_fast_shutdown_of_postgresql_does_not_wait_for_a_relay_without_room(lab: Lab) -> None:
    relay = warm_relay(lab, SMALL)
    lab.kafka.freeze()
    lab.conn.execute(rows("1", "30000", "order", 50, 100))
    take_table(lab, lab.conn)
    wait_until(lab.is_blocked, 30, "the relay has stopped reading")
    shut_down_postgresql(lab)
    bring_back(lab)
    assert relay.running


@pytest.mark.parametrize("outage, end_outage", [("freeze", "thaw"), ("kill", "start")])
def test_sigterm_without_kafka_ends_in_time_and_says_what_may_be_repeated_A66(
    lab: Lab, outage: str, end_outage: str
) -> None:
    relay = warm_relay(lab, {"relay": {"shutdown_timeout": "2s"}})
    acknowledged = lab.end_of_wal()
    getattr(lab.kafka, outage)()
    lab.writer.number("k", *range(10))
    end = lab.end_of_wal()
    lab.wait_received()
    assert relay.stop(limit=10) == 0
    assert "10 events that Kafka has not acknowledged may be repeated" in relay.log_text()
    assert lab.confirmed_at_least(acknowledged) and not lab.confirmed_at_least(end)
    getattr(lab.kafka, end_outage)()
    relay.start()
    lab.verify(duplicates=10)


def test_sigterm_with_a_full_budget_ends_in_time_inside_a_transaction_A66(lab: Lab) -> None:
    relay = warm_relay(lab, {"relay": {"memory": "1MB", "shutdown_timeout": "1s"}})
    lab.kafka.freeze()
    lab.conn.execute(rows("1", "30000", "order", 50, 100))
    take_table(lab, lab.conn)
    wait_until(lab.is_blocked, 30, "the relay has stopped reading")
    assert relay.stop(limit=10) == 0
    assert "the transaction being read, may be repeated" in relay.log_text()
    lab.kafka.thaw()
    relay.start()
    lab.verify()


def test_a_second_sigterm_ends_at_once_A66(lab: Lab) -> None:
    relay = warm_relay(lab, {"relay": {"shutdown_timeout": "1h"}})
    lab.kafka.freeze()
    lab.writer.number("k", *range(10))
    lab.wait_received()
    relay.send_signal(signal.SIGTERM)
    relay.wait_for_log("stopping: ")
    assert relay.running
    relay.send_signal(signal.SIGTERM)
    assert relay.wait_exit(5) == 0
    relay.wait_for_log("stopping at once: [0-9]+ events may be repeated")
    lab.kafka.thaw()
    relay.start()
    lab.verify()


def test_sigterm_while_postgresql_is_away_ends_at_once(lab: Lab) -> None:
    relay = warm_relay(lab)
    lab.postgres.stop()
    relay.wait_for_log("(?i)postgresql|server|connection")
    assert relay.stop(limit=5) == 0
    lab.postgres.start()


def test_sigterm_before_a_connection_was_made_ends_at_once(lab: Lab) -> None:
    lab.make_slot()
    relay = lab.relay()
    lab.postgres.stop()
    relay.start()
    relay.wait_for_log("refused")
    assert relay.stop(limit=5) == 0
    lab.postgres.start()
