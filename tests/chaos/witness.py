"""What was committed, in which order, and where each commit ends: told by the server's own plugin.

It tells of events, and of what became of those that are in the table of dead letters.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Iterable

import psycopg

_EVENT = re.compile(
    r"^table public\.outbox_events: INSERT: id\[uuid\]:'([0-9a-f-]{36})' aggregate_type\[text\]:'([^']+)'"
)
_LETTER = re.compile(
    r"^table public\.walrelay_dead_letters: (?:INSERT|UPDATE): .*? event_id\[text\]:'([0-9a-f-]{36})'"
    r".* state\[text\]:'(\w+)'",
    re.DOTALL,
)
_COMMIT = re.compile(r"^COMMIT .*\(at (.+)\)$")


@dataclass(frozen=True, slots=True)
class Event:
    """A committed event. `end` is the end of its commit record, times are the server's."""

    id: str
    kind: str
    end: int
    committed_ms: int


@dataclass(frozen=True, slots=True)
class Change:
    """From `ms` on, by the server's clock, the event's row among the dead letters was in this state."""

    event: str
    state: str
    ms: int


@dataclass
class Testimony:
    """Both in commit order."""

    events: list[Event] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)


def lsn(text: str) -> int:
    """0/16B3748 as a number."""
    high, low = text.split("/")
    return int(high, 16) << 32 | int(low, 16)


def read(conn: psycopg.Connection[Any], slot: str) -> Testimony:
    """All that was committed since the witness's slot was made. The slot stays."""
    rows = conn.execute(
        "SELECT lsn::text, data FROM pg_logical_slot_peek_changes(%s, NULL, NULL,"
        " 'include-xids', '0', 'include-timestamp', '1', 'skip-empty-xacts', '1')",
        [slot],
    )
    return parse(rows)


def parse(rows: Iterable[tuple[str, str]]) -> Testimony:
    """What there is in what test_decoding says: (position, text); that of a COMMIT is its end."""
    told = Testimony()
    events: list[tuple[str, str]] = []
    changes: list[tuple[str, str]] = []
    for position, text in rows:
        if event := _EVENT.match(text):
            events.append((event[1], event[2]))
        elif change := _LETTER.match(text):
            changes.append((change[1], change[2]))
        elif commit := _COMMIT.match(text):
            at = int(datetime.fromisoformat(commit[1]).timestamp() * 1000)
            told.events += [Event(event_id, kind, lsn(position), at) for event_id, kind in events]
            told.changes += [Change(event_id, state, at) for event_id, state in changes]
            events, changes = [], []
    return told
