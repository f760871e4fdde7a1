"""The table of dead letters in trouble: the position waits for it, all else goes on, and so does it afterwards."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import Iterator

import pytest

from kit.dead_letters import (
    LETTERS,
    arrived,
    big,
    end_sessions,
    in_order,
    make_letters,
    mend,
    mend_and_retry,
    retried,
    row,
    settings,
    small,
    states,
    wait_resolved,
    wait_states,
    wait_statement,
)
from kit.disk import enlarge, small_disk
from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.proxy import Proxy
from kit.relay import Relay
from kit.rows import arrivals
from kit.wait import wait_until

SENDER_TIMEOUT = "-c wal_sender_timeout=2s"
MINUTE = 60


def running(lab: Lab, dsn: str | None = None, **dead_letters: str) -> Relay:
    """A relay whose stream ends when it is silent for two seconds; it has published something."""
    changes = settings(**dead_letters)
    relay = lab.running_relay({**changes, "postgres": {"dsn": dsn or lab.postgres.dsn(lab.db, options=SENDER_TIMEOUT)}})
    arrivals(lab, *lab.writer.number("other", 0))
    return relay


def waits(lab: Lab, relay: Relay, key: str, said: str) -> str:
    """An event becomes a dead letter that cannot be written: that is said, the position waits, and all else goes on.
    Return the event."""
    pid = lab.slot_row()["active_pid"]
    mark = relay.log_mark()
    guilty = big(lab, key)
    end = lab.end_of_wal()
    arrivals(lab, *lab.writer.number("other", 1, 2))
    relay.wait_for_log(f"warning the table of dead letters: .*{said}", MINUTE, mark)
    lab.wait_speaking(3)
    assert relay.running and lab.slot_row()["active_pid"] == pid
    assert not lab.confirmed_at_least(end)
    return guilty


def goes_on(lab: Lab, *expected: tuple[str, str]) -> None:
    wait_states(lab, *expected, timeout=MINUTE)
    lab.wait_confirmed()


# -------------------------------------------------------------------- what may be wrong with it


def test_dead_letters_wait_for_each_right_that_is_taken_away_and_granted_again(letters: Lab, role: str) -> None:
    make_letters(letters, role)
    relay = running(letters, letters.postgres.dsn(letters.db, user=role, password="pw", options=SENDER_TIMEOUT))
    expected = []
    for right in ("INSERT", "UPDATE", "SELECT"):
        letters.conn.execute(f"REVOKE {right} ON {LETTERS} FROM {role}")
        said = "permission denied for table .*; grant SELECT, INSERT and UPDATE on it .* code=42501"
        expected.append((waits(letters, relay, right, said), "waiting"))
        letters.conn.execute(f"GRANT {right} ON {LETTERS} TO {role}")
        goes_on(letters, *expected)
    assert relay.log_text().count("code=42501") == 3
    assert relay.log_text().count("the table of dead letters is in use again") == 3


def test_a_dead_letter_table_that_was_dropped_is_waited_for_and_made_anew(letters: Lab) -> None:
    relay = running(letters)
    letters.conn.execute(f"DROP TABLE {LETTERS} CASCADE")
    guilty = waits(letters, relay, "k", "does not exist.*; bring it back, or .*walrelay setup --apply.* code=42P01")
    make_letters(letters)
    goes_on(letters, (guilty, "waiting"))


def test_without_the_dead_letter_table_that_it_had_a_relay_does_not_stream_again(letters: Lab) -> None:
    """It would not know any more which keys wait."""
    relay = running(letters)
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "waiting"))
    letters.conn.execute(f"ALTER TABLE {LETTERS} RENAME TO elsewhere")
    letters.postgres.execute("SELECT pg_terminate_backend(%s)", letters.slot_row()["active_pid"])
    later = small(letters, "k", 1)
    relay.wait_for_log("warning the table of dead letters is gone.* code=42P01", MINUTE)
    assert relay.running and not letters.slot_row()["active"]
    letters.conn.execute(f"ALTER TABLE elsewhere RENAME TO {LETTERS}")
    wait_states(letters, (guilty, "waiting"), (later, "held"), timeout=MINUTE)
    mend_and_retry(letters, relay)
    in_order(letters, guilty, later)
    letters.verify(duplicates=0)


def test_dead_letters_are_written_though_the_database_is_read_only_by_default(letters: Lab) -> None:
    letters.conn.execute(f"ALTER DATABASE {letters.db} SET default_transaction_read_only = on")
    running(letters)
    guilty = big(letters, "k")
    goes_on(letters, (guilty, "waiting"))
    mend(letters)
    letters.conn.execute(f"UPDATE {LETTERS} SET attempts = 0, retry_after = NULL")
    wait_resolved(letters)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
def test_dead_letters_wait_for_room_on_a_full_disk(server: Postgres, kafka: Kafka) -> None:
    assert server.directory and server.user
    place = server.directory / "small"
    place.mkdir()
    with small_disk(place, server.user, "256k"):
        try:
            with Lab(server, kafka, "disk") as lab:
                make_letters(lab)
                lab.topic("order", 1, {"max.message.bytes": "100000"})
                lab.conn.execute(f"CREATE TABLESPACE small LOCATION '{place}'")
                lab.conn.execute(f"ALTER TABLE {LETTERS} SET TABLESPACE small")
                relay = running(lab)
                guilty = waits(lab, relay, "k", "No space left on device.*; free space on .* code=53100")
                enlarge(place, "64m")
                goes_on(lab, (guilty, "waiting"))
        finally:
            server.stop("immediate")


@contextmanager
def absent_standby(lab: Lab) -> Iterator[None]:
    """Commits of others than the lab's own connection wait for a standby that there is not."""
    lab.conn.execute("SET synchronous_commit = local")
    probe = lab.connect()
    lab.postgres.conf(synchronous_standby_names="absent")

    def commits_wait() -> bool:
        probe.pgconn.consume_input()
        if not probe.pgconn.is_busy():
            while probe.pgconn.get_result():
                pass
            probe.pgconn.send_query(b"SELECT pg_logical_emit_message(true, 'test', '')")
            probe.pgconn.flush()
        return waits_for_standby(lab, probe.info.backend_pid)

    try:
        wait_until(commits_wait, 30, "the server knows that there is to be a standby")
        yield
    finally:
        lab.postgres.conf(synchronous_standby_names=None)


