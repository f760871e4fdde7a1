"""What a run happens in: the servers, and on them one database with a backlog that is read again and again."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kit import process
from kit.checker import Checker
from kit.dead_letters import LETTERS, LETTERS_SQL
from kit.kafka import Kafka
from kit.lab import OUTBOX_SQL, STATE_SQL, TABLE
from kit.postgres import Postgres
from kit.scope import Scope
from kit.wait import wait_until

HELD = "held"
SETTLE_S = 0.5
SETTLE_LIMIT_S = 120
AT_REST = 0.1  # of a core
PUBLICATION = "bench"


class Servers(Scope):
    """A private PostgreSQL and a private Kafka for all cases of a part.

    `fsync`: commits wait for the disk, as they do in production; the kit's servers do not.
    """

    def __init__(self, fsync: bool = False, **settings: str | int) -> None:
        durable = {"fsync": "on", "full_page_writes": "on"} if fsync else {}
        self.postgres = Postgres(
            max_wal_size="16GB", checkpoint_timeout="1h", max_replication_slots=20, **durable, **settings
        )
        self.kafka = Kafka(jmx=True, java_options=["-Xms1g", "-Xmx1g"])  # as Kafka's own start script

    def open(self) -> None:
        self.postgres.open()
        self.kafka.open()

    def close(self) -> None:
        self.kafka.close()
        self.postgres.close()


@dataclass(frozen=True)
class Load:
    """A backlog. Each event has a number, n in its payload, in commit order."""

    rows: int = 500_000
    each: int = 100  # rows of a transaction
    payload: int = 200  # bytes of a payload, about
    partitions: int = 3
    topics: int = 1
    keys: int = 1000
    tables: int = 1
    unrelated: int = 0  # transactions of one row of another table, before all others
    compacted: bool = False  # the topics, which then take no event without a key
    poison: int = 0  # one of so many events has none; 0: all have

    def kinds(self) -> list[str]:
        """The aggregate types: one topic for each."""
        return ["order"] if self.topics == 1 else [f"order{i}" for i in range(self.topics)]

    @property
    def refused(self) -> int:
        """How many events Kafka does not take."""
        return self.rows // self.poison if self.poison else 0


class World(Scope):
    """A database with outbox tables, a publication, and a slot held at its beginning, on `servers`.

    Contenders read copies of that slot, so all get the same WAL. A context manager; at the end
    database and slots are gone.
    """

    def __init__(self, servers: Servers, load: Load) -> None:
        self.postgres, self.kafka, self.load = servers.postgres, servers.kafka, load
        self.db = "bench"
        self.table = TABLE
        self.tables = [TABLE, *(f"public.outbox_{i}" for i in range(2, load.tables + 1))]
        self.directory: Path = process.make_directory("bench")
        self.end = ""
        self._ids: list[str] = []
        self._runs = 0

    def open(self) -> None:
        self.postgres.create_database(self.db)
        self.conn = self.postgres.connect(self.db)
        self.postgres.psql(self.db, OUTBOX_SQL)
        self.postgres.psql(self.db, STATE_SQL, role="postgres")  # as `walrelay setup` does
        if self.load.compacted:
            self.postgres.psql(self.db, LETTERS_SQL, role="postgres")
        for table in self.tables[1:]:
            self.conn.execute(f"CREATE TABLE {table} (LIKE {TABLE} INCLUDING ALL)")
        self.conn.execute("CREATE TABLE unrelated (n bigint)")
        self.conn.execute(f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {', '.join(self.tables)}")
        self.conn.execute("SELECT pg_create_logical_replication_slot(%s, 'wal2json')", [HELD])

    def close(self) -> None:
        if hasattr(self, "conn"):
            self.conn.close()
        if self.postgres.running:
            self.postgres.drop_database(self.db)
        process.remove_directory(self.directory)

    @property
    def dsn(self) -> str:
        """A connection string of the superuser, password included."""
        return self.postgres.dsn(self.db)

    # -------------------------------------------------------------- the load

    def fill(self) -> None:
        """Write the backlog and note where the WAL ends then."""
        load = self.load
        self.conn.execute("SET synchronous_commit = off")
        self._transactions(load.unrelated, ["INSERT INTO unrelated VALUES (t)"])
        inserts = [self._insert(i) for i in range(load.tables)]
        self._transactions(load.rows // load.each, inserts)
        self.conn.execute("RESET synchronous_commit")
        self.mark_end()
        self.conn.execute("CHECKPOINT")  # so that no contender has the disk to itself less than others

    def start_over(self) -> None:
        """No rows and no held slot: what comes next is written while a contender runs."""
        self.postgres.drop_slot(HELD)
        self.conn.execute(f"TRUNCATE {', '.join(self.tables)}")
        self._ids = []

    def mark_end(self) -> None:
        """The end of the WAL is where contenders have to get; a little more lies behind it."""
        row = self.conn.execute("SELECT pg_current_wal_insert_lsn()::text").fetchone()
        assert row is not None
        self.end = str(row[0])
        self.conn.execute("SELECT pg_logical_emit_message(true, 'bench', 'end')")

    def _transactions(self, count: int, statements: list[str]) -> None:
        """`count` transactions in a loop over t = 0, 1, ...: one of the statements each, in turn."""
        cases = "".join(f"WHEN {i} THEN {statement}; " for i, statement in enumerate(statements))
        if count:
            self.conn.execute(
                f"DO $$ BEGIN FOR t IN 0..{count - 1} LOOP"
                f" CASE t % {len(statements)} {cases} END CASE; COMMIT; END LOOP; END $$"
            )

    def _insert(self, table: int) -> str:
        load = self.load
        kind = "'order'" if load.topics == 1 else f"'order' || n % {load.topics}"
        return (
            f"INSERT INTO {self.tables[table]} (aggregate_type, aggregate_id, event_type, payload)"
            f" SELECT {kind}, {self._key()}, 'OrderPlaced', {payload(load.payload)}"
            f" FROM generate_series(t * {load.each}::bigint + 1, (t + 1) * {load.each}::bigint) n"
        )

    def _key(self) -> str:
        key = f"'order-' || n % {self.load.keys}"
        return f"CASE WHEN n % {self.load.poison} > 0 THEN {key} END" if self.load.poison else key

    def ids(self) -> list[str]:
        """The ids of all events that Kafka takes, in commit order."""
        if not self._ids:
            union = " UNION ALL ".join(
                f"SELECT id, payload FROM {table} WHERE aggregate_id IS NOT NULL"
                for table in self.tables
            )
            rows = self.conn.execute(f"SELECT id::text FROM ({union}) e ORDER BY (payload->>'n')::bigint")
            self._ids = [event for (event,) in rows]
        return self._ids

    # ----------------------------------------------------------------- a run

    def next_run(self, topics: bool = True) -> str:
        """A new name for a run's slot and topics, and the topics, `{name}.order`."""
        self._runs += 1
        name = f"run{self._runs}"
        if topics:
            self.kafka.create_topics({f"{name}.{kind}": self.load.partitions for kind in self.load.kinds()})
            for kind in self.load.kinds() if self.load.compacted else ():
                self.kafka.alter_topic(f"{name}.{kind}", cleanup_policy="compact")
        return name

    def settle(self) -> None:
        """Wait until the broker is at rest: topics that were made or deleted keep it busy for seconds."""
        used = -math.inf

        def is_at_rest() -> bool:
            nonlocal used
            before, used = used, process.cpu_seconds(self.kafka.pid)
            return used - before < AT_REST * SETTLE_S

        wait_until(is_at_rest, SETTLE_LIMIT_S, "Kafka is at rest", interval=SETTLE_S)

    def forget_run(self, name: str) -> None:
        """Drop the run's slot, if it has one, and its topics."""
        self.postgres.drop_slot(name)
        self.kafka.delete_topics(*self.kafka.topics(f"{name}."))

    def copy_slot(self, name: str, plugin: str) -> None:
        """A slot `name` that stands at the beginning of the backlog."""
        self.conn.execute(
            "SELECT pg_copy_logical_replication_slot(%s, %s, false, %s)", [HELD, name, plugin]
        )

    def make_slot(self, name: str, plugin: str) -> None:
        """A slot `name` that begins now."""
        self.conn.execute("SELECT pg_create_logical_replication_slot(%s, %s)", [name, plugin])

    def dead_letters(self, slot: str) -> int:
        """How many events of a run Kafka has not taken."""
        row = self.conn.execute(f"SELECT count(*) FROM {LETTERS} WHERE slot = %s", [slot]).fetchone()
        assert row is not None
        return int(row[0])

    def is_confirmed(self, slot: str) -> bool:
        """Has the slot's position reached the end of the backlog?"""
        return bool(self._of_slot(slot, f"confirmed_flush_lsn >= '{self.end}'"))

    def kept_bytes(self, slot: str) -> int:
        """WAL that the server keeps for the slot."""
        return int(self._of_slot(slot, "pg_current_wal_lsn() - restart_lsn"))

    def walsender(self, slot: str) -> int:
        """Process id of the walsender that streams from the slot; 0 when nobody does."""
        return int(self._of_slot(slot, "active_pid") or 0)

    def _of_slot(self, slot: str, expression: str) -> Any:
        row = self.conn.execute(
            f"SELECT {expression} FROM pg_replication_slots WHERE slot_name = %s", [slot]
        ).fetchone()
        return row[0] if row else None

    def checker(self, prefix: str) -> Checker:
        """A checker that knows all events of the backlog."""
        checker = Checker(self.kafka.bootstrap, prefix, light=True)
        checker.commit(*self.ids())
        return checker


def payload(size: int) -> str:
    """SQL: a JSON object with the number n and text that does not compress to nothing, about
    `size` bytes."""
    fill = max(size - 90, 0)
    hashes = "md5(n::text) || md5((-n)::text) || md5((n * 7)::text) || md5((n * 11)::text)"
    return (
        "jsonb_build_object('n', n, 'status', 'placed', 'customer', md5(n::text),"
        f" 'note', left(repeat({hashes}, {fill // 128 + 1}), {fill}))"
    )

