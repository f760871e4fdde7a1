"""What every fault is."""

from __future__ import annotations

import random
from typing import Callable, ClassVar

from chaos.site import Site
from chaos.witness import Event

Step = tuple[float, Callable[[Site], None]]


class Fault:
    """One fault of one round. All that is left to chance is drawn when it is made, so that a seed tells
    what happens; what depends on the moment (which relay streams) is looked up when it happens.

    A class says: `name`, as the report shows it; `weight`, how often it is drawn; `lasts`, seconds from
    begin() to end(); `touches`, what no other fault may strike at the same time; `allowed`, exit codes
    with which relays may end because of it; `freezes`, whether a relay goes on after it as if nothing had
    happened; `kills`, the processes it has killed; destroys(), whether it
    takes an event away for good, which is then not asked for; moves(), whether it gives keys other partitions.

    Nothing here excuses a lost event, a wrong order or a wrong confirmation of any other event.
    """

    name: ClassVar[str]
    weight: ClassVar[float] = 1.0
    lasts: ClassVar[tuple[float, float]] = (0, 0)
    touches: ClassVar[frozenset[str]] = frozenset()
    allowed: ClassVar[frozenset[int]] = frozenset()
    freezes: ClassVar[bool] = False

    def __init__(self, rng: random.Random) -> None:
        self.seconds = round(rng.uniform(*self.lasts), 2)
        self.kills = 0
        self.detail = ""
        self.draw(rng)

    def draw(self, rng: random.Random) -> None:
        """Choose what the class leaves open."""

    def steps(self) -> list[Step]:
        """What to do, each with the seconds after the fault's beginning; the last one ends it."""
        return [(0, self.begin), (self.seconds, self.end)] if self.seconds else [(0, self.begin)]

    def begin(self, site: Site) -> None:
        raise NotImplementedError

    def end(self, site: Site) -> None:
        """Undo it; heal() would too, later."""

    def destroys(self, event: Event) -> bool:
        """Has it taken this event out of Kafka, or PostgreSQL's memory of it, for good?"""
        return False

    def moves(self, place: str) -> bool:
        """Have the keys of this topic (somewhere in `place`) other partitions since?"""
        return False

    def __str__(self) -> str:
        words = [self.name, self.detail, f"for {self.seconds} s" if self.seconds else ""]
        return " ".join(word for word in words if word)
