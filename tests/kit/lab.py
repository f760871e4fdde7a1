"""One test's own database, slot and topics on the shared servers."""

from __future__ import annotations

from contextlib import contextmanager
from typing import Any, Iterator, Mapping, Sequence

import psycopg

from kit import process
from kit.checker import Checker, Report
from kit.kafka import Kafka
from kit.postgres import Postgres
from kit.relay import ROOT, Config, Relay
from kit.scope import Scope
from kit.wait import wait_until

TABLE = "public.outbox_events"
OUTBOX_SQL = ROOT / "sql" / "outbox_events.sql"
STATE_SQL = ROOT / "sql" / "state.sql"
INSERT = (
    f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
    " VALUES (%s, %s, %s, %s) RETURNING id"
)


class Writer:
    """Writes events on one connection and tells the checker how each transaction ended.

    Several writers may work at once, each in its own thread and with keys of its own.
    """

    def __init__(self, conn: psycopg.Connection[Any], checker: Checker) -> None:
        self.conn = conn
        self.checker = checker
        self._open: list[str] | None = None

    def insert(
        self, key: str | None, payload: str | None = "{}", *, kind: str = "order", event: str = "created"
    ) -> str:
        """Insert one event (payload: JSON text); return its id. Outside transaction() it commits."""
        row = self.conn.execute(INSERT, [kind, key, event, payload]).fetchone()
        assert row is not None
        if self._open is None:
            self.checker.commit(row[0])
        else:
            self._open.append(str(row[0]))
        return str(row[0])

    def number(self, key: str, *numbers: int, kind: str = "order") -> list[str]:
        """Insert an event {"n": N} for each number."""
        return [self.insert(key, f'{{"n": {n}}}', kind=kind) for n in numbers]

    @contextmanager
    def transaction(self, rollback: bool = False) -> Iterator[psycopg.Connection[Any]]:
        """One transaction around the inserts of the block; rolled back on request or exception."""
        self._open, committed = [], False
        try:
            with self.conn.transaction(force_rollback=rollback):
                yield self.conn
            committed = not rollback
        finally:
            ids, self._open = self._open, None
            (self.checker.commit if committed else self.checker.roll_back)(*ids)


