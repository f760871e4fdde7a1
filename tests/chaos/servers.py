"""What a campaign runs on: PostgreSQL, three brokers, and the proxies that stand before them."""

from __future__ import annotations

import secrets
from typing import Sequence

from kit.kafka import SMALL, Cluster
from kit.postgres import Postgres
from kit.proxy import Proxy
from kit.scope import Scope

LISTENER = "RELAY"
RELAYS = ("relay0", "relay1")  # their users; the first one may read topics' configurations, too
PLAIN_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
ACLS = "org.apache.kafka.tools.AclCommand"
WRITING = ("--operation", "Write", "--operation", "Describe")
# What a dead broker led is led by another within seconds, by default it would take ten; and controllers have
# more patience than by default, for machines that do much else.
QUICK = {
    "broker.heartbeat.interval.ms": "1000",
    "broker.session.timeout.ms": "5000",
    "replica.lag.time.max.ms": "4000",
    "controller.quorum.fetch.timeout.ms": "4000",
    "controller.quorum.request.timeout.ms": "4000",
    "controller.quorum.election.timeout.ms": "2000",
    "offsets.topic.replication.factor": "3",
    "log.cleaner.dedupe.buffer.size": str(4 << 20),  # by default it is half of their memory
}


def principals(option: str, users: Sequence[str]) -> list[str]:
    """These users, as kafka-acls takes them."""
    return [word for user in users for word in (option, f"User:{user}")]


class Servers(Scope):
    """Started once for all rounds. Relays reach PostgreSQL and each broker through a proxy of its own, and
    Kafka as users with rights of their own; whoever judges does without both."""

    def __init__(self) -> None:
        self.password = secrets.token_hex(8)
        self.postgres = Postgres(
            # Small: a transaction of thousands of rows is spilled to disk, as large ones are.
            logical_decoding_work_mem="256kB",
            max_wal_size="4GB",
            # Whoever has connected and not said a word, as with a network that has gone silent, keeps a
            # child of the server alive for that long, also when the server is killed.
            authentication_timeout="5s",
        )
        self.to_postgres = Proxy()
        self.to_brokers = [Proxy() for _ in range(3)]
        self.kafka = Cluster(
            3,
            {**QUICK, **self._rights()},
            {LISTENER: "SASL_PLAINTEXT"},
            [{LISTENER: proxy.address} for proxy in self.to_brokers],
            SMALL,
        )

    def _rights(self) -> dict[str, str]:
        listener = f"listener.name.{LISTENER.lower()}.plain"
        users = " ".join(f'user_{user}="{self.password}"' for user in RELAYS)
        return {
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "PLAIN",
            f"{listener}.sasl.jaas.config": f"{PLAIN_LOGIN} required {users};",
        }

    @property
    def proxies(self) -> list[Proxy]:
        return [self.to_postgres, *self.to_brokers]

    def open(self) -> None:
        for proxy in self.proxies:
            proxy.open()
        self.postgres.open()
        self.to_postgres.target = f"127.0.0.1:{self.postgres.port}"
        self.kafka.open()
        for proxy, broker in zip(self.to_brokers, self.kafka.brokers):
            proxy.target = broker.address(LISTENER)
        for users, rights in ((RELAYS, WRITING), (RELAYS[:1], ("--operation", "DescribeConfigs"))):
            self.change_rights("--add", *principals("--allow-principal", users), *rights, "--topic", "*")

    def close(self) -> None:
        self.kafka.close()
        self.postgres.close()
        for proxy in self.proxies:
            proxy.close()

    def heal(self) -> None:
        """Everything runs and lets everything pass again."""
        for proxy in self.proxies:
            proxy.heal()
        if not self.postgres.running:
            self.postgres.start()
        self.kafka.heal()

    def change_rights(self, *words: str) -> None:
        """Run kafka-acls."""
        broker = self.kafka.brokers[0]
        broker.tool(ACLS, "--bootstrap-server", broker.bootstrap, "--force", *words)

    def kafka_settings(self, number: int) -> dict[str, str]:
        """The [kafka] section of that relay."""
        return {
            "bootstrap.servers": ",".join(proxy.address for proxy in self.to_brokers),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": RELAYS[number],
            "sasl.password": self.password,
        }
