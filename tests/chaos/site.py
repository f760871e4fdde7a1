"""What a round happens in: a database, topics, two relays, and a witness who knows what was committed."""

from __future__ import annotations

import contextlib
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Callable

import psycopg
from confluent_kafka import KafkaException

from chaos.keeper import Kept
from chaos.servers import Servers
from kit.dead_letters import make_letters
from kit.lab import STATE_SQL, TABLE, Lab
from kit.postgres import Postgres
from kit.scope import Scope
from kit.wait import wait_until

# Kind of event: partitions of its topic. `narrow` gets records that a lowered limit refuses, `ghost` is
# deleted and made again, `strict` refuses some of its records from the beginning.
KINDS = {"order": 3, "invoice": 2, "narrow": 1, "ghost": 1, "strict": 2}
CONFIG = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
LOW = 2000  # a limit
BIG = 3 * LOW  # bytes of a payload that it refuses, compressed or not
ODD = 5  # a partition that there is not
CONFIGS = {"strict": {**CONFIG, "max.message.bytes": str(LOW), "cleanup.policy": "compact"}}
WAL_SENDER_TIMEOUT = 4


class Site(Scope):
    """A lab on the servers of the campaign, with two relays: one streams, the other stands by.

    Kafka stamps each record when it is appended, so that it can be told what was there when the
    server said that it was confirmed.
    """

    def __init__(self, servers: Servers, name: str, allowed: set[int]) -> None:
        self.servers = servers
        self.lab = Lab(servers.postgres, servers.kafka.brokers[0], name, light=True)
        self.witness = f"{name}_witness"
        self.relays: list[Kept] = []
        self.primaries = [servers.postgres]  # the last one takes writes
        self._allowed = allowed
        self._thread = ThreadPoolExecutor(1)

    def open(self) -> None:
        self.lab.open()
        self.lab.conn.execute("CREATE TABLE noise (n bigint)")
        self.lab.conn.execute(f"ALTER TABLE {TABLE} ADD COLUMN place int")
        for kind, partitions in KINDS.items():
            self.lab.kafka.create_topic(
                self.topic(kind), partitions, CONFIGS.get(kind, CONFIG), replication_factor=3
            )
        self.lab.postgres.psql(self.lab.db, STATE_SQL, role="postgres")
        make_letters(self.lab)
        self.make_slots()
        for number in range(2):
            relay = self.lab.relay(self._settings(number))
            self.relays.append(Kept(relay, self._allowed))
            self.relays[-1].start()
            self.lab.wait_streaming(self.relays[0].relay)

    def close(self) -> None:
        self._thread.shutdown()
        with contextlib.suppress(KafkaException):  # topics that stay are in nobody's way
            self.lab.close()
        for old in self.primaries[:-1]:
            old.close()

    def make_slots(self) -> None:
        """The relays' slot and the witness's, on the server that takes writes; both begin before anything is
        written there."""
        self.lab.make_slot()
        self.lab.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'test_decoding')", [self.witness])

    def _settings(self, number: int) -> dict[str, dict[str, str]]:
        dsn = self.lab.postgres.dsn(
            self.lab.db,
            port=self.servers.to_postgres.port,
            application_name=f"relay{number}",
            options=f"-c wal_sender_timeout={WAL_SENDER_TIMEOUT}s",
        )
        return {
            "postgres": {"dsn": dsn},
            f"table {TABLE}": {"partition": "place"},
            "kafka": self.servers.kafka_settings(number),
            "dead_letters": {"retry_initial": "500ms", "retry_max": "2s", "max_attempts": "3"},
            "relay": {"memory": "2MB", "shutdown_timeout": "3s"},
        }

    # ---------------------------------------------------------------- relays

    def streaming(self) -> int:
        """The relay that streams; 0 when nobody can tell."""
        query = (
            "SELECT right(application_name, 1)::int FROM pg_stat_replication"
            " JOIN pg_replication_slots ON active_pid = pid"
            " WHERE slot_name = %s AND application_name IN ('relay0', 'relay1')"
        )
        try:
            rows = self.lab.postgres.execute(query, self.lab.slot)
        except psycopg.OperationalError:
            return 0
        return int(rows[0][0]) if rows else 0

    def relay(self, streams: bool) -> Kept:
        """The relay that streams, or the other one."""
        return self.relays[self.streaming() if streams else 1 - self.streaming()]

    def look(self) -> None:
        """Start the relays that have ended again."""
        for kept in self.relays:
            kept.look()

    def ends(self, code: int) -> int:
        """How often relays have ended with this code."""
        return sum(kept.exits.count(code) for kept in self.relays)

    # --------------------------------------------------------------- primary

    def lead(self, server: Postgres) -> None:
        """Relays are led to this server from now on."""
        self.servers.postgres = server
        self.servers.to_postgres.target = f"127.0.0.1:{server.port}"

    def move(self, server: Postgres) -> None:
        """This server has taken the place of the one before, and the slots are yet to be made."""
        self.lab.conn.close()
        self.lab.conn = server.connect(self.lab.db)
        self.make_slots()
        self.lab.postgres = server  # writers find it from here on
        self.primaries.append(server)

    # ------------------------------------------------------------------ work

    def do(self, work: Callable[[], object]) -> None:
        """Do something slow; relays that end meanwhile are started again."""
        doing = self._thread.submit(work)
        while not doing.done():
            self.look()
            time.sleep(0.02)
        doing.result()

    def topic(self, kind: str) -> str:
        return self.lab.prefix + kind

    def heal(self) -> None:
        """Servers, network and relays are as they were in the beginning."""
        self.servers.heal()
        for kept in self.relays:
            kept.held = False
            kept.relay.thaw()
            kept.relay.wrapper = []
        self._end_prepared()

    def _end_prepared(self) -> None:
        """Commit or roll back, as it falls, what a writer has prepared and not ended."""
        with self.lab.postgres.connect(self.lab.db) as conn:
            rows = conn.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", [self.lab.db]).fetchall()
            for number, (gid,) in enumerate(rows):
                verb = "COMMIT" if number % 2 == 0 else "ROLLBACK"
                conn.execute(f"{verb} PREPARED '{gid}'")

    def wait_streaming(self, timeout: float) -> None:
        """Wait until one relay streams; the keeper goes on meanwhile."""

        def streams() -> bool:
            self.look()
            return bool(self.lab.slot_row().get("active"))

        wait_until(streams, timeout, lambda: f"a relay streams\n{self.logs()}")

    def keep_logs(self, directory: Path) -> Path:
        """Copy the logs of relays and PostgreSQL there; return the directory."""
        directory.mkdir(parents=True, exist_ok=True)
        for kept in self.relays:
            shutil.copy(kept.relay.log, directory)
        for number, server in enumerate(self.primaries):
            shutil.copy(server.log, directory / f"postgres{number}.log")
        return directory

    def logs(self) -> str:
        return "\n".join(f"--- {name}\n{text}" for name, text in self.lab.logs())


def settings(config: dict[str, str]) -> dict[str, str | int]:
    """A topic's configuration as alter_topic() takes it; that sets what is not named back to the default."""
    return {name.replace(".", "_"): value for name, value in config.items()}
