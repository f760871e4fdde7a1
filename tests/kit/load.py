"""Events in numbers: a backlog at once, or a writer that goes on beside the test.

Each event's payload has a number n, and n grows in commit order; the table tells afterwards
which of them were committed, also when a connection broke in the middle of a COMMIT.
"""

from __future__ import annotations

import threading
from typing import Any

import psycopg

from kit.lab import TABLE, Lab

NUMBER = "(payload->>'n')::bigint"


def rows(first: str, last: str, kind: str, keys: int, fill: int) -> str:
    """SQL that inserts the events `first` to `last`, each with `fill` bytes beside its number."""
    return (
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        f" SELECT '{kind}', 'k' || n % {keys}, 'created',"
        f" jsonb_build_object('n', n, 'fill', repeat('x', {fill}))"
        f" FROM generate_series({first}, {last}) n"
    )


def write_backlog(
    lab: Lab,
    events: int,
    *,
    kind: str = "order",
    start: int = 0,
    each: int = 100,
    keys: int = 50,
    fill: int = 100,
) -> None:
    """Commit the events start + 1 to start + `events`, `each` of them a transaction."""
    assert events % each == 0
    insert = rows(f"{start} + t * {each} + 1", f"{start} + (t + 1) * {each}", kind, keys, fill)
    lab.conn.execute(f"DO $$ BEGIN FOR t IN 0..{events // each - 1} LOOP {insert}; COMMIT; END LOOP; END $$")
    take_table(lab, lab.conn)


def take_table(lab: Lab, conn: psycopg.Connection[Any] | None = None) -> int:
    """Tell the checker what the table holds; return how many events were new."""
    return lab.checker.commit_table(conn or lab.connect(), TABLE, NUMBER)


class Load:
    """Writes one event after the other, in a thread, while its block runs.

    Connects again when the server was away. At the end the checker knows what was committed.
    """

    def __init__(self, lab: Lab, keys: int = 7, pause: float = 0.002) -> None:
        self.lab = lab
        self.keys = keys
        self.pause = pause
        self.written = 0
        self._stop = threading.Event()
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Load":
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self._stop.set()
        self._thread.join(30)
        if exc[0] is not None:
            return
        assert not self._thread.is_alive() and self._failure is None, self._failure
        take_table(self.lab)

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                with self.lab.postgres.connect(self.lab.db) as conn:
                    self._write(conn)
            except psycopg.OperationalError:
                self._stop.wait(0.05)
            except BaseException as failure:  # for the test's own thread
                self._failure = failure
                return

    def _write(self, conn: psycopg.Connection[Any]) -> None:
        while not self._stop.wait(self.pause):
            n = self.written + 1
            self.written = n  # before it is sent: a number is never used twice
            conn.execute(rows(str(n), str(n), "order", self.keys, 20))
