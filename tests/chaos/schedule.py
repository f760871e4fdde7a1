"""Which faults strike when: all of it follows from a seed."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Sequence

from chaos.faults import KINDS
from chaos.faults.base import Fault

STORM_S = 8.0
GAP_S = 0.3
IN_TURN = 4


@dataclass(frozen=True)
class Planned:
    """A fault, and when it begins, in seconds after the beginning of the storm."""

    at: float
    fault: Fault

    @property
    def over(self) -> float:
        """When its last step is due."""
        return self.at + max(after for after, _ in self.fault.steps())

    def __str__(self) -> str:
        return f"{self.at:5.2f} {self.fault}"


def plan(seed: int, kinds: Sequence[type[Fault]] = KINDS) -> list[Planned]:
    """The faults of a round, in the order in which they begin: those whose turn it is, and others by chance.

    Two that touch the same thing do not overlap: the later one waits, and is left out when the storm is
    over by then.
    """
    rng = random.Random(seed)
    planned: list[Planned] = []
    for kind in [*_in_turn(seed, kinds), *rng.choices(kinds, [kind.weight for kind in kinds], k=rng.randint(1, 5))]:
        at, fault = round(rng.uniform(0, STORM_S - 1), 2), kind(rng)
        while (rival := _rival(planned, at, fault)) is not None:
            at = round(rival.over + GAP_S + 0.01, 2)  # rounded, it must still be behind
        if at < STORM_S:
            planned.append(Planned(at, fault))
    return sorted(planned, key=lambda entry: entry.at)


def _in_turn(seed: int, kinds: Sequence[type[Fault]]) -> list[type[Fault]]:
    """Some kinds for each seed, far apart in the list, so that few seeds in a row go through all of them."""
    apart = -(-len(kinds) // IN_TURN)
    return list(dict.fromkeys(kinds[(seed + turn * apart) % len(kinds)] for turn in range(IN_TURN)))


def _rival(planned: list[Planned], at: float, fault: Fault) -> Planned | None:
    """One that is not over yet, or begins before this one would be over."""
    wanted = Planned(at, fault)
    for other in planned:
        if not (other.fault.touches & fault.touches):
            continue
        if wanted.at < other.over + GAP_S and other.at < wanted.over + GAP_S:
            return other
    return None