class Lab(Scope):
    """A database with an outbox table and a slot called `name`, and topics `{prefix}*` (`name.*`).

    The default configuration publishes aggregate type X to topic `{prefix}X`. A context manager: at
    the end all that was started here is ended, and database, slot and topics are gone.
    """

    def __init__(
        self, postgres: Postgres, kafka: Kafka, name: str, prefix: str | None = None, light: bool = False
    ) -> None:
        self.postgres = postgres
        self.kafka = kafka
        self.db = self.slot = name
        self.prefix = prefix or f"{name}."
        self.directory = process.make_directory(name)
        self.checker = Checker(kafka.bootstrap, self.prefix, light=light)
        self.relays: list[Relay] = []
        self._connections: list[psycopg.Connection[Any]] = []

    def open(self) -> None:
        self.postgres.create_database(self.db)
        self.conn = self.connect()
        self.postgres.psql(self.db, OUTBOX_SQL)
        self.writer = Writer(self.conn, self.checker)

    # ------------------------------------------------------------ the pieces

    def connect(self) -> psycopg.Connection[Any]:
        """A further connection to the lab's database, in autocommit mode."""
        conn = self.postgres.connect(self.db)
        self._connections.append(conn)
        return conn

    def new_writer(self) -> Writer:
        """A writer with a connection of its own, for another thread."""
        return Writer(self.connect(), self.checker)

    def make_slot(self, plugin: str = "wal2json", two_phase: bool = False) -> None:
        """Create the replication slot."""
        self.conn.execute(
            "SELECT pg_create_logical_replication_slot(%s, %s, false, %s)", [self.slot, plugin, two_phase]
        )

    def topic(self, kind: str, partitions: int = 3, config: Mapping[str, str] | None = None) -> str:
        """Create the topic of an aggregate type; return its name."""
        name = self.prefix + kind
        self.kafka.create_topic(name, partitions, config)
        return name

    def config(self, changes: Config | None = None) -> dict[str, dict[str, str]]:
        """The default configuration with the sections of `changes` laid over it."""
        config = {
            "postgres": {"dsn": self.postgres.dsn(self.db), "slot": self.slot},
            f"table {TABLE}": {"topic": self.prefix + "{aggregate_type}"},
            "kafka": {"bootstrap.servers": self.kafka.bootstrap},
        }
        for section, keys in (changes or {}).items():
            config[section] = {**config.get(section, {}), **keys}
        return config

    def relay(
        self,
        changes: Config | None = None,
        *,
        env: Mapping[str, str] | None = None,
        wrapper: Sequence[str] = (),
    ) -> Relay:
        """A relay with the lab's configuration, not started yet. It is killed at the end."""
        name = f"walrelay{len(self.relays) + 1}"
        relay = Relay(self.directory, self.config(changes), name=name, env=env, wrapper=wrapper)
        self.relays.append(relay)
        return relay

    def running_relay(self, changes: Config | None = None) -> Relay:
        """The slot made if it is missing, and a relay that streams from it."""
        if not self.slot_row():
            self.make_slot()
        relay = self.relay(changes)
        relay.start()
        self.wait_streaming(relay)
        return relay

    # ---------------------------------------------------------- observation

    def slot_row(self) -> dict[str, Any]:
        """The slot's row of pg_replication_slots; empty when there is no slot."""
        with self.postgres.connect() as conn:
            cursor = conn.execute("SELECT * FROM pg_replication_slots WHERE slot_name = %s", [self.slot])
            row = cursor.fetchone()
            return dict(zip([c.name for c in cursor.description or []], row)) if row else {}

    def wait_streaming(self, relay: Relay, timeout: float = 20) -> None:
        """Wait until somebody streams from the slot; fails at once when the relay ended."""

        def streaming() -> bool:
            if not relay.running:
                raise RuntimeError(f"the relay ended:\n{relay.log_text()[-3000:]}")
            return bool(self.slot_row().get("active"))

        wait_until(streaming, timeout, lambda: f"the slot is active\n{relay.log_text()[-3000:]}")

    def wait_quiet(self, timeout: float = 15, limit: int = 1 << 20) -> int:
        """Wait until the slot is less than `limit` bytes behind the end of WAL; return the rest."""
        lag = -1

        def near() -> bool:
            nonlocal lag
            lag = self.postgres.slot_lag(self.slot)
            return lag < limit

        wait_until(near, timeout, lambda: f"the slot follows the WAL, it is {lag} bytes behind")
        return lag

    def end_of_wal(self) -> str:
        """Where the WAL ends; just after a COMMIT of the only writer, the end of its transaction."""
        ((lsn,),) = self.postgres.execute("SELECT pg_current_wal_lsn()::text")
        return str(lsn)

    def confirmed_at_least(self, lsn: str) -> bool:
        """Is the slot's confirmed position at or behind `lsn`?"""
        rows = self.postgres.execute(
            "SELECT confirmed_flush_lsn >= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s",
            lsn,
            self.slot,
        )
        return bool(rows and rows[0][0])

    def wait_received(self, timeout: float = 20) -> None:
        """Wait until the relay has read all WAL that exists now: it reads before it speaks. The turn in which it
        speaks first may have read before everything was sent, so it has to speak twice."""
        wait_until(
            lambda: self._of_walsender("sent_lsn >= pg_current_wal_lsn()"), timeout, "everything is sent"
        )
        for _ in range(2):
            self.wait_speaking(0, timeout)

    def wait_speaking(self, seconds: int, timeout: float = 60) -> None:
        """Let that much time pass, to its end with a relay that speaks on its connection."""
        ((now,),) = self.postgres.execute("SELECT clock_timestamp()::text")
        wait_until(
            lambda: self.spoke_after(now, seconds), seconds + timeout, f"the relay speaks for {seconds} s"
        )

    def answered_for(self, seconds: int) -> bool:
        """Has the relay spoken on its connection when this was `seconds` old, or later?"""
        return self._of_walsender(f"reply_time - backend_start > interval '{seconds} s'")

    def spoke_after(self, time: str, seconds: int = 0) -> bool:
        """Has the relay spoken on its connection `seconds` after that time of the server, or later?"""
        return self._of_walsender(f"reply_time > timestamptz '{time}' + interval '{seconds} s'")

    def clock_lead(self) -> float:
        """By how many seconds the relay's clock was ahead of the server's when it last spoke."""
        ((lead,),) = self.postgres.execute(
            "SELECT extract(epoch FROM reply_time - clock_timestamp()) FROM pg_stat_replication"
            " JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = %s",
            self.slot,
        )
        return float(lead)

    def checks_are_held_up(self) -> bool:
        """Does a relay wait for a lock on pg_inherits, which its checks read last?"""
        query = "SELECT 1 FROM pg_locks WHERE relation = 'pg_inherits'::regclass AND NOT granted"
        return bool(self.postgres.execute(query))

    def is_blocked(self) -> bool:
        """Does the slot's walsender wait for a relay that does not read?"""
        return self._of_walsender("wait_event = 'WalSenderWriteData'")

    def _of_walsender(self, condition: str) -> bool:
        rows = self.postgres.execute(
            f"SELECT {condition} FROM pg_stat_replication JOIN pg_stat_activity USING (pid, backend_start)"
            " JOIN pg_replication_slots ON active_pid = pid WHERE slot_name = %s",
            self.slot,
        )
        return bool(rows and rows[0][0])

    def wait_confirmed(self, timeout: float = 20) -> None:
        """Wait until the slot has confirmed all WAL that exists now."""
        lsn = self.end_of_wal()
        wait_until(
            lambda: self.confirmed_at_least(lsn), timeout, lambda: f"confirmed {lsn}: {self.slot_row()}"
        )

    def verify(self, timeout: float = 60, duplicates: int | None = None) -> Report:
        """The three standing checks: everything arrives, the slot follows, the order is right."""
        self.checker.wait_complete(timeout)
        self.wait_confirmed()
        self.wait_quiet()
        return self.checker.check(duplicates)

    # ------------------------------------------------------------------- end

    def close(self) -> None:
        """Kill the relays, close the connections, drop database, slot and topics."""
        for relay in self.relays:
            relay.kill()
        self.checker.close()
        for conn in self._connections:
            conn.close()
        try:
            if self.postgres.running:
                self.postgres.drop_database(self.db)
            if self.kafka.running:
                self.kafka.thaw()
                self.kafka.delete_topics(*self.kafka.topics(self.prefix))
        finally:
            process.remove_directory(self.directory)

    def logs(self) -> Iterator[tuple[str, str]]:
        """Name and last lines of every log, for the report of a failed test."""
        for relay in self.relays:
            yield relay.log.name, relay.log_text()[-6000:]
        yield "PostgreSQL's log", self.postgres.log_text()[-3000:]
