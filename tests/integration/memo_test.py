"""What walrelay writes down of its slot, what it notices by that, and that it runs without it."""

from __future__ import annotations

from typing import Any, Iterator

import psycopg
import pytest

from kit.lab import STATE_SQL, Lab
from kit.postgres import Postgres
from kit.relay import Relay
from kit.wait import wait_until

SLOT_EXIT = 66
SLACK = 16384


def make_table(lab: Lab) -> None:
    lab.topic("order")
    lab.postgres.psql(lab.db, STATE_SQL, role="postgres")


def stopped_after_one(lab: Lab) -> Relay:
    """A relay that has published one event, written its memo, and was stopped in order."""
    make_table(lab)
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    assert relay.stop() == 0
    return relay


def memo(lab: Lab) -> tuple[Any, ...]:
    """The row, with how far the slot stands beyond it."""
    (row,) = lab.conn.execute(
        "SELECT confirmed_lsn::text, confirmed_flush_lsn - confirmed_lsn, written_at::text, s.xmin::text"
        " FROM walrelay_state s JOIN pg_replication_slots ON slot_name = slot"
    ).fetchall()
    return row


def noise(lab: Lab, kilobytes: int = 64) -> None:
    """WAL that is none of ours."""
    lab.conn.execute("SELECT pg_logical_emit_message(true, 'noise', repeat('x', %s))", [kilobytes << 10])


def refused(relay: Relay) -> str:
    """Start it, expect that it ends because of its slot, return its last line."""
    relay.start()
    assert relay.wait_exit() == SLOT_EXIT, relay.log_text()
    return relay.log_text().strip().splitlines()[-1]


def forget(lab: Lab) -> None:
    """The way out that the log names."""
    lab.conn.execute("DELETE FROM public.walrelay_state WHERE slot = %s", [lab.slot])


# ------------------------------------------------------------------ the row


def test_the_slot_is_not_told_an_own_event_before_the_memo_names_it(lab: Lab) -> None:
    make_table(lab)
    lab.running_relay()
    for n in range(50):
        lab.writer.number("k", n)
        assert memo_or_zero(lab) <= SLACK
    lab.verify(duplicates=0)
    assert lab.conn.execute("SELECT system_id, timeline FROM walrelay_state").fetchall() == lab.conn.execute(
        "SELECT system_identifier::text, timeline_id FROM pg_control_system(), pg_control_checkpoint()"
    ).fetchall()


@pytest.mark.parametrize("ahead", ["confirmed_lsn = confirmed_lsn + 1000000000", "timeline = timeline + 1"])
def test_a_memo_never_goes_back(lab: Lab, ahead: str) -> None:
    """A relay that was frozen while it wrote one must not undo what its successor has written since."""
    make_table(lab)
    lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    lab.conn.execute(f"UPDATE walrelay_state SET {ahead}")
    row = memo(lab)
    lab.writer.number("k", 2)
    lab.verify(duplicates=0)
    assert memo(lab)[::2] == row[::2]


def memo_or_zero(lab: Lab) -> int:
    rows = lab.conn.execute(
        "SELECT confirmed_flush_lsn - confirmed_lsn FROM walrelay_state"
        " JOIN pg_replication_slots ON slot_name = slot"
    ).fetchall()
    return int(rows[0][0]) if rows else 0


def test_the_memos_own_wal_does_not_cause_the_next_memo(lab: Lab) -> None:
    make_table(lab)
    lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    before = memo(lab)
    ((now,),) = lab.conn.execute("SELECT clock_timestamp()::text").fetchall()
    wait_until(lambda: lab.spoke_after(now, 5), 20, "the relay goes on speaking")
    assert memo(lab)[2:] == before[2:]


def test_what_others_write_is_confirmed_with_a_memo(lab: Lab) -> None:
    make_table(lab)
    lab.running_relay()
    for _ in range(3):
        noise(lab)
        lab.wait_confirmed()
        assert memo(lab)[1] <= SLACK


