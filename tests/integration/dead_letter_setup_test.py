"""The table of dead letters: what setup makes, what check says of it, and that it is not streamed."""

from __future__ import annotations

import re

import psycopg
import pytest

from kit.dead_letters import LETTERS, LETTERS_SQL, make_letters, put_letter
from kit.lab import TABLE, Lab
from kit.relay import Config
from kit.wait import wait_until

CONFIG_EXIT, WAIT_EXIT = 78, 70
INSERT = (
    f"INSERT INTO {LETTERS} (slot, row_lsn, row_number, committed_at, begin_lsn, outbox_table, reason, state)"
    " VALUES ('s', '0/1', 1, 'epoch', '0/1', 't', 'r', 'waiting')"
)


def as_role(lab: Lab, role: str) -> Config:
    return {"postgres": {"dsn": lab.postgres.dsn(lab.db, user=role, password="pw")}}


def says(lab: Lab, changes: Config | None = None, code: int = 0) -> str:
    """What `walrelay check` says of dead letters, whole lines."""
    done = lab.relay(changes).call("check")
    assert done.returncode == code, done.stdout + done.stderr
    return "\n".join(re.findall(r"^.*dead.letters.*$", done.stdout, re.MULTILINE))


def test_setup_makes_the_dead_letter_table_and_leaves_it_alone_the_second_time(lab: Lab) -> None:
    first, second = (lab.relay().call("setup", "--apply") for _ in range(2))
    assert f"done         table {LETTERS}\n" in first.stdout, first.stdout + first.stderr
    assert f"as it is     table {LETTERS}\n" in second.stdout, second.stdout + second.stderr
    assert says(lab) == f"ok           dead letters: table public.{LETTERS}"


