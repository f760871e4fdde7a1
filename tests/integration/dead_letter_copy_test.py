"""dead_letter_topic: what Kafka does not take is in a topic, too, and says why."""

from __future__ import annotations

from typing import Iterator

import pytest

from kit.checker import Checker, Record
from kit.dead_letters import LETTERS, Changes, big, command, row, settings, small, states, wait_states
from kit.lab import Lab
from kit.wait import wait_until


@pytest.fixture
def copies(letters: Lab) -> Iterator[Checker]:
    """Reads the topic of dead letters, which is not there yet."""
    checker = Checker(letters.kafka.bootstrap, name_of(letters))
    yield checker
    checker.close()
    letters.kafka.delete_topics(*letters.kafka.topics(name_of(letters)))


def name_of(lab: Lab) -> str:
    return f"dead-{lab.slot}"


def with_copies(lab: Lab, **dead_letters: str) -> Changes:
    return settings(dead_letter_topic=name_of(lab), **dead_letters)


def wait_copies(copies: Checker, n: int) -> list[Record]:
    wait_until(lambda: len(copies.collect()) >= n, 40, lambda: f"{n} copies: {copies.records}")
    return copies.records


def make_topic(lab: Lab) -> None:
    lab.kafka.create_topic(name_of(lab), 1, {"max.message.bytes": "1000000"})


def test_a_dead_letter_is_copied_with_headers_that_say_why_and_what_it_holds_is_not(
    letters: Lab, copies: Checker
) -> None:
    make_topic(letters)
    relay = letters.running_relay(with_copies(letters))
    guilty = big(letters, "k")
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    letters.wait_confirmed()
    found = row(letters, guilty)
    (copy,) = wait_copies(copies, 1)
    assert (copy.key, copy.value) == (b"k", found["payload"])
    own = list(zip(found["header_names"], found["header_values"]))
    assert list(copy.headers[: len(own)]) == own
    errors = {name.removeprefix("__walrelay.errors."): value for name, value in copy.headers[len(own) :]}
    assert int(errors.pop("timestamp") or 0) > 1_700_000_000_000
    assert errors == {
        "topic": found["topic"].encode(),
        "reason": b"too large",
        "code": b"MSG_SIZE_TOO_LARGE",
        "message": found["error"].encode(),
        "attempts": str(found["attempts"]).encode(),
        "slot": letters.slot.encode(),
        "row_lsn": found["row_lsn"].encode(),
        "row_number": b"1",
        "table": b"public.outbox_events",
        "event_id": guilty.encode(),
        "event_type": b"large",
        "aggregate_id": b"k",
    }
    command(relay, "discard", str(found["id"]), "--reason", "not needed")
    nowhere = small(letters, None, 1, "no such/topic")
    wait_states(letters, (guilty, "discarded"), (held, "resolved"), (nowhere, "dead"))
    last = wait_copies(copies, 2)[-1]
    assert last.key is None and ("__walrelay.errors.reason", b"not publishable") in last.headers
    assert len(copies.collect()) == 2


def test_a_kill_between_the_copy_of_a_dead_letter_and_its_row_loses_neither(letters: Lab, copies: Checker) -> None:
    make_topic(letters)
    relay = letters.running_relay(with_copies(letters))
    letters.verify()
    locker = letters.connect()
    with locker.transaction():
        locker.execute(f"LOCK TABLE {LETTERS} IN SHARE MODE")
        guilty = big(letters, "k")
        wait_copies(copies, 1)
        assert states(letters) == {}
        relay.kill()
    relay.start()
    wait_states(letters, (guilty, "waiting"))
    letters.wait_confirmed()
    assert {record.header("id") for record in wait_copies(copies, 2)} == {guilty.encode()}


def test_a_dead_letter_waits_for_the_topic_of_its_copy(letters: Lab, copies: Checker) -> None:
    relay = letters.running_relay(with_copies(letters))
    guilty = big(letters, "k")
    end = letters.end_of_wal()
    others = letters.writer.number("other", 1, 2)
    relay.wait_for_log(r"warning dead_letter_topic .*; create the topic; dead letters and the position wait", 60)
    letters.checker.wait_records(len(others))
    assert states(letters) == {} and not letters.confirmed_at_least(end)
    make_topic(letters)
    wait_states(letters, (guilty, "waiting"), timeout=60)
    letters.wait_confirmed()
    assert len(wait_copies(copies, 1)) == 1


def test_a_dead_letter_whose_copy_is_refused_or_waited_long_enough_is_in_its_table(letters: Lab) -> None:
    relay = letters.running_relay(with_copies(letters, topic_wait="1s"))
    alone = r"warning a dead letter is in its table alone: dead_letter_topic .*"
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "waiting"))
    assert guilty in relay.wait_for_log(alone + "Unknown topic").group() or guilty in relay.log_text()
    letters.kafka.create_topic(name_of(letters), 1, {"max.message.bytes": "100000"})
    mark = relay.log_mark()
    second = big(letters, "other")
    wait_states(letters, (guilty, "waiting"), (second, "waiting"))
    relay.wait_for_log(alone, after=mark)
    letters.wait_confirmed()
    letters.kafka.delete_topics(name_of(letters))
