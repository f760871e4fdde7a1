"""A relay that was frozen and replaced, or killed, at the moments that matter to dead letters."""

from __future__ import annotations

from contextlib import contextmanager
from datetime import timedelta
from typing import Iterator

from kit.dead_letters import (
    LETTERS,
    arrived,
    big,
    command,
    end_sessions,
    in_order,
    mend,
    row,
    settings,
    small,
    states,
    wait_resolved,
    wait_states,
    wait_statement,
)
from kit.lab import Lab
from kit.relay import Relay
from kit.wait import wait_until

STANDING_BY = r"slot \S+ is active for PID \d+: standing by"
INSERT, DUE, RESOLVE, LOAD = "%(place,%", "%due AS (%", "%SET state = 'resolved'%", "SELECT id, topic, encode%"


def pair(lab: Lab, second_delay: str = "1h", **first: str) -> tuple[Relay, Relay]:
    """A relay that streams and one that stands by, and takes over two seconds after the first is frozen."""
    dsn = {"postgres": {"dsn": lab.postgres.dsn(lab.db, options="-c wal_sender_timeout=2s")}}
    streams = lab.running_relay({**settings(**first), **dsn})
    waits = lab.relay({**settings(retry_initial=second_delay, retry_max=second_delay), **dsn})
    waits.start()
    waits.wait_for_log(STANDING_BY)
    return streams, waits


@contextmanager
def locked(lab: Lab, mode: str = "ACCESS EXCLUSIVE") -> Iterator[None]:
    locker = lab.connect()
    with locker.transaction():
        locker.execute(f"LOCK TABLE {LETTERS} IN {mode} MODE")
        yield


@contextmanager
def locked_row(lab: Lab, event: str) -> Iterator[None]:
    """What the row says may be read, and not be changed."""
    locker = lab.connect()
    with locker.transaction():
        locker.execute(f"SELECT FROM {LETTERS} WHERE event_id = %s FOR UPDATE", [event])
        yield


def replace(first: Relay, second: Relay) -> None:
    first.freeze()
    second.wait_for_log("streaming from slot", timeout=60)


def thaw(relay: Relay) -> None:
    """It has learnt that another streams now."""
    mark = relay.log_mark()
    relay.thaw()
    relay.wait_for_log(STANDING_BY, 30, mark)


def copies(lab: Lab, event: str) -> int:
    """How often Kafka has it."""
    return sum(record.header("id") == event.encode() for record in lab.checker.collect())


def finish(lab: Lab, relay: Relay, *ids: str) -> None:
    """The topic is mended, all is tried again, and arrives in this order."""
    mend(lab)
    command(relay, "retry", "--all")
    wait_resolved(lab)
    in_order(lab, *ids)


# ------------------------------------------------------------------------------- the fence


def test_a_relay_that_was_replaced_writes_no_dead_letter_that_it_had_begun_to_write(letters: Lab) -> None:
    first, second = pair(letters, "5h", retry_initial="1h", retry_max="1h")
    with locked(letters):
        guilty = big(letters, "k")
        wait_statement(letters, INSERT)
        replace(first, second)
    wait_states(letters, (guilty, "waiting"), timeout=60)
    written = row(letters, guilty)
    # By the second: a wait is drawn from the upper half of its step, here 2.5 to 5 hours and not 0.5 to 1.
    assert written["retry_after"] - written["first_failed_at"] >= timedelta(hours=2.5)
    thaw(first)
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    assert row(letters, guilty) == written
    finish(letters, second, guilty, held)
    letters.verify(duplicates=0)


def test_a_relay_that_was_replaced_does_not_insert_a_dead_letter_that_was_discarded_meanwhile(letters: Lab) -> None:
    first, second = pair(letters)
    with locked(letters):
        guilty = big(letters, "k")
        first.wait_for_log("the table of dead letters: .*lock timeout", timeout=60)
        replace(first, second)
    wait_states(letters, (guilty, "waiting"), timeout=60)
    letters.conn.execute(f"UPDATE {LETTERS} SET state = 'discarded' WHERE event_id = %s", [guilty])
    thaw(first)
    later = small(letters, "k", 1)
    in_order(letters, later)
    wait_states(letters, (guilty, "discarded"))
    letters.verify(duplicates=0)
    assert copies(letters, guilty) == 0


def test_a_relay_that_was_replaced_does_not_release_dead_letters_that_it_found_due(letters: Lab) -> None:
    first, second = pair(letters)
    guilty, *held = three(letters)
    mend(letters)
    letters.conn.execute(f"UPDATE {LETTERS} SET retry_after = now() + interval '5 s' WHERE event_id = %s", [guilty])
    with locked(letters):
        wait_statement(letters, DUE)
        replace(first, second)
    wait_resolved(letters)
    thaw(first)
    newer = small(letters, "k", 3)
    in_order(letters, guilty, *held, newer)
    letters.verify(duplicates=0)


# --------------------------------------------------------------------------------- crashes


def three(lab: Lab) -> list[str]:
    """One dead letter and two that it holds."""
    guilty = big(lab, "k")
    held = [small(lab, "k", n) for n in (1, 2)]
    wait_states(lab, (guilty, "waiting"), *((event, "held") for event in held), timeout=60)
    lab.wait_confirmed()
    return [guilty, *held]


def killed_before_it_is_noted(lab: Lab, relay: Relay, event: str, last: str) -> None:
    """All are tried again; when the last one is in Kafka, and the row of `event` is waited for, the relay is killed."""
    with locked_row(lab, event):
        command(relay, "retry", "--all")
        wait_until(lambda: arrived(lab, last), 60, "the last one arrives")
        wait_statement(lab, RESOLVE)
        relay.kill()
        end_sessions(lab)  # or the statement goes on when it may


def test_a_kill_while_released_dead_letters_are_not_noted_yet_repeats_them_in_order(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    guilty, *held = three(letters)
    mend(letters)
    killed_before_it_is_noted(letters, relay, held[1], last=held[1])
    relay.start()
    wait_resolved(letters)
    newer = small(letters, "k", 3)
    in_order(letters, guilty, *held, newer)
    letters.verify()
    assert copies(letters, guilty) == 1 and copies(letters, held[1]) == 2


def test_a_kill_between_two_releases_of_dead_letters_repeats_only_the_second(letters: Lab) -> None:
    """They are released 4 MB at a time, so make them large; compressed they are small."""
    relay = letters.running_relay(settings())
    guilty = big(letters, "k")
    held = [small(letters, "k", n) for n in range(6)]
    wait_states(letters, (guilty, "waiting"), *((event, "held") for event in held))
    letters.conn.execute(
        f"UPDATE {LETTERS} SET replaced = true, replacement = convert_to(repeat('x', 900000), 'UTF8')"
        " WHERE state = 'held'"
    )
    mend(letters)
    killed_before_it_is_noted(letters, relay, held[4], last=held[5])
    assert [state for state in states(letters).values()] == ["resolved"] * 5 + ["held"] * 2
    relay.start()
    wait_resolved(letters)
    in_order(letters, guilty, *held)
    assert [copies(letters, event) for event in held] == [1, 1, 1, 1, 2, 2]


def test_a_kill_while_what_is_held_is_read_changes_nothing_for_dead_letters(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    guilty, *held = three(letters)
    relay.kill()
    with locked(letters):
        newer = small(letters, "k", 3)
        relay.start()
        wait_statement(letters, LOAD)
        relay.kill()
    relay.start()
    wait_states(letters, (guilty, "waiting"), *((event, "held") for event in (*held, newer)), timeout=60)
    finish(letters, relay, guilty, *held, newer)
    letters.verify(duplicates=0)