def test_a_locked_table_holds_the_position_and_not_the_statuses(lab: Lab) -> None:
    make_table(lab)
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    before = lab.slot_row()["confirmed_flush_lsn"]
    with lab.connect().transaction() as locked:
        locked.connection.execute("LOCK TABLE walrelay_state IN ACCESS EXCLUSIVE MODE")
        lab.writer.number("k", *range(2, 20))
        lab.checker.wait_complete(20)
        ((now,),) = lab.conn.execute("SELECT clock_timestamp()::text").fetchall()
        wait_until(lambda: lab.spoke_after(now, 4), 20, "the relay goes on speaking")
        assert lab.slot_row()["confirmed_flush_lsn"] == before
    lab.verify(duplicates=0)
    assert relay.stop() == 0


def test_a_synchronous_standby_that_is_away_does_not_hold_the_memo(own_lab: Lab) -> None:
    make_table(own_lab)
    own_lab.postgres.conf(synchronous_commit="local")
    own_lab.postgres.conf(synchronous_standby_names="nobody")
    dsn = own_lab.postgres.dsn(own_lab.db, options="-c synchronous_commit=on")
    own_lab.running_relay({"postgres": {"dsn": dsn}})
    own_lab.writer.number("k", 1)
    own_lab.verify(duplicates=0)
    assert memo(own_lab)[1] <= SLACK


def test_a_clean_stop_repeats_nothing_although_a_memo_comes_first_A42(lab: Lab) -> None:
    make_table(lab)
    relay = lab.running_relay()
    for n in range(5):
        lab.writer.number("k", n)
        lab.checker.wait_complete(20)
        assert relay.stop() == 0
        relay.start()
    lab.verify(duplicates=0)


# --------------------------------------------------------------- without it


