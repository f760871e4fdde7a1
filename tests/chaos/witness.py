"""What was committed, in which order, and where each commit ends: told by the server's own plugin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Iterable

import psycopg

_ID = re.compile(r"^table public\.outbox_events: INSERT: id\[uuid\]:'([0-9a-f-]{36})' aggregate_type\[text\]:'(\w+)'")
_COMMIT = re.compile(r"^COMMIT .*\(at (.+)\)$")


@dataclass(frozen=True, slots=True)
class Event:
    """A committed event. `end` is the end of its commit record, times are the server's."""

    id: str
    kind: str
    end: int
    committed_ms: int


def lsn(text: str) -> int:
    """0/16B3748 as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def read(conn: psycopg.Connection[Any], slot: str) -> list[Event]:
    """All events that were committed since the witness's slot was made, in commit order. The slot stays."""
    rows = conn.execute(
        "SELECT lsn::text, data FROM pg_logical_slot_peek_changes(%s, NULL, NULL,"
        " 'include-xids', '0', 'include-timestamp', '1', 'skip-empty-xacts', '1')",
        [slot],
    )
    return parse(rows)


def parse(rows: Iterable[tuple[str, str]]) -> list[Event]:
    """The events in what test_decoding says: (position, text); that of a COMMIT is its end."""
    events: list[Event] = []
    open_rows: list[tuple[str, str]] = []
    for position, text in rows:
        row, commit = _ID.match(text), _COMMIT.match(text)
        if row:
            open_rows.append((row[1], row[2]))
        elif commit:
            at = int(datetime.fromisoformat(commit[1]).timestamp() * 1000)
            events += [Event(event, kind, lsn(position), at) for event, kind in open_rows]
            open_rows = []
    return events
