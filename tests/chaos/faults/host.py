"""What strikes the machine that a relay runs on: its disk and its clock.

Each begins with a kill of the relay that streams: it comes back in other circumstances.
"""

from __future__ import annotations

import glob
import random
from typing import Sequence

from chaos.faults.base import Fault
from chaos.site import Site


class HostFault(Fault):
    """The relay that streams is killed, and started again by another command; end() kills it once more."""

    touches = frozenset({"relays"})
    lasts = (2, 5)

    def wrapper(self) -> Sequence[str]:
        """What stands before the relay's command."""
        raise NotImplementedError

    def begin(self, site: Site) -> None:
        self.struck = site.relay(streams=True)
        self.struck.relay.wrapper = list(self.wrapper())
        self.kills += self.struck.kill()
        other = site.relays[1 - site.relays.index(self.struck)]
        self.kills += other.kill()  # so that the struck one has its turn
        other.held = True

    def end(self, site: Site) -> None:
        self.struck.relay.wrapper = []
        self.kills += self.struck.kill()
        for kept in site.relays:
            kept.held = False


class DiskFull(HostFault):
    """Every line that it logs fails with ENOSPC."""

    name = "disk of the log full"

    def wrapper(self) -> Sequence[str]:
        return ["sh", "-c", 'exec "$@" >/dev/full 2>&1', "sh"]


class ClockJump(HostFault):
    """Its wall clock is hours ahead or behind, and the one that replaces it is back in time."""

    name = "clock jump"

    def draw(self, rng: random.Random) -> None:
        self.offset = rng.choice(["+2h", "-2h", "+400d"])
        self.detail = self.offset

    def wrapper(self) -> Sequence[str]:
        # Only the wall clock: timers run by the monotonic one, which does not jump.
        (library,) = glob.glob("/usr/lib/*/faketime/libfaketimeMT.so.1")
        return [
            "env", f"LD_PRELOAD={library}", f"FAKETIME={self.offset}", "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "FAKETIME_DONT_RESET=1",
        ]  # fmt: skip


FAULTS: list[type[Fault]] = [DiskFull, ClockJump]
