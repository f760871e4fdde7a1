"""What strikes topics: their number of partitions, limits and rights, and themselves.
"""

from __future__ import annotations

import random
import time

from chaos.faults.base import Fault
from chaos.letters import has_all
from chaos.servers import RELAYS, WRITING, principals
from chaos.site import BIG, CONFIG, KINDS, LOW, Site, settings
from chaos.witness import Event
from kit.lab import TABLE
from kit.wait import wait_until

DENIAL = (*principals("--deny-principal", RELAYS), *WRITING[:2])


class TopicFault(Fault):
    """A topic cannot be changed while its brokers are away."""

    touches = frozenset({"brokers", "topics"})


class Grown(TopicFault):
    """More partitions: keys move, and within each (topic, partition, key) order stays."""

    name = "partitions added"

    def draw(self, rng: random.Random) -> None:
        self.kind = rng.choice(["order", "invoice"])
        self.more = rng.randint(1, 3)
        self.grown = ""
        self.detail = f"to {self.kind}"

    def begin(self, site: Site) -> None:
        name, kafka = site.topic(self.kind), site.lab.kafka
        self.grown = name
        site.do(lambda: kafka.add_partitions(name, len(kafka.describe(name)) + self.more))

    def moves(self, place: str) -> bool:
        return bool(self.grown) and f" {self.grown}[" in place


class Denied(TopicFault):
    """The right to write to a topic is revoked and granted again."""

    name = "right to write revoked"
    lasts = (3, 5)

    def draw(self, rng: random.Random) -> None:
        self.kind = rng.choice(["order", "invoice"])
        self.detail = f"on {self.kind}"

    def begin(self, site: Site) -> None:
        site.do(lambda: site.servers.change_rights("--add", *DENIAL, "--topic", site.topic(self.kind)))

    def end(self, site: Site) -> None:
        site.do(lambda: site.servers.change_rights("--remove", *DENIAL, "--topic", site.topic(self.kind)))


class Narrowed(TopicFault):
    """A topic's limit is lowered below some events, and raised again."""

    name = "topic limit lowered"
    lasts = (2, 4)

    def begin(self, site: Site) -> None:
        limit = {"max.message.bytes": str(LOW)}
        site.do(lambda: site.lab.kafka.alter_topic(site.topic("narrow"), **settings({**CONFIG, **limit})))

    def end(self, site: Site) -> None:
        site.do(lambda: site.lab.kafka.alter_topic(site.topic("narrow"), **settings(CONFIG)))


class RefusedFirst(Narrowed):
    """The first record that a relay sends to a topic after its start is one that is refused, with smaller ones
    of the same key right behind it: a broker that does not know the producer yet would take those."""

    name = "refused record first"
    touches = TopicFault.touches | {"relays", "postgres", "network"}

    def begin(self, site: Site) -> None:
        for kept in site.relays:
            kept.held = True
            self.kills += kept.kill()
        super().begin(site)
        written = self._write(site)
        for kept in site.relays:
            kept.held = False
        site.do(lambda: wait_until(lambda: has_all(site, written), 120, "they are dead letters"))

    @staticmethod
    def _write(site: Site) -> list[str]:
        """The ids of the events, in their order."""
        with site.lab.postgres.connect(site.lab.db) as conn:
            found = conn.execute(
                f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
                " SELECT 'narrow', 'first', 'e', jsonb_build_object('fill', (SELECT string_agg(md5(n || '/' || i),"
                " '') FROM generate_series(0, CASE n WHEN 0 THEN %s ELSE 0 END) i))"
                " FROM generate_series(0, 20) n RETURNING id::text",
                [BIG // 32],
            )
            return [event for (event,) in found]


class Deleted(TopicFault):
    """A topic is deleted and made again. What it held is gone, so nobody asks for its events of
    that time; all others arrive as ever, and so do those that are committed after it is back."""

    name = "topic deleted"
    lasts = (1, 4)

    def draw(self, rng: random.Random) -> None:
        self.back_ms: int | None = None

    def destroys(self, event: Event) -> bool:
        return event.kind == "ghost" and (self.back_ms is None or event.committed_ms <= self.back_ms)

    def begin(self, site: Site) -> None:
        site.do(lambda: site.lab.kafka.delete_topics(site.topic("ghost")))

    def end(self, site: Site) -> None:
        site.do(
            lambda: site.lab.kafka.create_topic(
                site.topic("ghost"), KINDS["ghost"], CONFIG, replication_factor=3
            )
        )
        self.back_ms = int(time.time() * 1000)


FAULTS: list[type[Fault]] = [Grown, Denied, Narrowed, RefusedFirst, Deleted]
