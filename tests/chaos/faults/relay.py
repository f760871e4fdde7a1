"""What strikes a relay."""

from __future__ import annotations

import random

from chaos.faults.base import Fault, Step
from chaos.site import WAL_SENDER_TIMEOUT, Site

WHICH = {True: "the one that streams", False: "the one that stands by"}


class RelayFault(Fault):
    """Strikes, by chance, the relay that streams (mostly) or the one that stands by."""

    touches = frozenset({"relays"})

    def draw(self, rng: random.Random) -> None:
        self.streams = rng.random() < 0.8
        self.detail = WHICH[self.streams]


class Killed(RelayFault):
    """kill -9, up to four times, of a relay that is started again each time."""

    name = "relay killed"
    weight = 3
    lasts = (0.5, 3)

    def draw(self, rng: random.Random) -> None:
        super().draw(rng)
        self.times = sorted(round(rng.uniform(0, self.seconds), 2) for _ in range(rng.randint(1, 4)))
        self.detail += f", {len(self.times)} times"

    def steps(self) -> list[Step]:
        return [(at, self.begin) for at in self.times]

    def begin(self, site: Site) -> None:
        self.kills += site.relay(self.streams).kill()


class BothKilled(Fault):
    """kill -9 of both relays at once."""

    name = "both relays killed"
    touches = frozenset({"relays"})

    def begin(self, site: Site) -> None:
        self.kills += sum(kept.kill() for kept in site.relays)


class Terminated(RelayFault):
    """SIGTERM: it must end with 0, whatever else is broken at that moment."""

    name = "relay terminated"
    weight = 2

    def begin(self, site: Site) -> None:
        site.relay(self.streams).terminate()


class Frozen(RelayFault):
    """Stopped and continued before anybody takes notice."""

    name = "relay frozen"
    freezes = True
    lasts = (0.3, 2)

    def begin(self, site: Site) -> None:
        self.struck = site.relay(self.streams)
        self.struck.relay.freeze()

    def end(self, site: Site) -> None:
        self.struck.relay.thaw()


class Zombie(Frozen):
    """Frozen with a queue, past wal_sender_timeout: the other one takes over, then the first goes on."""

    name = "zombie relay"
    lasts = (WAL_SENDER_TIMEOUT + 1, WAL_SENDER_TIMEOUT + 3)

    def draw(self, rng: random.Random) -> None:
        self.streams = True


FAULTS = [Killed, BothKilled, Terminated, Frozen, Zombie]
