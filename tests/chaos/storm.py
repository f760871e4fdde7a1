"""Carries out a plan."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Callable, Sequence

from chaos.faults.base import Fault
from chaos.schedule import STORM_S, Planned
from chaos.site import Site

TURN_S = 0.02


@dataclass
class Struck:
    """A fault that has struck: from when to when, in milliseconds of the wall clock."""

    fault: Fault
    began_ms: int
    ended_ms: int


def rage(site: Site, planned: Sequence[Planned], say: Callable[[str], None]) -> list[Struck]:
    """Let the faults strike in their time, and relays that have ended start again meanwhile.

    All in one thread: what is started here must not end with a thread (see process.spawn).
    """
    steps = [
        (entry.at + after, number, step)
        for number, entry in enumerate(planned)
        for after, step in entry.fault.steps()
    ]
    steps.sort(key=lambda item: item[:2])
    struck: dict[int, Struck] = {}
    began = time.monotonic()
    while steps or time.monotonic() < began + STORM_S:
        site.look()
        if steps and steps[0][0] <= time.monotonic() - began:
            _, number, step = steps.pop(0)
            fault = planned[number].fault
            if number not in struck:
                say(f"  {time.monotonic() - began:5.2f} {fault}")
                struck[number] = Struck(fault, _now(), 0)
            before = time.monotonic()
            step(site)
            began += time.monotonic() - before  # the others keep their distances
            struck[number].ended_ms = _now()
        else:
            time.sleep(TURN_S)
    return list(struck.values())


def _now() -> int:
    return int(time.time() * 1000)
