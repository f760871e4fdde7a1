"""The table of dead letters, and rows in the form in which the relay writes them."""

from __future__ import annotations

import itertools
from typing import Any

from psycopg import sql

from kit.lab import TABLE, Lab
from kit.relay import ROOT

LETTERS = "walrelay_dead_letters"
LETTERS_SQL = ROOT / "sql" / "dead_letters.sql"
_places = itertools.count(1)


def make_letters(lab: Lab, role: str = "postgres", schema: str = "public") -> None:
    """Make the table, with the rights of `role`."""
    lab.postgres.psql(lab.db, LETTERS_SQL, role=role, schema=schema)


def put_letter(lab: Lab, **values: Any) -> int:
    """Insert one row; keywords name columns, the rest is as of a refused event. Return its id."""
    place = next(_places)
    row: dict[str, Any] = {
        "slot": lab.slot,
        "row_lsn": f"0/{place:X}",
        "row_number": 1,
        "committed_at": "2026-11-30T10:00:00Z",
        "begin_lsn": f"0/{place:X}",
        "commit_lsn": f"0/{place + 1:X}",
        "outbox_table": TABLE,
        "event_id": f"event-{place}",
        "event_type": "OrderPaid",
        "aggregate_type": "order",
        "aggregate_id": "k",
        "topic": lab.prefix + "order",
        "key": b"k",
        "payload": b'{"n": 1}',
        "header_names": ["id", "type"],
        "header_values": [f"event-{place}".encode(), b"OrderPaid"],
        "reason": "too large",
        "error_code": "MSG_SIZE_TOO_LARGE",
        "error": "Broker: Message size too large",
        "attempts": 1,
        "state": "waiting",
        **values,
    }
    statement = sql.SQL("INSERT INTO {} ({}) VALUES ({}) RETURNING id").format(
        sql.Identifier(LETTERS),
        sql.SQL(", ").join(map(sql.Identifier, row)),
        sql.SQL(", ").join(sql.Placeholder() * len(row)),
    )
    found = lab.conn.execute(statement, list(row.values())).fetchone()
    assert found is not None
    return int(found[0])


def letter(lab: Lab, number: int) -> dict[str, Any]:
    """The row with that id."""
    cursor = lab.conn.execute(f"SELECT * FROM {LETTERS} WHERE id = %s", [number])
    row = cursor.fetchone()
    assert row is not None
    return dict(zip([column.name for column in cursor.description or []], row))
