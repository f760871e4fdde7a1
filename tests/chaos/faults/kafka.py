"""What strikes the brokers."""

from __future__ import annotations

import random

from chaos.faults.base import Fault
from chaos.site import Site


class BrokerFault(Fault):
    touches = frozenset({"brokers"})

    def draw(self, rng: random.Random) -> None:
        self.number = rng.randrange(3)
        self.detail = f"number {self.number + 1}"


class Killed(BrokerFault):
    """kill -9 of a broker, which starts again after a while."""

    name = "broker killed"
    weight = 2
    lasts = (1, 6)

    def begin(self, site: Site) -> None:
        self.kills += 1
        site.servers.kafka.brokers[self.number].kill()

    def end(self, site: Site) -> None:
        site.servers.kafka.brokers[self.number].launch()


class AllKilled(Fault):
    """kill -9 of all brokers."""

    name = "all brokers killed"
    weight = 0.3
    touches = frozenset({"brokers"})
    lasts = (0.5, 2)

    def begin(self, site: Site) -> None:
        for broker in site.servers.kafka.brokers:
            self.kills += 1
            broker.kill()

    def end(self, site: Site) -> None:
        for broker in site.servers.kafka.brokers:
            broker.launch()


class Frozen(BrokerFault):
    """Stopped and continued: short enough to stay a leader, or long enough to lose that."""

    name = "broker frozen"
    weight = 2
    lasts = (0.5, 7)

    def begin(self, site: Site) -> None:
        site.servers.kafka.brokers[self.number].freeze()

    def end(self, site: Site) -> None:
        site.servers.kafka.brokers[self.number].thaw()


class AllFrozen(Fault):
    """All stopped and continued."""

    name = "all brokers frozen"
    touches = frozenset({"brokers"})
    lasts = (0.5, 5)

    def begin(self, site: Site) -> None:
        for broker in site.servers.kafka.brokers:
            broker.freeze()

    def end(self, site: Site) -> None:
        for broker in site.servers.kafka.brokers:
            broker.thaw()


FAULTS = [Killed, AllKilled, Frozen, AllFrozen]
