"""The polling relay of the outbox pattern, poller.c: it reads the table, not the WAL."""

from __future__ import annotations

from typing import ClassVar

from bench.contenders import PROGRAMS, Contender
from bench.world import World

LIMIT = 200
INTERVAL_MS = 100  # most sleep longer


class Poller(Contender):
    """So many workers that share the table."""

    plugin = None
    workers: ClassVar[int]

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        """All rows are to be published, and the planner knows the table."""
        super().prepare(world, slot, prefix)
        table = world.table
        world.conn.execute(f"UPDATE {table} SET processed_at = NULL WHERE processed_at IS NOT NULL")
        world.conn.execute(f"VACUUM ANALYZE {table}")
        self.command = [
            PROGRAMS / "poller", f"{world.dsn} application_name=poller", prefix, world.kafka.bootstrap,
            str(LIMIT), str(INTERVAL_MS),
        ]  # fmt: skip

    def start(self) -> None:
        for _ in range(self.workers):
            super().start()

    def serving(self, world: World, slot: str) -> list[int]:
        """Its sessions, when all are there."""
        rows = world.conn.execute("SELECT pid FROM pg_stat_activity WHERE application_name = 'poller'")
        pids = [pid for (pid,) in rows]
        return pids if len(pids) == self.workers else []

    def finished(self, world: World) -> bool:
        """Is no row left that nobody has processed?"""
        row = world.conn.execute(
            f"SELECT NOT EXISTS (SELECT FROM {world.table} WHERE processed_at IS NULL)"
        ).fetchone()
        return bool(row and row[0])


class Poller1(Poller):
    name = "poller-1"
    workers = 1


class Poller4(Poller):
    """Four workers: while one still publishes its batch, another may publish later events of its keys."""

    name = "poller-4"
    workers = 4
    keeps_order = False
