"""Many connections, one after the other: nothing of the old ones is left."""

from __future__ import annotations

from kit.lab import Lab
from kit.load import Load
from kit.wait import wait_until

GROWTH_KB = 8 << 10


def test_connections_ended_by_the_server_leave_nothing_behind(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()

    def end_connection() -> None:
        pid = wait_until(lambda: lab.slot_row().get("active_pid"), 30, "the relay streams")
        lab.postgres.execute("SELECT pg_terminate_backend(%s)", pid)
        wait_until(lambda: lab.slot_row().get("active_pid") != pid, 30, "its connection has ended")

    with Load(lab):
        for _ in range(3):
            end_connection()
        lab.wait_streaming(relay, 30)
    lab.verify()
    fds, threads, rss = relay.fds(), relay.threads(), relay.rss_kb()
    with Load(lab):
        for _ in range(1000 if full else 12):
            end_connection()
        lab.wait_streaming(relay, 30)
    lab.verify()
    assert (relay.fds(), relay.threads()) == (fds, threads)
    assert relay.rss_kb() < rss + GROWTH_KB
