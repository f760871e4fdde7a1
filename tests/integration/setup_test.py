"""`walrelay setup` and the files of sql/: what they make, and what they leave behind when they cannot."""

from __future__ import annotations

import os
import signal
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Iterator

import pytest

from kit import process
from kit.lab import TABLE, Lab
from kit.relay import ROOT, relay_binary
from kit.wait import wait_until

CONFIG_EXIT, AWAY_EXIT = 78, 70
SQL = ROOT / "sql"
Done = subprocess.CompletedProcess[str]


def run_setup(lab: Lab, *args: str, **postgres: str) -> Done:
    """Run `walrelay setup` with the lab's configuration and these changes of [postgres]."""
    return lab.relay({"postgres": postgres}).call("setup", *args)


def applies(lab: Lab, **postgres: str) -> list[str]:
    """Run `walrelay setup --apply`, expect success, return its lines."""
    done = run_setup(lab, "--apply", **postgres)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.splitlines()


def psql(lab: Lab, script: str | Path, *variables: str) -> str:
    """Run a file, or a script as it is, with psql as the superuser of the lab's database."""
    command = [str(lab.postgres.bin / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1"]
    for variable in variables:
        command += ["-v", variable]
    command += ["-d", lab.postgres.dsn(lab.db), "-f", str(script) if isinstance(script, Path) else "-"]
    text = None if isinstance(script, Path) else script
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@contextmanager
def applying(lab: Lab) -> Iterator["subprocess.Popen[bytes]"]:
    """`walrelay setup --apply` in the background; its output is in the log of the relay."""
    relay = lab.relay()
    child = process.spawn([relay_binary(), "setup", "--apply", "-c", relay.config_file], relay.log, env=relay.env)
    try:
        yield child
    finally:
        process.finish(child, signal.SIGKILL, 10)


def output(lab: Lab) -> str:
    """What the last relay of the lab has printed."""
    return lab.relays[-1].log_text()


@pytest.fixture
def stuck(lab: Lab) -> Iterator[str]:
    """A prepared transaction that nobody ends; its gid."""
    gid = f"stuck_{lab.db}"
    lab.conn.execute("CREATE TABLE noise (i int)")
    for statement in ("BEGIN", "INSERT INTO noise VALUES (1)", f"PREPARE TRANSACTION '{gid}'"):
        lab.conn.execute(statement)
    yield gid
    if lab.conn.execute("SELECT FROM pg_prepared_xacts WHERE gid = %s", [gid]).fetchall():
        lab.conn.execute(f"ROLLBACK PREPARED '{gid}'")


def half_made(lab: Lab) -> bool:
    """Is there a slot that is still being made?"""
    row = lab.slot_row()
    return bool(row) and row["active"] and row["confirmed_flush_lsn"] is None


# ------------------------------------------------------------------- the whole


def test_what_setup_prints_gives_psql_all_that_check_asks_for(lab: Lab) -> None:
    lab.conn.execute(f"DROP TABLE {TABLE}")
    role = f"relay_{lab.db}"
    printed = run_setup(lab, dsn=lab.postgres.dsn(lab.db, user=role, password="pw"))
    assert printed.returncode == 0, printed.stderr
    psql(lab, printed.stdout)
    psql(lab, printed.stdout)
    lab.conn.execute(f"ALTER ROLE {role} PASSWORD 'pw'")
    try:
        dsn = lab.postgres.dsn(lab.db, user=role, password="pw")
        done = lab.relay({"postgres": {"dsn": dsn}}).call("check")
    finally:
        lab.conn.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")
    assert done.returncode == 0, done.stdout
    assert "cannot tell" not in done.stdout


def test_apply_makes_what_is_missing_and_the_second_time_nothing(lab: Lab) -> None:
    lab.conn.execute(f"DROP TABLE {TABLE}")
    lines = applies(lab)
    assert [line.split(None, 1) for line in lines if line.startswith("done")] == [
        ["done", "table outbox_events"],
        ["done", "table walrelay_state"],
        ["done", "table walrelay_dead_letters"],
        ["done", f"slot {lab.slot}"],
    ]
    row = lab.slot_row()
    assert all(line.startswith("as it is") for line in applies(lab))
    assert lab.slot_row() == row
    assert lab.relay().call("check").returncode == 0


def test_a_role_that_may_not_make_the_state_table_makes_the_slot_without_it(lab: Lab) -> None:
    role = f"poor_{lab.db}"
    lab.conn.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'pw'")
    try:
        lines = applies(lab, dsn=lab.postgres.dsn(lab.db, user=role, password="pw"))
    finally:
        lab.conn.execute(f"DROP ROLE {role}")
    assert any(line.startswith("not done") and "permission denied" in line for line in lines)
    assert lab.slot_row()


def test_a_new_slot_says_that_earlier_events_are_not_in_it_A04(lab: Lab) -> None:
    lines = applies(lab)
    begin = lab.slot_row()["confirmed_flush_lsn"]
    assert any(f"begins at {begin}: events committed before it was made are not in it" in line for line in lines)


def test_the_least_role_can_make_its_slot(lab: Lab) -> None:
    role = f"least_{lab.db}"
    lab.conn.execute(f"CREATE ROLE {role} LOGIN REPLICATION PASSWORD 'pw'")
    try:
        applies(lab, dsn=lab.postgres.dsn(lab.db, user=role, password="pw"))
    finally:
        lab.conn.execute(f"DROP ROLE {role}")
    assert lab.slot_row()["plugin"] == "wal2json"


def test_a_missing_table_with_columns_of_its_own_is_left_to_its_owner(lab: Lab) -> None:
    changes = {"table public.small": {"key": "customer", "payload": "body"}}
    printed = lab.relay(changes).call("setup")
    assert "-- Table public.small is yours to make" in printed.stdout
    assert "customer" in printed.stdout and "body" in printed.stdout
    done = lab.relay(changes).call("setup", "--apply")
    assert done.returncode == CONFIG_EXIT
    assert "table public.small does not exist" in done.stdout + done.stderr
    assert lab.slot_row() == {}


def test_the_setting_of_plugins_is_extended_and_not_replaced(lab: Lab) -> None:
    if not lab.postgres.knows("output_plugin_libraries"):  # before 15.19 every plugin is allowed
        assert "done         setting" not in applies(lab)
        return
    lab.postgres.conf(output_plugin_libraries="test_decoding, odd name")
    show = "SHOW output_plugin_libraries"
    try:
        wait_until(lambda: lab.postgres.execute(show) == [('test_decoding, "odd name"',)], 10, "the setting is read")
        assert "done         setting output_plugin_libraries" in applies(lab)
        assert lab.postgres.execute(show) == [('test_decoding, "odd name", wal2json',)]
    finally:
        lab.postgres.conf(output_plugin_libraries=None)


# -------------------------------------------------------------- when it cannot


def test_a_server_without_wal2json_is_named_and_nothing_is_left_A03(lab: Lab) -> None:
    lab.conn.execute(f"ALTER DATABASE {lab.db} SET dynamic_library_path = '/nowhere'")
    done = run_setup(lab, "--apply")
    assert done.returncode == CONFIG_EXIT
    said = done.stdout + done.stderr
    assert 'could not access file "wal2json": No such file or directory' in said
    assert "postgresql-VERSION-wal2json" in said
    assert lab.slot_row() == {}


def test_a_slot_that_waits_says_for_whom_and_is_made_when_they_end_A09(lab: Lab, stuck: str) -> None:
    with applying(lab) as child:
        wait_until(lambda: stuck in output(lab), 10, lambda: f"setup says that it waits:\n{output(lab)}")
        assert half_made(lab)
        lab.conn.execute(f"ROLLBACK PREPARED '{stuck}'")
        wait_until(lambda: child.poll() is not None, 10, "setup has ended")
        assert child.returncode == 0, output(lab)
    assert lab.slot_row()["confirmed_flush_lsn"] is not None


def test_an_open_transaction_is_named_by_its_process_A09(lab: Lab) -> None:
    lab.conn.execute("CREATE TABLE noise (i int)")
    writer = lab.connect()
    with applying(lab), writer.transaction():
        writer.execute("INSERT INTO noise VALUES (1)")
        pid = writer.info.backend_pid
        wait_until(lambda: f"PID {pid} " in output(lab), 10, lambda: f"setup names the writer:\n{output(lab)}")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_wait_and_leaves_no_half_of_a_slot_A09(
    lab: Lab, stuck: str, sig: signal.Signals
) -> None:
    with applying(lab) as child:
        wait_until(lambda: half_made(lab), 10, "the slot is being made")
        child.send_signal(sig)
        wait_until(lambda: child.poll() is not None, 5, "setup has ended")
        assert child.returncode == AWAY_EXIT
    assert "interrupted" in output(lab)
    assert lab.slot_row() == {}


def test_a_killed_setup_leaves_no_half_of_a_slot_A09(lab: Lab, stuck: str) -> None:
    with applying(lab) as child:
        wait_until(lambda: half_made(lab), 10, "the slot is being made")
        child.kill()
        wait_until(lambda: lab.slot_row() == {}, 5, "the server has noticed and dropped the slot")


def test_the_wait_is_bounded_and_leaves_no_half_of_a_slot_A09(lab: Lab, stuck: str, full: bool) -> None:
    script = (SQL / "slot.sql").read_text()
    if not full:
        script = script.replace("'60s'", "'500ms'")
    with pytest.raises(AssertionError, match="lock timeout"):
        psql(lab, script, f"slot={lab.slot}")
    assert lab.slot_row() == {}


# ---------------------------------------------------------------- files of sql/


def shape(lab: Lab) -> list[tuple[Any, ...]]:
    """All columns of the lab's tables, all roles and slots."""
    return lab.conn.execute(
        "SELECT table_name::text, column_name::text, data_type::text, is_nullable::text"
        " FROM information_schema.columns WHERE table_schema = 'public'"
        " UNION ALL SELECT 'role', rolname, rolreplication::text, rolcanlogin::text FROM pg_roles"
        " UNION ALL SELECT 'slot', slot_name, plugin, database FROM pg_replication_slots"
        " UNION ALL SELECT 'index', indexname, indexdef, '' FROM pg_indexes WHERE schemaname = 'public'"
        " ORDER BY 1, 2"
    ).fetchall()


@pytest.mark.parametrize(
    "file, variables, made",
    [
        ("outbox_events.sql", ["table=odd \"one\""], 'odd "one"'),
        ("outbox_events.sql", [], "outbox_events"),
        ("processed_events.sql", [], "processed_events"),
        ("plugin.sql", [], None),
    ],
)
def test_a_file_of_sql_may_run_twice(lab: Lab, file: str, variables: list[str], made: str | None) -> None:
    if made is not None:
        lab.conn.execute(f"DROP TABLE {TABLE}")
    psql(lab, SQL / file, *variables)
    once = shape(lab)
    assert made is None or made in {row[0] for row in once}
    psql(lab, SQL / file, *variables)
    assert shape(lab) == once


def test_the_file_of_the_role_gives_the_least_rights_twice(lab: Lab) -> None:
    role = f'ro"le {lab.db}'
    quoted = '"' + role.replace('"', '""') + '"'
    for _ in range(2):
        psql(lab, SQL / "role.sql", f"role={role}")
    try:
        assert lab.conn.execute(
            "SELECT rolcanlogin, rolreplication, rolsuper, rolcreaterole, rolcreatedb, rolbypassrls,"
            " pg_has_role(oid, 'pg_monitor', 'member') FROM pg_roles WHERE rolname = %s",
            [role],
        ).fetchall() == [(True, True, False, False, False, False, True)]
    finally:
        lab.conn.execute(f"DROP ROLE {quoted}")


def test_the_file_of_the_slot_makes_it_once(lab: Lab) -> None:
    psql(lab, SQL / "slot.sql", f"slot={lab.slot}")
    row = lab.slot_row()
    assert (row["plugin"], row["database"]) == ("wal2json", lab.db)
    psql(lab, SQL / "slot.sql", f"slot={lab.slot}")
    assert lab.slot_row() == row


def test_the_table_polls_by_its_index(lab: Lab) -> None:
    lab.conn.execute(f"DROP TABLE {TABLE}")
    psql(lab, SQL / "outbox_events.sql")
    lab.conn.execute("SET enable_seqscan = off")
    plan = lab.conn.execute(
        f"EXPLAIN SELECT * FROM {TABLE} WHERE processed_at IS NULL ORDER BY created_at LIMIT 10"
    ).fetchall()
    assert "outbox_events_unprocessed" in str(plan)


def test_a_consumer_that_remembers_works_once(lab: Lab) -> None:
    psql(lab, SQL / "processed_events.sql")
    insert = (
        "INSERT INTO processed_events (consumer, event_id) VALUES ('billing', %s) ON CONFLICT DO NOTHING"
    )
    first, again = (lab.conn.execute(insert, ["e1"]).rowcount for _ in range(2))
    assert (first, again) == (1, 0)


def test_every_file_of_sql_is_installed_and_says_who_runs_it() -> None:
    files = sorted(SQL.glob("*.sql"))
    assert files
    for file in files:
        header = file.read_text()
        assert header.startswith(f"-- {file.name} - "), file
        assert "-- Who runs it: " in header and "-- Repeatable: " in header, file
        assert os.access(file, os.R_OK)