def test_setup_prints_the_dead_letter_table_with_the_least_rights(lab: Lab, role: str) -> None:
    printed = lab.relay(as_role(lab, role)).call("setup")
    assert printed.returncode == 0, printed.stderr
    script = lab.directory / "setup.sql"
    script.write_text(printed.stdout)
    for _ in range(2):
        lab.postgres.psql(lab.db, script)
    assert says(lab, as_role(lab, role)) == f"ok           dead letters: table public.{LETTERS}"
    with lab.postgres.connect(lab.db, user=role, password="pw") as conn:
        conn.execute(INSERT)
        conn.execute(f"UPDATE {LETTERS} SET state = 'resolved'")
        assert conn.execute(f"SELECT state FROM {LETTERS}").fetchall() == [("resolved",)]
        for statement in (f"DELETE FROM {LETTERS}", f"TRUNCATE {LETTERS}", f"ALTER TABLE {LETTERS} ADD x int"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                conn.execute(statement)


def test_setup_in_another_schema_makes_the_dead_letter_table_there(lab: Lab) -> None:
    lab.conn.execute('CREATE SCHEMA "Sales Dept"')
    changes = {"dead_letters": {"schema": "Sales Dept"}}
    done = lab.relay(changes).call("setup", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert says(lab, changes) == f'ok           dead letters: table "Sales Dept".{LETTERS}'


def test_setup_without_the_right_to_make_the_dead_letter_table_goes_on(lab: Lab, role: str) -> None:
    lab.conn.execute("REVOKE CREATE ON SCHEMA public FROM PUBLIC")
    done = lab.relay(as_role(lab, role)).call("setup", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(rf"^not done +table {LETTERS}: .*permission denied", done.stdout, re.MULTILINE), done.stdout
    assert lab.slot_row()["plugin"] == "wal2json"


def test_setup_makes_no_dead_letter_table_when_poison_stops_the_relay(lab: Lab) -> None:
    changes = {"dead_letters": {"on_poison": "stop"}}
    for done in (lab.relay(changes).call("setup"), lab.relay(changes).call("setup", "--apply")):
        assert done.returncode == 0 and LETTERS not in done.stdout, done.stdout + done.stderr
    assert "an event that Kafka can never take stops the relay" in says(lab, changes)


def test_a_view_of_that_name_is_not_replaced_by_the_dead_letter_view(lab: Lab) -> None:
    lab.conn.execute("CREATE TABLE outbox_dead_letters (mine int)")
    make_letters(lab)
    assert lab.conn.execute("SELECT relkind FROM pg_class WHERE relname = 'outbox_dead_letters'").fetchall() == [
        ("r",)
    ]


def test_the_dead_letter_view_shows_the_event(lab: Lab) -> None:
    make_letters(lab)
    put_letter(lab, event_id="e1", payload=b"\x00\xff")
    rows = lab.conn.execute("SELECT event_id, payload, state, reason FROM outbox_dead_letters").fetchall()
    assert rows == [("e1", b"\x00\xff", "waiting", "too large")]


def test_the_same_event_cannot_have_two_rows_in_the_dead_letter_table(lab: Lab) -> None:
    make_letters(lab)
    place = {"row_lsn": "16/B374D848", "row_number": 3}
    put_letter(lab, **place)
    with pytest.raises(psycopg.errors.UniqueViolation):
        put_letter(lab, **place)
    put_letter(lab, **place, slot="another")
    put_letter(lab, **place, committed_at="2026-11-30T10:00:00.000001Z")


def test_a_dead_letter_may_have_a_key_that_no_index_takes(lab: Lab) -> None:
    make_letters(lab)
    put_letter(lab, key=bytes(range(256)) * 400)


@pytest.mark.parametrize(
    "statement, code, reason",
    [
        (f"REVOKE INSERT, UPDATE ON {LETTERS} FROM {{role}}", WAIT_EXIT, "lacks rights on table public.* (INSERT, UPDATE)"),
        ("REVOKE USAGE ON SCHEMA public FROM PUBLIC, {role}", WAIT_EXIT, "(USAGE of its schema)"),
        (f"ALTER TABLE {LETTERS} ENABLE ROW LEVEL SECURITY", WAIT_EXIT, "DISABLE ROW LEVEL SECURITY"),
        (f"ALTER TABLE {LETTERS} SET UNLOGGED", CONFIG_EXIT, "SET LOGGED"),
        (f"ALTER TABLE {LETTERS} RENAME note TO remark", CONFIG_EXIT, "lacks columns (note)"),
    ],
    ids=["rights", "schema", "row security", "unlogged", "columns"],
)
def test_a_dead_letter_table_that_cannot_be_used_is_named(
    lab: Lab, role: str, statement: str, code: int, reason: str
) -> None:
    make_letters(lab, role)
    lab.make_slot()
    lab.conn.execute(statement.format(role=role))
    line = says(lab, as_role(lab, role), code)
    assert line.startswith("FAILED") and all(part in line for part in reason.split("*")), line


def test_a_view_in_place_of_the_dead_letter_table_is_named(lab: Lab) -> None:
    lab.make_slot()
    lab.conn.execute(f"CREATE VIEW {LETTERS} AS SELECT 1 AS id")
    assert "is no ordinary table" in says(lab, code=CONFIG_EXIT)


def test_no_dead_letter_table_is_no_failure(lab: Lab) -> None:
    lab.make_slot()
    assert f"there is no table public.{LETTERS}" in says(lab)


def test_changes_of_dead_letters_wake_whoever_listens(lab: Lab) -> None:
    make_letters(lab)
    number = put_letter(lab)
    with lab.postgres.connect(lab.db) as listener:
        heard: list[str] = []
        listener.add_notify_handler(lambda notify: heard.append(notify.channel))
        listener.execute(f"LISTEN {LETTERS}")
        lab.conn.execute(f"UPDATE {LETTERS} SET attempts = 0, retry_after = NULL WHERE id = %s", [number])
        wait_until(lambda: listener.execute("SELECT 1") and heard, 10, "the listener is told")
    assert heard == [LETTERS]


def test_the_dead_letter_table_is_not_streamed_beside_partitions(lab: Lab) -> None:
    make_letters(lab)
    lab.topic("order")
    lab.conn.execute(f"CREATE TABLE events (LIKE {TABLE} INCLUDING DEFAULTS) PARTITION BY LIST (aggregate_id)")
    lab.conn.execute("CREATE TABLE events_k PARTITION OF events DEFAULT")
    lab.running_relay({"table public.events": {"topic": lab.prefix + "{aggregate_type}"}})
    for _ in range(3):
        put_letter(lab)
    lab.wait_received()
    # A row of a table that is not known would have been asked about, on a second connection that stays.
    assert lab.conn.execute(
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
        " AND application_name = 'walrelay' AND backend_type = 'client backend'"
    ).fetchall() == [(1,)]


def test_the_dead_letter_sql_may_run_twice_and_says_who_runs_it(lab: Lab) -> None:
    for _ in range(2):
        make_letters(lab)
    assert "-- Who runs it: " in LETTERS_SQL.read_text()
