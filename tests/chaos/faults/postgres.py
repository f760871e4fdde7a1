"""What strikes PostgreSQL."""

from __future__ import annotations

import random

import psycopg
from psycopg.pq import ExecStatus

from chaos.faults.base import Fault, Step
from chaos.site import Site
from kit.postgres import Postgres
from kit.wait import wait_until

SLOT_EXIT = 66


class ServerFault(Fault):
    touches = frozenset({"postgres"})


class Restarted(ServerFault):
    """A fast restart, as an upgrade does it. A relay that cannot confirm has to leave a server that shuts
    down. Whoever connects and gets no answer keeps it from that, though, for as long as some come: there must
    be a network."""

    name = "PostgreSQL restarted"
    weight = 2

    def begin(self, site: Site) -> None:
        site.servers.to_postgres.heal()
        site.lab.postgres.restart()


class Crashed(ServerFault):
    """An immediate restart: no checkpoint, and whoever was connected is cut off."""

    name = "PostgreSQL crashed"
    weight = 2

    def begin(self, site: Site) -> None:
        site.lab.postgres.restart("immediate")
        self.kills += 1


class Killed(ServerFault):
    """kill -9 of the postmaster: its children notice, and the next start has to wait for their end."""

    name = "PostgreSQL killed"

    def begin(self, site: Site) -> None:
        self.kills += 1
        site.lab.postgres.kill()
        site.lab.postgres.start()


class Checkpointed(ServerFault):
    """Saves the slots: what the next crash of the server moves back, it moves back to here."""

    name = "checkpoint"

    def begin(self, site: Site) -> None:
        site.lab.postgres.execute("CHECKPOINT")


class SenderTerminated(ServerFault):
    """pg_terminate_backend() of the walsender, a few times."""

    name = "walsender terminated"
    weight = 2

    def draw(self, rng: random.Random) -> None:
        self.times = rng.randint(1, 4)
        self.detail = f"{self.times} times"

    def steps(self) -> list[Step]:
        return [(0.4 * turn, self.begin) for turn in range(self.times)]

    def begin(self, site: Site) -> None:
        end_stream(site)


class SlotBusy(ServerFault):
    """Somebody else streams from the slot, and confirms nothing; both relays have to stand by."""

    name = "slot busy"
    lasts = (1, 4)

    def begin(self, site: Site) -> None:
        self.stranger = psycopg.connect(
            site.lab.postgres.dsn(site.lab.db, replication="database"), autocommit=True
        )
        wait_until(lambda: self._taken(site), 30, "the slot is taken from the relay", interval=0)

    def end(self, site: Site) -> None:
        self.stranger.close()

    def _taken(self, site: Site) -> bool:
        command = f'START_REPLICATION SLOT "{site.lab.slot}" LOGICAL 0/0'
        if self.stranger.pgconn.exec_(command.encode()).status == ExecStatus.COPY_BOTH:
            return True
        end_stream(site)
        return False


class Promoted(ServerFault):
    """The primary dies and its replica takes its place. Up to PostgreSQL 16 the slot is gone: relays end with 66
    until somebody has made it again, which happens here before the application writes.

    What the old primary had committed and not yet confirmed may be missing in Kafka, and is counted as left
    behind; what it had confirmed must be there, and so must all that is committed on the new one.
    """

    name = "replica promoted"
    weight = 0.5
    touches = frozenset({"postgres", "relays", "network"})
    allowed = frozenset({SLOT_EXIT})

    def begin(self, site: Site) -> None:
        old = site.lab.postgres
        new = old.replica()
        new.start()
        new.wait_replayed(site.lab.end_of_wal())
        self.kills += 1
        old.kill()
        new.promote()
        ends = site.ends(SLOT_EXIT)
        site.lead(new)
        site.do(lambda: wait_until(lambda: site.ends(SLOT_EXIT) > ends, 60, "a relay misses the slot"))
        self._forget(new, site.lab.db)
        site.move(new)

    @staticmethod
    def _forget(server: Postgres, db: str) -> None:
        """No transaction is left prepared, as a slot would wait for it; and what the relays have written down
        of the old slot does not hold for the new one."""
        with server.connect(db) as conn:
            for (gid,) in conn.execute("SELECT gid FROM pg_prepared_xacts WHERE database = %s", [db]).fetchall():
                conn.execute(f"ROLLBACK PREPARED '{gid}'")
            if conn.execute("SELECT to_regclass('public.walrelay_state')").fetchall() != [(None,)]:
                conn.execute("DELETE FROM public.walrelay_state")


def end_stream(site: Site) -> None:
    """Terminate the walsender that serves the slot, if there is one."""
    site.lab.postgres.execute(
        "SELECT pg_terminate_backend(active_pid) FROM pg_replication_slots WHERE slot_name = %s AND active",
        site.lab.slot,
    )


FAULTS: list[type[Fault]] = [Restarted, Crashed, Killed, Checkpointed, SenderTerminated, SlotBusy, Promoted]
