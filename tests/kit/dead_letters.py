"""The table of dead letters, and rows in the form in which the relay writes them."""

from __future__ import annotations

import itertools
from typing import Any

from psycopg import sql

from kit.lab import TABLE, Lab
from kit.relay import ROOT, Relay
from kit.rows import arrivals
from kit.wait import wait_until

LETTERS = "walrelay_dead_letters"
LETTERS_SQL = ROOT / "sql" / "dead_letters.sql"
UNRESOLVED = ("waiting", "held", "dead")
Changes = dict[str, dict[str, str]]
BIG = 300_000
# hexadecimal digits of hashes: no compression makes them small
NOISE = f"(SELECT to_jsonb(string_agg(md5(i::text), '')) FROM generate_series(1, {BIG} / 32) i)"
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
    return _row(lab, "id = %s", number)


def row(lab: Lab, event: str) -> dict[str, Any]:
    """The dead letter of that event."""
    return _row(lab, "event_id = %s", event)


def _row(lab: Lab, condition: str, value: Any) -> dict[str, Any]:
    cursor = lab.conn.execute(f"SELECT * FROM {LETTERS} WHERE {condition}", [value])
    found = cursor.fetchone()
    assert found is not None
    return dict(zip([column.name for column in cursor.description or []], found))


def settings(**dead_letters: str) -> Changes:
    """A relay that tries again seldom, unless it is told."""
    return {"dead_letters": {"retry_initial": "1h", "retry_max": "1h", **dead_letters}}


def small(lab: Lab, key: str | None, n: int, kind: str = "order") -> str:
    """Commit one event that Kafka would take; the checker does not wait for it."""
    ((event,),) = lab.conn.execute(
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        " VALUES (%s, %s, 'small', jsonb_build_object('n', %s::int)) RETURNING id::text",
        [kind, key, n],
    ).fetchall()
    return str(event)


def big(lab: Lab, key: str) -> str:
    """Commit one event that the topic does not take; the checker does not wait for it."""
    ((event,),) = lab.conn.execute(
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        f" VALUES ('order', %s, 'large', {NOISE}) RETURNING id::text",
        [key],
    ).fetchall()
    return str(event)


def states(lab: Lab) -> dict[str, str]:
    """Of each dead letter, in their order."""
    rows = lab.conn.execute(f"SELECT event_id, state FROM {LETTERS} ORDER BY id").fetchall()
    return {str(event): str(state) for event, state in rows}


def wait_states(lab: Lab, *expected: tuple[str, str], timeout: float = 30) -> None:
    wait_until(lambda: list(states(lab).items()) == list(expected), timeout, lambda: f"{expected}: {states(lab)}")


def wait_resolved(lab: Lab, timeout: float = 60) -> None:
    wait_until(
        lambda: not any(state in UNRESOLVED for state in states(lab).values()), timeout, lambda: f"{states(lab)}"
    )


def command(relay: Relay, *words: str) -> None:
    """Run `walrelay dead-letters`."""
    done = relay.call("dead-letters", *words)
    assert done.returncode == 0, done.stdout + done.stderr


def in_order(lab: Lab, *ids: str) -> None:
    """All have arrived, these in this order."""
    lab.checker.commit(*ids)
    offsets = [record.offset for record in arrivals(lab, *ids)]
    assert offsets == sorted(offsets)


def mend(lab: Lab) -> None:
    lab.kafka.alter_topic(lab.prefix + "order", max_message_bytes=1_000_000)


def mend_and_retry(lab: Lab, relay: Relay) -> None:
    """The topic takes large records, everything is tried again and arrives."""
    mend(lab)
    command(relay, "retry", "--all")
    wait_resolved(lab)


def arrived(lab: Lab, event: str) -> bool:
    """Has Kafka the event?"""
    return any(record.header("id") == event.encode() for record in lab.checker.collect())


def retried(lab: Lab, relay: Relay) -> bool:
    """Nothing is unresolved; what was tried too often before the topic was mended is tried again."""
    left = [state for state in states(lab).values() if state in UNRESOLVED]
    if "dead" in left:
        command(relay, "retry", "--all")
    return not left


def wait_statement(lab: Lab, like: str, event: str = "%", timeout: float = 30) -> None:
    """Wait until a statement of the relay's waits in the server, for a lock unless `event` names another thing."""
    kind = "Lock" if event == "%" else "%"
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'walrelay'"
        " AND query LIKE %s AND wait_event LIKE %s AND wait_event_type LIKE %s"
    )
    wait_until(lambda: bool(lab.postgres.execute(query, lab.db, like, event, kind)), timeout, f"{like} waits")


def end_sessions(lab: Lab) -> int:
    """Terminate the relay's ordinary connections to the lab's database; how many there were."""
    query = (
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        " AND application_name = 'walrelay' AND backend_type = 'client backend'"
    )
    return len(lab.postgres.execute(query, lab.db))