def waits_for_standby(lab: Lab, pid: int) -> bool:
    query = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
    return bool(lab.postgres.execute(query, pid))


def test_a_dead_letter_that_waits_for_an_absent_standby_holds_up_nothing_else_and_is_told(letters: Lab) -> None:
    relay = running(letters)
    with absent_standby(letters):
        said = "PostgreSQL has not answered a statement for 10 s.*SyncRep.*the position waits"
        guilty = waits(letters, relay, "k", said)
    goes_on(letters, (guilty, "waiting"))
    relay.wait_for_log("the table of dead letters is in use again")


def test_a_dead_letter_whose_commit_was_not_answered_is_known_after_a_kill(letters: Lab) -> None:
    relay = running(letters)
    with absent_standby(letters):
        guilty = big(letters, "k")
        end = letters.end_of_wal()
        wait_statement(letters, "%(place,%", "SyncRep")
        relay.kill()
        assert not letters.confirmed_at_least(end)
    held = small(letters, "k", 1)
    relay.start()
    goes_on(letters, (guilty, "waiting"), (held, "held"))
    mend_and_retry(letters, relay)
    in_order(letters, guilty, held)
    letters.verify(duplicates=0)


def test_dead_letters_wait_while_their_connection_ends_at_a_standby(kafka: Kafka) -> None:
    with Postgres() as primary, primary.replica() as replica, Proxy(f"127.0.0.1:{primary.port}") as door:
        with Lab(primary, kafka, "own") as lab:
            make_letters(lab)
            lab.topic("order", 1, {"max.message.bytes": "100000"})
            ports = f"{door.port},{replica.port}"
            relay = running(lab, primary.dsn(lab.db, host="127.0.0.1,127.0.0.1", port=ports, options=SENDER_TIMEOUT))
            replica.wait_replayed(lab.end_of_wal())
            door.shut()
            assert end_sessions(lab) == 1
            guilty = waits(lab, relay, "k", "target_session_attrs=read-write.* code=25006")
            door.heal()
            goes_on(lab, (guilty, "waiting"))