def test_without_the_table_the_relay_says_so_once_and_runs(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    mark = relay.log_mark()
    lab.postgres.execute("SELECT pg_terminate_backend(%s)", lab.slot_row()["active_pid"])
    relay.wait_for_log("streaming from slot", after=mark)
    assert relay.log_text().count("walrelay_state does not exist") == 1


@pytest.mark.parametrize(
    "break_it", ["DROP TABLE walrelay_state", "ALTER TABLE walrelay_state DROP COLUMN system_id CASCADE"]
)
def test_a_table_that_is_broken_while_the_relay_runs_does_not_hold_it_up(lab: Lab, break_it: str) -> None:
    make_table(lab)
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    lab.conn.execute(break_it)
    lab.writer.number("k", 2)
    lab.verify(duplicates=0)
    relay.wait_for_log("walrelay_state cannot be written, and the slot moves on")


@pytest.fixture
def poor_dsn(lab: Lab) -> Iterator[str]:
    """The dsn of a role without a right on the table."""
    name = f"poor_{lab.slot}"
    lab.conn.execute(f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD 'pw'")
    yield lab.postgres.dsn(lab.db, user=name, password="pw")
    for relay in lab.relays:
        relay.kill()
    lab.conn.execute(f"DROP ROLE {name}")


def test_a_role_without_rights_on_the_table_is_told_the_statement(lab: Lab, poor_dsn: str) -> None:
    make_table(lab)
    relay = lab.running_relay({"postgres": {"dsn": poor_dsn}})
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    relay.wait_for_log(f"GRANT SELECT, INSERT, UPDATE, DELETE ON public.walrelay_state TO poor_{lab.slot}")


def test_a_session_that_may_not_write_keeps_no_memo_and_judges_by_none(lab: Lab) -> None:
    relay = stopped_after_one(lab)
    dsn = lab.postgres.dsn(lab.db, options="-c default_transaction_read_only=on")
    for _ in range(2):
        relay = lab.running_relay({"postgres": {"dsn": dsn}})
        relay.wait_for_log("walrelay_state may not be written")
        noise(lab)
        lab.writer.number("k", 2)
        lab.verify(duplicates=0)
        assert relay.stop() == 0


# ------------------------------------------------------------ what it notices


def test_a_slot_that_was_made_again_is_noticed_and_the_way_out_leads_on_A04(lab: Lab) -> None:
    make_table(lab)
    relay = lab.running_relay()
    lab.writer.number("k", 1, 2)
    lab.verify(duplicates=0)
    assert relay.stop() == 0
    position = memo(lab)[0]
    missed = lab.writer.number("k", 3, 4, 5)
    lab.postgres.drop_slot(lab.slot)
    noise(lab)
    lab.make_slot()
    line = refused(relay)
    assert f"ahead of {position}" in line and "has 3 rows" in line
    assert relay.call("check").returncode == SLOT_EXIT
    assert f"DELETE FROM public.walrelay_state WHERE slot = '{lab.slot}'" in line
    publish_again(lab, missed[0])
    forget(lab)
    relay.start()
    lab.verify(duplicates=0)


def publish_again(lab: Lab, first: str) -> None:
    """As the operations guide says."""
    lab.conn.execute(
        "WITH missing AS (DELETE FROM outbox_events WHERE created_at >="
        " (SELECT created_at FROM outbox_events WHERE id = %s) RETURNING *)"
        " INSERT INTO outbox_events SELECT * FROM missing ORDER BY created_at, id",
        [first],
    )


def test_a_slot_that_was_moved_is_noticed(lab: Lab) -> None:
    relay = stopped_after_one(lab)
    noise(lab)
    lab.conn.execute("SELECT pg_replication_slot_advance(%s, pg_current_wal_lsn())", [lab.slot])
    assert "has 0 rows" in refused(relay)


def test_a_missing_slot_is_told_with_what_was_confirmed_and_what_came_since_A04(lab: Lab) -> None:
    relay = stopped_after_one(lab)
    lab.postgres.drop_slot(lab.slot)
    position = memo_position(lab)
    lab.writer.number("k", 2, 3)
    line = refused(relay)
    assert f"confirmed {position} last" in line and "has 2 rows" in line


def memo_position(lab: Lab) -> str:
    return str(lab.conn.execute("SELECT confirmed_lsn::text FROM walrelay_state").fetchall()[0][0])


def test_rows_that_may_not_be_read_cannot_be_counted_and_that_is_said(lab: Lab, poor_dsn: str) -> None:
    make_table(lab)
    lab.conn.execute(f"GRANT ALL ON walrelay_state TO poor_{lab.slot}")
    relay = lab.running_relay({"postgres": {"dsn": poor_dsn}})
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    assert relay.stop() == 0
    lab.postgres.drop_slot(lab.slot)
    assert "cannot be told (SQLSTATE 42501)" in refused(relay)
    lab.conn.execute(f"DROP OWNED BY poor_{lab.slot}")


def test_a_server_with_another_system_identifier_is_noticed(lab: Lab) -> None:
    relay = stopped_after_one(lab)
    lab.conn.execute("UPDATE walrelay_state SET system_id = '1234'")
    assert "had 1234" in refused(relay)
    forget(lab)
    relay.start()
    lab.writer.number("k", 2)
    lab.verify(duplicates=0)


def test_a_slot_that_came_along_to_another_timeline_goes_on_with_a_warning(lab: Lab) -> None:
    relay = stopped_after_one(lab)
    lab.conn.execute("UPDATE walrelay_state SET timeline = 0")
    relay.start()
    relay.wait_for_log("the last one was on 0")
    lab.writer.number("k", 2)
    lab.verify(duplicates=0)


def test_a_crash_of_the_server_is_not_mistaken_for_a_moved_slot_A46(own_lab: Lab) -> None:
    make_table(own_lab)
    relay = own_lab.running_relay()
    for n in range(4):
        own_lab.writer.number("k", n)
        own_lab.checker.wait_complete(20)
        noise(own_lab)
        relay.kill()
        own_lab.postgres.restart("immediate")
        own_lab.writer.conn = own_lab.conn = own_lab.connect()
        relay.start()
        own_lab.wait_streaming(relay)
    own_lab.verify()
