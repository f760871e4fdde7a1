"""Dead letters as the relay writes them, by the program that the tests are built with beside it."""

from __future__ import annotations

import os
import subprocess
from datetime import datetime, timezone

import pytest

from kit.dead_letters import LETTERS, make_letters, put_letter
from kit.lab import Lab

WRITER = os.environ.get("WALRELAY_WRITER")
pytestmark = pytest.mark.skipif(WRITER is None, reason="run by ctest, which names the program")


@pytest.fixture
def letters(lab: Lab) -> Lab:
    """A lab with a slot and the table of dead letters."""
    make_letters(lab)
    lab.make_slot()
    return lab


def writer(lab: Lab, what: str) -> "subprocess.Popen[str]":
    assert WRITER is not None
    return subprocess.Popen(
        [WRITER, lab.postgres.dsn(lab.db), lab.slot, what], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )


def writes(lab: Lab, what: str) -> str:
    """Run it, expect success, return what it printed."""
    child = writer(lab, what)
    said, _ = child.communicate(timeout=120)
    assert child.returncode == 0, said
    return said


def test_dead_letters_are_written_byte_for_byte_in_order_and_once(letters: Lab) -> None:
    writes(letters, "rows")
    rows = letters.conn.execute(f"SELECT * FROM {LETTERS} ORDER BY id").fetchall()
    names = [column.name for column in letters.conn.execute(f"SELECT * FROM {LETTERS} LIMIT 0").description or []]
    assert [row[0] for row in rows] == list(range(rows[0][0], rows[0][0] + 100))
    odd, plain = (dict(zip(names, row)) for row in rows[:2])
    assert (odd["slot"], odd["row_lsn"], odd["row_number"]) == (letters.slot, "1/0", 1)
    assert (plain["row_lsn"], plain["row_number"]) == ("1/0", 2)
    assert odd["committed_at"] == datetime(2025, 11, 30, 10, 0, 0, 1, timezone.utc)
    assert (odd["begin_lsn"], odd["commit_lsn"]) == ("1/0", "2/0")
    assert odd["key"] == b"\xff\x00" and odd["payload"] == b"\x00\xff\"'\\{}"
    assert odd["header_names"] == ["id", 'a"b\\,{}', "empty"]
    assert odd["header_values"] == [b"1", b"\x00\xff", b""]
    assert (odd["event_id"], odd["event_type"], odd["aggregate_id"]) == ("\\xffad", "naïve", "")
    assert odd["record_time"] == datetime(2025, 11, 30, 10, 0, 0, 123000, timezone.utc)
    assert (odd["partition"], odd["given_time"]) == (7, "2025-11-30 10:00:00.123+00")
    assert (odd["state"], odd["attempts"]) == ("waiting", 1) and odd["retry_after"] > odd["first_failed_at"]
    for name in ("topic", "key", "payload", "event_id", "partition", "record_time", "given_time", "retry_after"):
        assert plain[name] is None, name
    assert (plain["state"], plain["attempts"], plain["header_names"]) == ("held", 0, [])


def test_the_end_of_a_dead_letters_transaction_is_added_when_it_is_known(letters: Lab) -> None:
    """By a statement of its own, or with the row, if that is written once more because no answer had come."""
    writes(letters, "end")
    assert letters.conn.execute(f"SELECT begin_lsn::text, commit_lsn::text FROM {LETTERS} ORDER BY id").fetchall() == [
        ("1/0", "3/0"),
        ("1/0", "3/0"),
        ("1/1", "4/0"),
    ]


def test_a_dead_letter_is_not_written_for_a_slot_that_another_streams(letters: Lab) -> None:
    child = writer(letters, "foreign")
    said, _ = child.communicate(timeout=60)
    assert child.returncode == 1 and "is not streamed by this relay any more" in said, said
    assert letters.conn.execute(f"SELECT count(*) FROM {LETTERS}").fetchall() == [(0,)]


def test_a_locked_dead_letter_table_is_a_failure_after_a_while(letters: Lab) -> None:
    locker = letters.connect()
    with locker.transaction():
        locker.execute(f"LOCK TABLE {LETTERS} IN ACCESS EXCLUSIVE MODE")
        child = writer(letters, "rows")
        said, _ = child.communicate(timeout=60)
    assert child.returncode == 1 and "lock timeout" in said, said


def test_many_dead_letters_are_written_in_order(letters: Lab) -> None:
    writes(letters, "many")
    ((n, ordered),) = letters.conn.execute(
        "SELECT count(*), bool_and(row_lsn >= before) FROM"
        f" (SELECT row_lsn, lag(row_lsn, 1, '0/0') OVER (ORDER BY id) AS before FROM {LETTERS}) AS rows"
    ).fetchall()
    assert (n, ordered) == (10000, True)


def test_unresolved_dead_letters_and_those_that_come_again_are_loaded(letters: Lab) -> None:
    def put(n: int, state: str, end: str | None, **values: object) -> None:
        place = {"row_lsn": f"1/{n}", "committed_at": "2025-11-30T10:00:00Z", "commit_lsn": end}
        put_letter(letters, state=state, **place, **values)

    put(0, "waiting", "1/F", key=b"\x00\xff")
    put(1, "held", "2/0", key=b"\x00\xff")
    put(2, "dead", "2/1", key=b"")
    put(3, "resolved", "2/0")
    put(4, "resolved", "2/1")
    put(5, "discarded", None)
    put(6, "waiting", "2/1", key=None)
    put(7, "waiting", "2/1", slot="another")
    for _ in range(1500):  # more than are read at once
        put_letter(letters, key=b"many", commit_lsn="1/F")
    assert writes(letters, "load").splitlines() == [
        "keys 3 events 1503",
        "known 2",
        "known 4",
        "known 5 open",
        "known 6",
        "free 0",
    ]


def test_attempts_at_dead_letters_are_counted_and_people_are_not_overruled(letters: Lab) -> None:
    for state, attempts in (("waiting", 1), ("discarded", 1), ("waiting", 0), ("waiting", 1), ("resolved", 1)):
        put_letter(letters, state=state, attempts=attempts, retry_after="2020-01-01")
    writes(letters, "attempts")
    assert letters.conn.execute(
        "SELECT state, attempts, reason, error_code, error, retry_after > now() + interval '30 s'"
        f" FROM {LETTERS} ORDER BY id"
    ).fetchall() == [
        ("resolved", 1, "too large", "MSG_SIZE_TOO_LARGE", "Broker: Message size too large", None),
        ("discarded", 1, "too large", "MSG_SIZE_TOO_LARGE", "Broker: Message size too large", False),
        ("waiting", 1, "not known", None, "odd", True),
        ("dead", 2, "not known", None, "odd", True),
        ("resolved", 1, "too large", "MSG_SIZE_TOO_LARGE", "Broker: Message size too large", False),
    ]
