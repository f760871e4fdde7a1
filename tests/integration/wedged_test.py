"""Peers that accept and never answer, and peers that are merely silent.

A broker of that kind is in kafka_test.py."""

from __future__ import annotations

from typing import Iterator

import pytest

from kit.lab import Lab
from kit.load import rows, take_table
from kit.proxy import Proxy
from kit.relay import Relay
from kit.wait import wait_until

UNANSWERED = "has not answered for 30 s"


@pytest.fixture
def proxy(lab: Lab) -> Iterator[Proxy]:
    """A proxy before the lab's PostgreSQL."""
    lab.topic("order")
    lab.make_slot()
    with Proxy(f"127.0.0.1:{lab.postgres.port}") as proxy:
        yield proxy


def relay_behind(lab: Lab, proxy: Proxy) -> Relay:
    relay = lab.relay({"postgres": {"dsn": lab.postgres.dsn(lab.db, port=proxy.port)}})
    relay.start()
    return relay


def recovers(lab: Lab, proxy: Proxy, relay: Relay) -> None:
    proxy.heal()
    lab.wait_streaming(relay, timeout=60)
    lab.writer.number("k", *range(100, 120))
    lab.verify()


def test_a_server_that_wedges_while_it_is_streamed_from_is_noticed(lab: Lab, proxy: Proxy) -> None:
    """However often the connection was lost before: more time is for a server that did not answer."""
    relay = relay_behind(lab, proxy)
    lab.wait_streaming(relay)
    lab.writer.number("k", *range(20))
    lab.verify(duplicates=0)
    for number in range(2, 7):
        proxy.cut()
        wait_until(lambda: relay.log_text().count("streaming from slot") == number, 60, f"stream {number}")
    proxy.freeze()
    relay.wait_for_log(UNANSWERED, timeout=90)
    recovers(lab, proxy, relay)


def test_a_server_that_wedges_while_the_stream_begins_is_noticed(lab: Lab, proxy: Proxy) -> None:
    proxy.to_server.freeze_at = b"START_REPLICATION"
    relay = relay_behind(lab, proxy)
    lab.writer.number("k", *range(20))
    relay.wait_for_log(UNANSWERED, timeout=60)
    recovers(lab, proxy, relay)


def test_a_relay_that_cannot_connect_after_it_asked_whether_the_server_shuts_down_does_not_spin(
    lab: Lab, proxy: Proxy
) -> None:
    relay = relay_behind(lab, proxy)
    lab.wait_streaming(relay)
    lab.kafka.freeze()
    lab.conn.execute(rows("1", "20000", "order", 50, 1000))  # more than it holds, so it does not read
    take_table(lab, lab.conn)
    lab.wait_speaking(3)
    quiet = proxy.connections
    proxy.freeze()
    wait_until(lambda: proxy.connections > quiet, 60, "it asks whether the server shuts down")
    proxy.cut()
    relay.wait_for_log("PostgreSQL replication connection: ", timeout=60)
    used = relay.cpu_seconds()
    relay.wait_for_log("timeout expired", timeout=60)
    assert relay.cpu_seconds() - used < 1, "ten seconds of waiting"
    lab.kafka.thaw()
    recovers(lab, proxy, relay)


def test_a_server_that_accepts_and_says_nothing_is_given_up(lab: Lab, proxy: Proxy) -> None:
    proxy.freeze()
    relay = relay_behind(lab, proxy)
    relay.wait_for_log("timeout expired", timeout=60)
    assert relay.running
    recovers(lab, proxy, relay)


def test_a_server_that_wedges_while_it_is_checked_is_given_up(lab: Lab, proxy: Proxy) -> None:
    with lab.connect().transaction() as locked:
        locked.connection.execute("LOCK TABLE pg_inherits IN ACCESS EXCLUSIVE MODE")
        relay = relay_behind(lab, proxy)
        wait_until(lambda: lab.checks_are_held_up(), 20, "the checks are held up")
        proxy.freeze()
    relay.wait_for_log(UNANSWERED, timeout=60)
    recovers(lab, proxy, relay)


def test_silence_alone_never_ends_a_stream(lab: Lab, proxy: Proxy) -> None:
    relay = relay_behind(lab, proxy)
    lab.wait_streaming(relay)
    pid = lab.slot_row()["active_pid"]
    wait_until(lambda: lab.answered_for(15), 40, "the stream is that old")
    assert lab.slot_row()["active_pid"] == pid
    assert relay.log_text().count("streaming from slot") == 1
