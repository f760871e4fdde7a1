"""An application that does not stop: writers of several kinds, each in a thread with a connection of its own.

They need not remember what they wrote: the witness and the table tell.
"""

from __future__ import annotations

import itertools
import json
import random
import threading
from typing import Any, Callable, Iterator

import psycopg

from chaos.site import BIG, ODD, Site
from kit.lab import TABLE

COLUMNS = "(aggregate_type, aggregate_id, event_type, payload)"
KEYS = 8
FLAWS = {"none": 92, "large": 3, "no key": 2, "no partition": 2, "no topic": 1}  # and how often
Connection = psycopg.Connection[Any]


class Writers:
    """They write for as long as the block runs."""

    def __init__(self, site: Site, seed: int) -> None:
        self.site = site
        self._stop = threading.Event()
        self._failures: list[BaseException] = []
        self._threads = [
            threading.Thread(target=self._run, args=(turn, random.Random(f"{seed} {turn.__name__}")), daemon=True)
            for turn in (single, mixed, huge, copied, prepared, poisoned, unrelated, altered)
        ]

    def __enter__(self) -> "Writers":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        """End all of them; a failure that is not the server's is ours."""
        self._stop.set()
        for thread in self._threads:
            thread.join(60)
        if self._failures:
            raise self._failures[0]

    def _run(self, turn: Callable[[Connection, random.Random], float], rng: random.Random) -> None:
        while not self._stop.is_set():
            try:
                with self.site.lab.postgres.connect(self.site.lab.db, connect_timeout=2) as conn:
                    # A lock that another writer's prepared transaction holds is not worth the wait.
                    conn.execute("SET lock_timeout = '1s'; SET statement_timeout = '20s'")
                    while not self._stop.wait(turn(conn, rng)):
                        pass
            except psycopg.Error:
                self._stop.wait(0.1)
            except BaseException as failure:
                self._failures.append(failure)
                return


# ------------------------------------------------------------------------- turns
# Each writes something and returns how many seconds to wait before the next.


def single(conn: Connection, rng: random.Random) -> float:
    """One event, committed at once; now and then a large one."""
    put(conn, rng)
    return rng.expovariate(100)


def mixed(conn: Connection, rng: random.Random) -> float:
    """A transaction of events and other rows, with savepoints; parts or all of it rolled back."""
    with conn.transaction(force_rollback=rng.random() < 0.2):
        for _ in range(rng.randint(1, 5)):
            with conn.transaction(force_rollback=rng.random() < 0.3):
                put(conn, rng, rng.randint(1, 4))
            put(conn, rng)
            conn.execute("INSERT INTO noise VALUES (1)")
    return rng.expovariate(20)


def huge(conn: Connection, rng: random.Random) -> float:
    """Thousands of events in one transaction."""
    conn.execute(
        f"INSERT INTO {TABLE} {COLUMNS} SELECT %s, 'huge' || n %% 5, 'e',"
        " jsonb_build_object('n', n, 'fill', repeat('h', 300)) FROM generate_series(1, %s) n",
        [rng.choice(["order", "invoice"]), rng.randint(1000, 4000)],
    )
    return rng.uniform(2, 5)


def copied(conn: Connection, rng: random.Random) -> float:
    """COPY."""
    with conn.cursor().copy(f"COPY {TABLE} {COLUMNS} FROM STDIN") as copy:
        for values in events(rng, rng.randint(5, 200)):
            copy.write_row(values)
    return rng.uniform(0.3, 1)


_prepared = itertools.count(1)


def prepared(conn: Connection, rng: random.Random) -> float:
    """PREPARE TRANSACTION, later COMMIT or ROLLBACK PREPARED; one that is cut off is ended by heal()."""
    name = f"{conn.info.dbname}.{next(_prepared)}"
    conn.execute("BEGIN")
    put(conn, rng, rng.randint(1, 5))
    conn.execute(f"PREPARE TRANSACTION '{name}'")
    conn.execute("SELECT pg_sleep(%s)", [rng.uniform(0, 0.5)])
    conn.execute(f"{rng.choice(['COMMIT', 'COMMIT', 'ROLLBACK'])} PREPARED '{name}'")
    return rng.uniform(0.1, 0.5)


def poisoned(conn: Connection, rng: random.Random) -> float:
    """A transaction of events to a topic that refuses some of them, all with the same few keys."""
    with conn.transaction():
        conn.cursor().executemany(
            f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload, place)"
            " VALUES (%s, %s, 'e', %s, %s)",
            [suspicious(rng) for _ in range(rng.choice([1, 2, 3, 20]))],
        )
    return rng.expovariate(6)


def unrelated(conn: Connection, rng: random.Random) -> float:
    """What does not concern the outbox."""
    conn.execute("INSERT INTO noise SELECT generate_series(1, %s)", [rng.randint(1, 500)])
    return rng.expovariate(20)


def altered(conn: Connection, rng: random.Random) -> float:
    """A column comes, gets another name, goes."""
    found = conn.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attname IN ('note', 'remark')", [TABLE]
    ).fetchone()
    if found is None:
        conn.execute(f"ALTER TABLE {TABLE} ADD COLUMN note text DEFAULT 'none'")
    elif found[0] == "note":
        conn.execute(f"ALTER TABLE {TABLE} RENAME COLUMN note TO remark")
    else:
        conn.execute(f"ALTER TABLE {TABLE} DROP COLUMN remark")
    return rng.uniform(0.5, 1.5)


# ------------------------------------------------------------------------ events


def put(conn: Connection, rng: random.Random, count: int = 1) -> None:
    with conn.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {TABLE} {COLUMNS} VALUES (%s, %s, %s, %s)", list(events(rng, count)))


def events(rng: random.Random, count: int) -> Iterator[tuple[str, str | None, str, str | None]]:
    """Events of all kinds: few keys, so that order matters; some without key or payload."""
    for _ in range(count):
        kind = rng.choices(["order", "invoice", "narrow", "ghost"], [10, 5, 2, 1])[0]
        key = f"k{rng.randrange(KEYS)}" if rng.random() < 0.95 else None
        size = BIG if kind == "narrow" and rng.random() < 0.2 else rng.randrange(200)
        payload = json.dumps({"fill": rng.randbytes(size // 2).hex()}) if rng.random() < 0.95 else None
        yield kind, key, "e", payload


def suspicious(rng: random.Random) -> tuple[str, str | None, str, int | None]:
    """Kind, key, payload and partition of an event that Kafka refuses now and then."""
    (flaw,) = rng.choices(list(FLAWS), list(FLAWS.values()))
    kind = "no/topic" if flaw == "no topic" else "strict"
    key = None if flaw == "no key" else f"k{rng.randrange(KEYS)}"
    size = BIG if flaw == "large" else rng.randrange(200)
    return kind, key, json.dumps({"fill": rng.randbytes(size // 2).hex()}), ODD if flaw == "no partition" else None
