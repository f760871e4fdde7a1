"""What strikes the network between a relay and its peers."""

from __future__ import annotations

import random

from chaos.faults.base import Fault
from chaos.site import Site
from kit.proxy import Proxy


class NetworkFault(Fault):
    """Strikes the way to PostgreSQL or to all brokers."""

    touches = frozenset({"network"})

    def draw(self, rng: random.Random) -> None:
        self.postgres = rng.random() < 0.5
        self.detail = "to PostgreSQL" if self.postgres else "to Kafka"

    def proxies(self, site: Site) -> list[Proxy]:
        return [site.servers.to_postgres] if self.postgres else site.servers.to_brokers

    def end(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.heal()


class Cut(NetworkFault):
    """All connections reset; new ones are welcome."""

    name = "connections cut"
    weight = 2

    def begin(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.cut()


class Refused(NetworkFault):
    """All connections reset, and none accepted for a while."""

    name = "connections refused"
    lasts = (0.5, 3)

    def begin(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.refuse()


class Delayed(NetworkFault):
    """Everything arrives late, in one direction or both."""

    name = "network delayed"
    lasts = (1, 4)

    def draw(self, rng: random.Random) -> None:
        super().draw(rng)
        self.there, self.back = rng.choice([(0.1, 0), (0, 0.1), (0.05, 0.2)])
        self.detail += f" by {self.there} s, and {self.back} s back"

    def begin(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.to_server.delay, proxy.to_client.delay = self.there, self.back


class Silent(NetworkFault):
    """Connections stay and nothing passes, as behind a firewall that has forgotten them."""

    name = "network silent"
    lasts = (1, 6)

    def begin(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.freeze()


class AnswersLost(NetworkFault):
    """What the peer says is swallowed and then the connections are reset: Kafka has written, and the relay
    does not know; or PostgreSQL has sent, and nobody has read."""

    name = "answers lost"
    weight = 2
    lasts = (0.3, 3)

    def begin(self, site: Site) -> None:
        for proxy in self.proxies(site):
            proxy.to_client.drop = True


FAULTS = [Cut, Refused, Delayed, Silent, AnswersLost]
