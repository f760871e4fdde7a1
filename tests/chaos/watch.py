"""Somebody who looks at the slot and at the relays all the time, and writes down what he sees."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any

import psycopg

from chaos.site import Site
from chaos.witness import lsn
from kit import process

INTERVAL_S = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """At `ms` (wall clock) the server had already said that everything before `confirmed` is confirmed."""

    ms: int
    confirmed: int


class Watch:
    """Samples for as long as its block runs. A change is written down, and what stays as it was, once."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.samples: list[list[Sample]] = [[]]  # for each server that was the primary
        self.looks = 0
        self.peak_kb = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> "Watch":
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(60)

    def _run(self) -> None:
        while not self._stop.is_set():
            era = len(self.site.primaries) - 1
            try:  # of this server: the next one has slots before it is taken as the primary
                with self.site.primaries[era].connect(self.site.lab.db, connect_timeout=2) as conn:
                    while not self._stop.wait(INTERVAL_S):
                        self._look(conn, era)
            except psycopg.Error:
                self._memory()
                self._stop.wait(INTERVAL_S)

    def _look(self, conn: psycopg.Connection[Any], era: int) -> None:
        row = conn.execute(
            "SELECT confirmed_flush_lsn::text FROM pg_replication_slots WHERE slot_name = %s",
            [self.site.lab.slot],
        ).fetchone()
        now = int(time.time() * 1000)
        self.looks += 1
        if row and row[0]:
            confirmed = lsn(row[0])
            self.samples += [[] for _ in range(len(self.samples), era + 1)]
            samples = self.samples[era]
            if not samples or samples[-1].confirmed != confirmed:
                samples.append(Sample(now, confirmed))
        self._memory()

    def _memory(self) -> None:
        for kept in self.site.relays:
            if kept.relay.wrapper:
                continue  # its own memory is not all that one sees
            try:
                self.peak_kb = max(self.peak_kb, process.peak_rss_kb(kept.relay.pid))
            except (OSError, LookupError, AssertionError):
                pass  # it does not run at this moment
