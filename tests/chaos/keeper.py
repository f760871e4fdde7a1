"""Relays that somebody starts again when they end, as a service manager would."""

from __future__ import annotations

import signal
import time

from kit.relay import Relay

RESTART_S = 0.3


class Kept:
    """A relay that look() starts again. What ended it is judged: `wrong` holds the ends that nobody
    caused and that are not in `allowed`."""

    def __init__(self, relay: Relay, allowed: set[int]) -> None:
        self.relay = relay
        self.allowed = allowed
        self.exits: list[int] = []
        self.wrong: list[str] = []
        self.held = False
        self._expected: set[int] = set()
        self._due: float | None = None

    def start(self) -> None:
        self._expected, self._due = set(), None
        self.relay.start()

    def kill(self) -> bool:
        """SIGKILL; did it run?"""
        running = self.relay.running
        self._expected.add(-signal.SIGKILL)
        self.relay.kill()
        return running

    def terminate(self) -> None:
        """SIGTERM; whoever looks later finds out how it ended."""
        self._expected.add(0)
        self.relay.send_signal(signal.SIGTERM)

    def look(self) -> None:
        """Take note of its end, start it again when it is time and nobody holds it down."""
        if self.relay.running:
            return
        if self._due is None:
            self._judge(self.relay.wait_exit())
            self._due = time.monotonic() + RESTART_S
        if time.monotonic() >= self._due and not self.held:
            self.start()

    def _judge(self, code: int) -> None:
        self.exits.append(code)
        if code not in self._expected | self.allowed:
            last = self.relay.log_text().strip().splitlines()[-1:]
            self.wrong.append(f"{self.relay.log.name} ended with {code}: {last}")
