"""What a relay meets in its life, in a few seconds: for runs under an instrument that slows it down."""

from __future__ import annotations

import signal

from kit.lab import Lab
from kit.relay import Relay
from kit.wait import wait_until

PATIENCE = 120.0  # seconds for anything, as the instrument may be slow


def journey(lab: Lab, relay: Relay) -> None:
    """Events of all sizes, SIGHUP, a lost connection, a topic that comes late, a broker that is away,
    an orderly stop; then nothing is missing. The relay is not started yet."""
    lab.topic("order")
    lab.make_slot()
    relay.start()
    lab.wait_streaming(relay, PATIENCE)
    _write(lab, 0)
    lab.checker.wait_complete(PATIENCE)
    relay.send_signal(signal.SIGHUP)
    relay.wait_for_log("are read again", PATIENCE)
    _lose_connection(lab, relay)
    _write(lab, 1000)
    _miss_topic(lab, relay)
    lab.kafka.freeze()
    _write(lab, 2000)
    lab.kafka.thaw()
    lab.verify(PATIENCE)
    assert relay.stop(PATIENCE) == 0, relay.log_text()[-8000:]


def _write(lab: Lab, start: int) -> None:
    lab.writer.number("k", *range(start, start + 20))
    with lab.writer.transaction():
        lab.writer.number("a", *range(start, start + 100))
        lab.writer.insert("b", f'{{"n": {start}, "long": "{"x" * 300_000}"}}')
    with lab.writer.transaction(rollback=True):
        lab.writer.number("c", start)
    lab.writer.insert(None, "{}")


def _lose_connection(lab: Lab, relay: Relay) -> None:
    before = lab.slot_row()["active_pid"]
    lab.postgres.execute(f"SELECT pg_terminate_backend({before})")
    wait_until(
        lambda: lab.slot_row().get("active_pid") not in (None, before),
        PATIENCE,
        lambda: f"the relay is connected again\n{relay.log_text()[-3000:]}",
    )


def _miss_topic(lab: Lab, relay: Relay) -> None:
    lab.writer.number("late", 1, kind="late")
    relay.wait_for_log(r"topic=\S*late", PATIENCE)
    lab.topic("late")
