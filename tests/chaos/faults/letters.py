"""What people do to dead letters while everything else happens, and what they do to the table."""

from __future__ import annotations

import contextlib
import random

import psycopg

from chaos.faults.base import Fault, Step
from chaos.faults.topics import TopicFault
from chaos.letters import DISCARD, RETRY
from chaos.site import CONFIG, CONFIGS, Site, settings
from kit.dead_letters import LETTERS


class LettersFault(Fault):
    """A statement needs a server."""

    touches = frozenset({"postgres"})


class Mended(TopicFault):
    """The topic that refuses takes everything for a while."""

    name = "cause of dead letters mended"
    lasts = (1, 4)

    def begin(self, site: Site) -> None:
        site.do(lambda: site.lab.kafka.alter_topic(site.topic("strict"), **settings(CONFIG)))

    def end(self, site: Site) -> None:
        site.do(lambda: site.lab.kafka.alter_topic(site.topic("strict"), **settings(CONFIGS["strict"])))


class Retried(LettersFault):
    """Somebody lets all be tried again, a few times."""

    name = "dead letters retried"
    weight = 2

    def draw(self, rng: random.Random) -> None:
        self.times = rng.randint(1, 3)
        self.detail = f"{self.times} times"

    def steps(self) -> list[Step]:
        return [(0.7 * turn, self.begin) for turn in range(self.times)]

    def begin(self, site: Site) -> None:
        site.lab.postgres.execute(RETRY, db=site.lab.db)


class Discarded(LettersFault):
    """Somebody gives some of them up, held ones too."""

    name = "dead letters discarded"

    def draw(self, rng: random.Random) -> None:
        self.each = rng.randint(2, 5)
        self.detail = f"each {self.each}th"

    def begin(self, site: Site) -> None:
        site.lab.postgres.execute(DISCARD, self.each, db=site.lab.db)


class Locked(LettersFault):
    """Nobody else can read or write the table."""

    name = "table of dead letters locked"
    lasts = (0.5, 7)

    def begin(self, site: Site) -> None:
        self.locker = site.lab.postgres.connect(site.lab.db)
        self.locker.execute("BEGIN")
        self.locker.execute(f"LOCK TABLE {LETTERS}")

    def end(self, site: Site) -> None:
        with contextlib.suppress(psycopg.Error):
            self.locker.close()


FAULTS: list[type[Fault]] = [Mended, Retried, Discarded, Locked]
