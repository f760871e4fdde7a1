"""Outbox tables of any shape, rows into them, and the records that come of them."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from kit.checker import Record
from kit.lab import TABLE, Lab

EVENTS = "public.events"


def make_table(lab: Lab, columns: str, name: str = EVENTS) -> None:
    """Create an outbox table with these columns beside those that the defaults need."""
    lab.conn.execute(
        f"CREATE TABLE {name} (id uuid PRIMARY KEY DEFAULT gen_random_uuid(),"
        " aggregate_type text DEFAULT 'order', aggregate_id text DEFAULT 'k',"
        f" event_type text DEFAULT 'created', {columns})"
    )


def section(lab: Lab, name: str = EVENTS, **settings: str) -> dict[str, dict[str, str]]:
    """The changes to the configuration that publish such a table; settings over the defaults."""
    return {f"table {name}": {"topic": lab.prefix + "{aggregate_type}", **settings}}


def insert(lab: Lab, table: str = TABLE, conn: "psycopg.Connection[Any] | None" = None, **values: Any) -> str:
    """Insert one event that commits at once; return its id. Keywords name columns."""
    names = sql.SQL(", ").join(map(sql.Identifier, values))
    marks = sql.SQL(", ").join(sql.Placeholder() * len(values))
    given = sql.SQL("({}) VALUES ({})").format(names, marks) if values else sql.SQL("DEFAULT VALUES")
    statement = sql.SQL("INSERT INTO " + table + " {} RETURNING id::text").format(given)
    row = (conn or lab.conn).execute(statement, list(values.values())).fetchone()
    assert row is not None
    lab.checker.commit(row[0])
    return str(row[0])


def arrivals(lab: Lab, *ids: str, timeout: float = 30) -> list[Record]:
    """Wait until all that was committed has arrived; the first records of these events."""
    lab.checker.wait_complete(timeout)
    lab.checker.check()
    first: dict[str, Record] = {}
    for record in lab.checker.records:
        first.setdefault((record.header("id") or b"").decode(), record)
    return [first[event] for event in ids]


def arrival(lab: Lab, event: str, timeout: float = 30) -> Record:
    """The same for one event."""
    return arrivals(lab, event, timeout=timeout)[0]


def stored(lab: Lab, event: str, column: str, table: str = EVENTS) -> bytes:
    """What the server says is a column's text, in UTF-8."""
    query = sql.SQL("SELECT convert_to({}::text, 'UTF8') FROM " + table + " WHERE id::text = %s")
    row = lab.conn.execute(query.format(sql.Identifier(column)), [event]).fetchone()
    assert row is not None
    return bytes(row[0])
