"""Many connections, one after the other: nothing of the old ones is left."""

from __future__ import annotations

import resource

from kit.lab import Lab
from kit.load import Load
from kit.relay import Relay
from kit.wait import wait_until

GROWTH_KB = 8 << 10


def end_connection(lab: Lab) -> None:
    """Let the server end the relay's connection."""
    pid = wait_until(lambda: lab.slot_row().get("active_pid"), 30, "the relay streams")
    lab.postgres.execute("SELECT pg_terminate_backend(%s)", pid)
    wait_until(lambda: lab.slot_row().get("active_pid") != pid, 30, "its connection has ended")


def end_connections(lab: Lab, relay: Relay, count: int) -> None:
    """The same many times under load; the relay streams again at the end, and all has arrived."""
    with Load(lab):
        for _ in range(count):
            end_connection(lab)
        lab.wait_streaming(relay, 30)
    lab.verify()


def test_connections_ended_by_the_server_leave_nothing_behind(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    end_connections(lab, relay, 3)
    fds, threads, rss = relay.fds(), relay.threads(), relay.rss_kb()
    end_connections(lab, relay, 1000 if full else 12)
    assert (relay.fds(), relay.threads()) == (fds, threads)
    assert relay.rss_kb() < rss + GROWTH_KB


def test_a_relay_needs_few_descriptors_however_often_it_connects_A67(lab: Lab, full: bool) -> None:
    lab.topic("order")
    lab.make_slot()
    relay = lab.relay(wrapper=["prlimit", "--nofile=32"])
    relay.start()
    lab.wait_streaming(relay)
    end_connections(lab, relay, 1)
    fds = relay.fds()
    end_connections(lab, relay, 300 if full else 6)
    assert relay.fds() == fds


def test_a_relay_without_a_descriptor_to_spare_says_so_and_goes_on_when_it_has_one_A67(lab: Lab) -> None:
    lab.topic("order")
    lab.make_slot()
    lab.writer.number("k", 1)
    end = lab.end_of_wal()
    relay = lab.relay(wrapper=["prlimit", "--nofile=10:64"])
    relay.start()
    relay.wait_for_log("warning .*Too many open files")
    assert relay.running and not lab.confirmed_at_least(end)
    resource.prlimit(relay.pid, resource.RLIMIT_NOFILE, (64, 64))
    lab.verify(duplicates=0)
