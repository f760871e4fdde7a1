"""What strikes the machine that a relay runs on: its disk, its clock, its memory.

Each begins with a kill of the relay that streams: it comes back in other circumstances.
"""

from __future__ import annotations

import glob
import os
import random
from pathlib import Path
from typing import Sequence

from chaos.faults.base import Fault
from chaos.site import Site
from kit.relay import ROOT

INTERNAL_EXIT = 70  # a bug, no memory, or a thread that does not begin
# A relay with an allocator that fails on request, see tests/alloc.
FAILING = Path(os.environ.get("WALRELAY_FAILING_BIN", ROOT / "build/asan/tests/alloc/failing_walrelay"))


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
    # librdkafka waits for its threads until a time of the wall clock (rd_kafka_new). The kernel's is not
    # faked, so behind it that time is over at once, if a thread has not begun by then.
    allowed = frozenset({INTERNAL_EXIT})

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


class NoMemory(HostFault):
    """Some of its allocations fail, under the sanitizers: it goes on, or ends with 70 and tries again."""

    name = "allocations failing"
    allowed = frozenset({INTERNAL_EXIT})

    def draw(self, rng: random.Random) -> None:
        self.numbers = sorted(int(10 ** rng.uniform(1.5, 4)) for _ in range(3))
        self.detail = "numbers " + ", ".join(map(str, self.numbers))

    def wrapper(self) -> Sequence[str]:
        if not FAILING.exists():
            raise RuntimeError(f"no {FAILING}: ./dev chaos builds it")
        return [
            "env", f"WALRELAY_FAIL_ALLOC={','.join(map(str, self.numbers))}",
            "ASAN_OPTIONS=detect_leaks=1:exitcode=99",
            "sh", "-c", 'shift; exec "$0" "$@"', str(FAILING),  # in place of the relay's own program
        ]  # fmt: skip


FAULTS: list[type[Fault]] = [DiskFull, ClockJump, NoMemory]
