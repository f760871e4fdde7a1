"""What is done to the table itself: renamed, made again, without a key."""

from __future__ import annotations

import json
import re
import signal

import pytest

from kit.lab import TABLE, Lab
from kit.relay import Relay

CONFIG_EXIT = 78
COLUMNS = "(aggregate_type, aggregate_id, event_type, payload)"


def put(lab: Lab, table: str, n: int) -> str:
    """Insert an event into any table of the outbox's form, without a word to the checker."""
    row = lab.conn.execute(
        f"INSERT INTO {table} {COLUMNS} VALUES ('order', 'k', 'e', %s) RETURNING id", [json.dumps({"n": n})]
    ).fetchone()
    assert row is not None
    return str(row[0])


def rename_and_make_anew(lab: Lab) -> None:
    lab.conn.execute(f"ALTER TABLE {TABLE} RENAME TO outbox_old")
    lab.conn.execute(f"CREATE TABLE {TABLE} (LIKE outbox_old INCLUDING ALL)")


def look(relay: Relay, pattern: str) -> "re.Match[str]":
    """Let the relay check the server now; wait for a line of its log."""
    mark = relay.log_mark()
    relay.send_signal(signal.SIGHUP)
    return relay.wait_for_log(pattern, after=mark)


# ------------------------------------------------- renamed, dropped, made again


@pytest.mark.parametrize("streaming", [True, False])
def test_rows_are_those_of_the_table_that_had_the_name_when_they_were_written_A31(
    lab: Lab, streaming: bool
) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    if not streaming:
        assert relay.stop() == 0
    lab.writer.number("k", 1)
    rename_and_make_anew(lab)
    lab.writer.number("k", 2)
    lab.checker.roll_back(put(lab, "outbox_old", 3))
    lab.writer.number("k", 4)
    if not streaming:
        relay.start()
    lab.verify(duplicates=0)


def test_a_table_that_is_dropped_and_made_again_goes_on_A31(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    with lab.writer.transaction() as conn:
        lab.writer.number("k", 2)
        conn.execute(f"CREATE TABLE copy (LIKE {TABLE} INCLUDING ALL)")
        conn.execute(f"DROP TABLE {TABLE}")
        conn.execute("ALTER TABLE copy RENAME TO outbox_events")
        lab.writer.number("k", 3)
    lab.writer.number("k", 4)
    lab.verify(duplicates=0)
    assert relay.running


def test_a_table_that_is_renamed_while_the_relay_streams_is_warned_of_by_the_next_check_A31(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    lab.conn.execute(f"ALTER TABLE {TABLE} RENAME TO outbox_event")
    line = look(relay, rf"warning table {TABLE} does not exist.*").group()
    assert "the nearest name is public.outbox_event" in line
    assert relay.running
    lab.conn.execute("ALTER TABLE outbox_event RENAME TO outbox_events")
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)


def test_a_table_that_is_missing_at_start_ends_the_relay_before_the_slot_moves_A31(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    assert relay.stop() == 0
    lab.writer.number("k", 1)
    lab.conn.execute(f"ALTER TABLE {TABLE} RENAME TO outbox_old")
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    assert f"table {TABLE} does not exist" in relay.log_text()
    lab.conn.execute("ALTER TABLE outbox_old RENAME TO outbox_events")
    relay.start()
    lab.verify(duplicates=0)


# ------------------------------------------------------------ no key, any identity


@pytest.mark.parametrize("identity", ["DEFAULT", "NOTHING", "FULL"])
def test_updates_and_deletes_without_a_key_do_not_disturb_A33(lab: Lab, identity: str) -> None:
    lab.topic("order", partitions=1)
    lab.conn.execute(f"ALTER TABLE {TABLE} DROP CONSTRAINT outbox_events_pkey, REPLICA IDENTITY {identity}")
    relay = lab.running_relay()
    lab.writer.number("k", 1, 2)
    lab.conn.execute(f"UPDATE {TABLE} SET attempts = attempts + 1")
    with lab.writer.transaction() as conn:
        lab.writer.number("k", 3)
        conn.execute(f"DELETE FROM {TABLE} WHERE attempts = 1")
        lab.writer.number("k", 4)
    lab.verify(duplicates=0)
    assert not relay.warnings()