# ------------------------------------------------------------------------ its connection


def test_dead_letters_are_neither_lost_nor_repeated_while_their_connection_is_ended_again_and_again(
    letters: Lab, full: bool
) -> None:
    relay = running(letters, retry_initial="500ms", retry_max="2s", max_attempts="3")
    ids = []
    for turn in range(300 if full else 30):
        for n in range(6):
            key = f"k{n % 5}"
            ids.append(big(letters, key) if n == turn % 6 else small(letters, key, n))
        end_sessions(letters)
        assert not idle_in_transaction(letters)
        if turn == 15:
            mend(letters)
    wait_until(lambda: retried(letters, relay), 120, lambda: f"all are resolved: {states(letters)}", 0.5)
    letters.checker.commit(*ids)
    letters.verify(duplicates=0)
    assert relay.log_text().count("streaming from slot") == 1


def idle_in_transaction(lab: Lab) -> bool:
    query = (
        "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND application_name = 'walrelay'"
        " AND state LIKE 'idle in transaction%%'"
    )
    return bool(lab.postgres.execute(query, lab.db))


def test_dead_letters_that_could_not_be_written_survive_a_restart_of_the_server(letters: Lab) -> None:
    relay = running(letters)
    letters.connect().execute(f"BEGIN; LOCK TABLE {LETTERS} IN ACCESS EXCLUSIVE MODE")
    guilty = waits(letters, relay, "k", "lock timeout.*; somebody holds a lock on it.* code=55P03")
    letters.postgres.restart("immediate")
    letters.conn = letters.writer.conn = letters.connect()
    held = small(letters, "k", 1)
    goes_on(letters, (guilty, "waiting"), (held, "held"))


# ------------------------------------------------------------------------------- retries


def test_after_a_restart_a_dead_letter_is_not_tried_before_its_time(letters: Lab) -> None:
    relay = running(letters)
    guilty = big(letters, "k")
    goes_on(letters, (guilty, "waiting"))
    before = row(letters, guilty)
    mend(letters)
    assert relay.stop() == 0
    letters.kafka.alter_topic(letters.prefix + "order", max_message_bytes=400_000)
    relay.start()
    other = small(letters, "k", 1, "no such/topic")  # written on the same connection, after the look for what is due
    goes_on(letters, (guilty, "waiting"), (other, "dead"))
    assert row(letters, guilty) == before and not arrived(letters, guilty)
    letters.conn.execute(f"UPDATE {LETTERS} SET retry_after = now() + interval '1 s' WHERE event_id = %s", [guilty])
    wait_states(letters, (guilty, "resolved"), (other, "dead"))


def test_who_wants_a_dead_letter_tried_again_is_not_overruled_by_an_attempt_under_way(letters: Lab) -> None:
    running(letters, retry_initial="2s", retry_max="1h")
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "waiting"))
    person = letters.connect()
    with person.transaction():
        person.execute(f"UPDATE {LETTERS} SET attempts = 0, retry_after = NULL")
        wait_statement(letters, "%attempts = attempts + 1%", "transactionid")
        mend(letters)
    wait_states(letters, (guilty, "resolved"))
    assert row(letters, guilty)["attempts"] == 0


def test_a_held_dead_letter_that_is_written_when_nothing_holds_it_any_more_is_published_at_once(letters: Lab) -> None:
    relay = running(letters)
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "waiting"))
    with letters.conn.transaction():
        blocked = small(letters, "b", 1, "absent")
        held = small(letters, "k", 2)  # cannot be written before
    letters.wait_received()
    mend_and_retry(letters, relay)
    letters.topic("absent", 1)
    wait_states(letters, (guilty, "resolved"), (held, "resolved"), timeout=20)
    letters.checker.commit(blocked)
    in_order(letters, guilty, held)
