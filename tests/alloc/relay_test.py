"""A relay of which one allocation fails, again and again: it stops or recovers, and loses nothing."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

from kit.lab import Lab
from kit.relay import Relay
from kit.wait import wait_until

RUNS = 50
NO_MEMORY = 70  # docs/reference.md, exit codes
WORDS = ("out of memory", os.strerror(errno.ENOMEM))
SANITIZER = {"ASAN_OPTIONS": "detect_leaks=1:exitcode=99", "UBSAN_OPTIONS": "print_stacktrace=1"}


def places(lab: Lab) -> list[int]:
    """The number of the first allocation of each place in the code that a run comes to."""
    sites = lab.directory / "sites"
    relay = lab.relay(env={**SANITIZER, "WALRELAY_FAIL_SITES": str(sites)})
    relay.start()
    lab.wait_streaming(relay, 60)
    lab.writer.number("k", *range(10))
    lab.verify()
    assert relay.stop(60) == 0, relay.log_text()
    return [int(line) for line in sites.read_text().splitlines()]


def run(lab: Lab, number: int) -> tuple[Relay, Path]:
    """A run in which that allocation fails; it ends by itself, or is stopped when all has arrived."""
    report = lab.directory / f"report{number}"
    relay = lab.relay(
        env={**SANITIZER, "WALRELAY_FAIL_ALLOC": str(number), "WALRELAY_FAIL_REPORT": str(report)}
    )
    lab.writer.number("k", number)
    relay.start()
    wait_until(
        lambda: not relay.running or not lab.checker.missing(),
        60,
        lambda: f"the relay ends, or publishes all: {relay.log_text()}",
    )
    return relay, report


def test_a_relay_without_memory_stops_or_goes_on_and_loses_nothing(lab: Lab, full: bool) -> None:
    lab.topic("order")
    lab.make_slot()
    numbers = places(lab)
    random.Random(os.environ.get("WALRELAY_SEED", "1")).shuffle(numbers)
    numbers = numbers if full else numbers[:RUNS]
    failed = 0
    for number in numbers:
        relay, report = run(lab, number)
        code = relay.stop(60) if relay.running else relay.wait_exit()
        why = f"allocation {number}: {relay.log_text()}\n{report.read_text() if report.exists() else ''}"
        failed += report.exists()
        assert code in (0, NO_MEMORY), why
        assert code == 0 or any(words in relay.log_text() for words in WORDS), why
    assert failed > len(numbers) / 2  # some lie behind the point at which a run is stopped
    lab.running_relay()
    lab.verify()
