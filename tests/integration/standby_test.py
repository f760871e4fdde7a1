"""Who may stream, and who waits: a slot that is taken, rights that are missing, a server that is full."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, Iterator

import psycopg
import pytest

from psycopg.pq import ExecStatus

from kit import process
from kit.dead_letters import LETTERS, make_letters
from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.relay import Relay
from kit.wait import wait_until

DENIED_EXIT, CONFIG_EXIT = 77, 78
START = b'START_REPLICATION SLOT "%s" LOGICAL 0/0'
STANDING_BY = r"slot \S+ is active for PID \d+: standing by"


@pytest.fixture
def role(lab: Lab) -> Iterator[str]:
    """A role of the shared server that may replicate."""
    name = f"role_{lab.slot}"
    lab.conn.execute(f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD 'pw'")
    yield name
    for relay in lab.relays:
        relay.kill()
    lab.conn.execute(f"DROP ROLE {name}")


def standing_by(lab: Lab) -> Relay:
    """A further relay that waits for the slot."""
    relay = lab.relay()
    relay.start()
    relay.wait_for_log(STANDING_BY)
    return relay


def walsender_gone(lab: Lab, pid: int) -> bool:
    return not lab.postgres.execute("SELECT 1 FROM pg_stat_replication WHERE pid = %s", pid)


# ------------------------------------------------------------- two relays


def test_a_second_relay_waits_and_takes_over_within_two_seconds_when_the_first_dies_A07(lab: Lab) -> None:
    lab.topic("order")
    first = lab.running_relay()
    pid = lab.slot_row()["active_pid"]
    second = standing_by(lab)
    for n in range(200):
        lab.writer.number("k", n)
    lab.verify(duplicates=0)
    assert lab.slot_row()["active_pid"] == pid
    first.kill()
    wait_until(lambda: walsender_gone(lab, pid), 5, "the server has noticed")
    second.wait_for_log("streaming from slot", timeout=2)
    lab.writer.number("k", *range(200, 220))
    lab.verify()
    assert len(re.findall(STANDING_BY, second.log_text())) == 1


def test_of_two_relays_that_stand_by_one_takes_over_and_the_other_goes_on_waiting_A07(lab: Lab) -> None:
    lab.topic("order")
    first = lab.running_relay()
    others = [standing_by(lab), standing_by(lab)]
    lab.writer.number("k", *range(20))
    first.kill()
    lab.writer.number("k", *range(20, 40))
    lab.verify()
    streaming = [relay for relay in others if "streaming from slot" in relay.log_text()]
    assert len(streaming) == 1 and all(relay.running for relay in others)
    assert streaming[0].stop() == 0
    lab.writer.number("k", *range(40, 60))
    lab.verify()


def test_a_relay_that_stands_by_takes_over_from_one_that_went_silent_A07(lab: Lab) -> None:
    lab.topic("order")
    lab.make_slot()
    first = lab.relay({"postgres": {"dsn": lab.postgres.dsn(lab.db, options="-c wal_sender_timeout=2s")}})
    first.start()
    lab.wait_streaming(first)
    lab.writer.number("k", *range(20))
    second = standing_by(lab)
    first.freeze()
    lab.writer.number("k", *range(20, 40))
    second.wait_for_log("streaming from slot", timeout=20)
    lab.verify()
    first.thaw()
    first.wait_for_log(STANDING_BY)
    lab.writer.number("k", *range(40, 60))
    lab.verify()


def test_a_relay_that_stands_by_takes_over_within_twenty_seconds_from_a_host_that_died_A07(lab: Lab) -> None:
    lab.topic("order")
    first = lab.running_relay()
    lab.writer.number("k", *range(20))
    lab.verify()
    second = standing_by(lab)
    first.freeze()
    second.wait_for_log("streaming from slot", timeout=20)
    lab.writer.number("k", *range(20, 40))
    lab.verify(duplicates=0)


def test_a_slot_that_moved_back_just_before_the_stream_began_is_streamed_from_there_A07(lab: Lab) -> None:
    lab.topic("order")
    lab.make_slot()
    copy = "SELECT pg_copy_logical_replication_slot(%s, %s)"
    earlier = lab.slot + "_earlier"
    lab.conn.execute(copy, [lab.slot, earlier])
    relay = lab.running_relay()
    lab.writer.number("k", *range(5))
    lab.verify(duplicates=0)
    assert relay.stop() == 0
    with lab.connect().transaction() as locked:
        # the checks have seen the slot when they look for partitions
        locked.connection.execute("LOCK TABLE pg_inherits IN ACCESS EXCLUSIVE MODE")
        relay.start()
        wait_until(lambda: lab.checks_are_held_up(), 20, "the checks are held up")
        lab.postgres.drop_slot(lab.slot)
        lab.conn.execute(copy, [earlier, lab.slot])
    relay.wait_for_log("stands before .* streaming again")
    assert lab.verify().duplicates >= 5
    assert relay.stop() == 0


def test_a_slot_that_is_taken_before_the_dead_letters_are_loaded_is_waited_for_A07(lab: Lab) -> None:
    make_letters(lab)
    lab.topic("order")
    lab.make_slot()
    stranger = psycopg.connect(lab.postgres.dsn(lab.db, replication="database"), autocommit=True)
    with lab.connect().transaction() as locked:
        locked.connection.execute("LOCK TABLE pg_inherits IN ACCESS EXCLUSIVE MODE")
        relay = lab.relay()
        relay.start()
        wait_until(lambda: lab.checks_are_held_up(), 20, "the checks are held up")
        assert stranger.pgconn.exec_(START % lab.slot.encode()).status == ExecStatus.COPY_BOTH
    relay.wait_for_log(STANDING_BY, timeout=60)
    stranger.close()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)


def test_a_stream_that_ends_before_the_dead_letters_are_loaded_is_begun_again_A07(lab: Lab) -> None:
    make_letters(lab)
    lab.topic("order")
    lab.make_slot()
    relay = lab.relay()
    with lab.connect().transaction() as locked:
        locked.connection.execute(f"LOCK TABLE {LETTERS} IN ACCESS EXCLUSIVE MODE")
        relay.start()
        pid = wait_until(lambda: lab.slot_row().get("active_pid"), 20, "the relay streams")
        lab.postgres.execute("SELECT pg_terminate_backend(%s)", pid)
        wait_until(lambda: walsender_gone(lab, pid), 5, "it has ended")
    lab.writer.number("k", 1)
    lab.verify(60, duplicates=0)


def test_a_relay_that_stands_by_stops_at_once_A07(lab: Lab) -> None:
    lab.running_relay()
    pid = lab.slot_row()["active_pid"]
    assert standing_by(lab).stop(limit=2) == 0
    assert lab.slot_row()["active_pid"] == pid


# --------------------------------------------------------- rights and room


def denied(relay: Relay) -> str:
    """Start it, expect that it ends for want of rights, return its last line."""
    relay.start()
    assert relay.wait_exit() == DENIED_EXIT, relay.log_text()
    return relay.log_text().strip().splitlines()[-1]


def test_a_role_that_may_not_replicate_ends_the_relay_A11(lab: Lab, role: str) -> None:
    lab.make_slot()
    lab.conn.execute(f"ALTER ROLE {role} NOREPLICATION")
    dsn = lab.postgres.dsn(lab.db, user=role, password="pw")
    assert f"ALTER ROLE {role} REPLICATION" in denied(lab.relay({"postgres": {"dsn": dsn}}))


def test_a_right_to_replicate_that_is_taken_away_ends_the_relay_at_its_next_connection_A11(
    lab: Lab, role: str
) -> None:
    relay = lab.running_relay({"postgres": {"dsn": lab.postgres.dsn(lab.db, user=role, password="pw")}})
    lab.conn.execute(f"ALTER ROLE {role} NOREPLICATION")
    lab.postgres.execute("SELECT pg_terminate_backend(%s)", lab.slot_row()["active_pid"])
    assert relay.wait_exit() == DENIED_EXIT, relay.log_text()


def test_a_pg_hba_line_for_the_database_replication_ends_the_relay_A11(own_lab: Lab) -> None:
    own_lab.make_slot()
    own_lab.conn.execute("CREATE ROLE relay LOGIN REPLICATION PASSWORD 'pw'")
    ((file,),) = own_lab.postgres.execute("SHOW hba_file")
    method = "127.0.0.1/32 scram-sha-256"
    Path(file).write_text(f"host replication relay {method}\nhost all postgres {method}\n")
    own_lab.conn.execute("SELECT pg_reload_conf()")
    dsn = own_lab.postgres.dsn(own_lab.db, user="relay", password="pw")

    def refused() -> bool:
        try:
            psycopg.connect(dsn).close()
        except psycopg.OperationalError:
            return True
        return False

    wait_until(refused, 10, "the server has read pg_hba.conf")
    line = denied(own_lab.relay({"postgres": {"dsn": dsn}}))
    assert "SQL connection" in line and "no pg_hba.conf entry" in line


def refusals(lab: Lab) -> int:
    return lab.postgres.log_text().count("exceeds max_wal_senders")


@pytest.mark.parametrize("server", [{"max_wal_senders": 1}], indirect=True)
def test_a_server_without_a_free_walsender_is_asked_again_until_it_has_one_A11(own_lab: Lab) -> None:
    own_lab.topic("order")
    own_lab.make_slot()
    own_lab.conn.execute("CREATE ROLE relay LOGIN REPLICATION PASSWORD 'pw'")
    dsn = own_lab.postgres.dsn(own_lab.db, user="relay", password="pw")
    with psycopg.connect(dsn + " replication=database", autocommit=True):
        relay = own_lab.relay({"postgres": {"dsn": dsn}})
        relay.start()
        relay.wait_for_log("replication connection.*max_wal_senders")
        wait_until(lambda: refusals(own_lab) >= 3, 15, "the relay tries again")
        assert relay.running
    own_lab.wait_streaming(relay)
    own_lab.writer.number("k", 1)
    own_lab.verify(duplicates=0)
    assert relay.log_text().count("max_wal_senders (currently") == 1


# ------------------------------------------------------------- the plugin


@pytest.fixture
def plugins() -> Iterator[Path]:
    """A folder where the server finds test_decoding under the name wal2json."""
    folder = process.make_directory("plugins")
    folder.chmod(0o755)
    with Postgres() as postgres:
        ((library,),) = postgres.execute("SELECT setting FROM pg_config WHERE name = 'PKGLIBDIR'")
    shutil.copy(Path(library) / "test_decoding.so", folder / "wal2json.so")
    yield folder
    process.remove_directory(folder)


def test_a_plugin_that_does_not_know_an_option_is_named_with_its_own_words_A10(plugins: Path, kafka: Kafka) -> None:
    settings: dict[str, Any] = {"dynamic_library_path": f"{plugins}:$libdir"}
    with Postgres(**settings) as server, Lab(server, kafka, "own") as lab:
        lab.make_slot()
        relay = lab.relay()
        relay.start()
        assert relay.wait_exit() == CONFIG_EXIT, relay.log_text()
        assert 'option "format-version" = "2" is unknown' in relay.log_text()
        assert lab.slot_row()["plugin"] == "wal2json"
