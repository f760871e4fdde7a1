"""A relay that was built with the thread sanitizer."""

from __future__ import annotations

from pathlib import Path

from kit.journey import journey
from kit.lab import Lab

SUPPRESSIONS = Path(__file__).with_name("tsan.supp")


def test_the_relays_threads_do_not_race(lab: Lab) -> None:
    options = f"suppressions={SUPPRESSIONS}:exitcode=99"
    relay = lab.relay(env={"TSAN_OPTIONS": options})
    journey(lab, relay)
    assert "ThreadSanitizer" not in relay.log_text(), relay.log_text()
