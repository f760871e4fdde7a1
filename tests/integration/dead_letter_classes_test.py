"""Whose fault a failure is, with a table of dead letters: what waits, what gives way, what becomes a dead letter."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from kit.dead_letters import command, in_order, make_letters, row, settings, small, states, wait_resolved, wait_states
from kit.lab import TABLE, Lab
from kit.rows import EVENTS, arrivals, insert, make_table, section
from kit.wait import wait_until

HOUR_MS = 3600 * 1000


@pytest.fixture
def letters(lab: Lab) -> Lab:
    """A lab with the table of dead letters."""
    make_letters(lab)
    return lab


def test_with_topic_wait_a_missing_topic_makes_dead_letters_that_a_retry_releases_in_order(letters: Lab) -> None:
    letters.topic("order", 1)
    relay = letters.running_relay(settings(topic_wait="1s"))
    ghosts = [small(letters, key, n, "ghost") for n, key in enumerate(("a", "a", "b", "a"))]
    others = letters.writer.number("k", 1, 2)
    arrivals(letters, *others)
    wait_states(letters, *zip(ghosts, ("waiting", "held", "waiting", "held")))
    letters.wait_confirmed()
    found = row(letters, ghosts[0])
    assert (found["reason"], found["error_code"]) == ("topic missing", "UNKNOWN_TOPIC_OR_PART")
    # Tried again while the topic is still missing it fails soon, and is not waited for.
    before = row(letters, ghosts[2])
    command(relay, "retry", str(before["id"]))
    wait_until(
        lambda: row(letters, ghosts[2])["last_failed_at"] > before["last_failed_at"], 40, "it has failed again"
    )
    letters.topic("ghost", 1)
    command(relay, "retry", "--all")
    wait_resolved(letters)
    newer = letters.writer.number("a", 4, kind="ghost")
    letters.checker.commit(ghosts[2])
    in_order(letters, ghosts[0], ghosts[1], ghosts[3], *newer)
    letters.verify(duplicates=0)


def test_a_timestamp_column_that_the_topic_refuses_gives_way_and_makes_no_dead_letter(letters: Lab) -> None:
    letters.kafka.alter_topic(letters.topic("order", partitions=1), message_timestamp_before_max_ms=HOUR_MS)
    make_table(letters, "payload jsonb, z timestamptz")
    letters.make_slot()
    now = datetime.now(timezone.utc)
    old = now - timedelta(hours=2)
    with letters.conn.transaction():
        ids = [insert(letters, EVENTS, aggregate_id="k", z=old if n % 50 == 20 else now) for n in range(200)]
    letters.running_relay({**settings(), **section(letters, timestamp="z")})
    records = arrivals(letters, *ids)
    assert all(records[n].header("walrelay.timestamp") for n in range(20, 200, 50))
    assert [record.offset for record in records] == list(range(200))
    letters.verify(duplicates=0)
    assert states(letters) == {}


def test_clocks_that_differ_are_waited_for_and_make_no_dead_letter(letters: Lab) -> None:
    name = letters.topic("order", partitions=1)
    letters.kafka.alter_topic(name, message_timestamp_before_max_ms=1)
    letters.make_slot()
    ids = letters.writer.number("k", *range(20))
    relay = letters.running_relay(settings(topic_wait="1s"))
    relay.wait_for_log(r"^.* warning .*INVALID_TIMESTAMP.*$")
    letters.kafka.alter_topic(name, message_timestamp_before_max_ms=HOUR_MS)
    in_order(letters, *ids)
    letters.verify(duplicates=0)
    assert states(letters) == {}


def test_a_batch_too_large_of_small_events_makes_no_dead_letter(letters: Lab) -> None:
    letters.topic("order", 1, {"max.message.bytes": "10000"})
    letters.make_slot()
    with letters.conn.transaction():
        rows = letters.conn.execute(
            f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
            " SELECT 'order', 'k', 'noise', to_jsonb(md5(i::text) || md5((-i)::text))"
            " FROM generate_series(1, 2000) i RETURNING id::text"
        ).fetchall()
    relay = letters.running_relay(settings())
    in_order(letters, *(event for (event,) in rows))
    letters.verify(duplicates=0)
    assert "MSG_SIZE_TOO_LARGE" in relay.log_text()
    assert states(letters) == {}
