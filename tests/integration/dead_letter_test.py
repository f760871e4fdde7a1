"""Events that Kafka does not take: into the table, what follows them held, and out of it again in order."""

from __future__ import annotations

import json
import signal

from kit.dead_letters import (
    BIG,
    LETTERS,
    arrived,
    big,
    command,
    in_order,
    mend,
    mend_and_retry,
    retried,
    row,
    settings,
    small,
    states,
    wait_resolved,
    wait_states,
)
from kit.lab import Lab
from kit.rows import EVENTS, arrivals, insert, make_table, section
from kit.wait import wait_until

# ------------------------------------------------------------------------- into the table


def test_an_event_without_a_topic_becomes_a_dead_letter_and_the_others_go_on(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    with letters.writer.transaction():
        before = letters.writer.insert("a")
        bad = small(letters, "a", 1, "no such/topic")
        after = letters.writer.insert("a")
    arrivals(letters, before, after)
    wait_states(letters, (bad, "dead"))
    letters.wait_confirmed()
    found = row(letters, bad)
    assert (found["topic"], found["key"], found["payload"]) == (None, b"a", b'{"n": 1}')
    assert (found["reason"], found["error_code"]) == ("not publishable", None)
    assert "is no name for a topic" in found["error"] and found["commit_lsn"] is not None
    assert relay.running
    assert bad in relay.wait_for_log(r"^.* warning a dead letter: .*$").group()


def test_a_dead_letter_holds_its_key_and_a_retry_releases_all_in_order_before_newer_ones(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    first = letters.writer.number("k", 1)
    guilty = big(letters, "k")
    held = [small(letters, "k", n) for n in (2, 3)]
    others = letters.writer.number("other", 1, 2)
    arrivals(letters, *first, *others)
    wait_states(letters, (guilty, "waiting"), *((event, "held") for event in held))
    letters.wait_confirmed()
    found = row(letters, guilty)
    assert (found["topic"], found["key"]) == (letters.prefix + "order", b"k")
    assert (found["reason"], found["error_code"]) == ("too large", "MSG_SIZE_TOO_LARGE")
    assert found["aggregate_type"] == "order" and len(found["payload"]) > BIG
    assert dict(zip(found["header_names"], found["header_values"]))["id"] == guilty.encode()
    mend(letters)
    command(relay, "retry", "--all")
    newer = letters.writer.number("k", 4)
    wait_resolved(letters)
    in_order(letters, *first, guilty, *held, *newer)
    letters.verify(duplicates=0)


def test_a_dead_letter_is_retried_by_plain_sql_and_by_itself(letters: Lab) -> None:
    letters.running_relay(settings(retry_initial="200ms", retry_max="1s", max_attempts="3"))
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "dead"))
    assert row(letters, guilty)["attempts"] == 3
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "dead"), (held, "held"))
    mend(letters)
    letters.conn.execute(f"UPDATE {LETTERS} SET attempts = 0, retry_after = NULL WHERE event_id = %s", [guilty])
    wait_resolved(letters)
    in_order(letters, guilty, held)


def test_what_waits_behind_a_discarded_dead_letter_is_published(letters: Lab) -> None:
    letters.running_relay(settings())
    guilty = big(letters, "k")
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    letters.conn.execute(
        f"UPDATE {LETTERS} SET state = 'discarded', note = 'not needed' WHERE event_id = %s", [guilty]
    )
    wait_states(letters, (guilty, "discarded"), (held, "resolved"))
    newer = letters.writer.number("k", 2)
    in_order(letters, held, *newer)


def test_an_event_without_a_key_on_a_compacted_topic_becomes_a_dead_letter_and_holds_nothing(letters: Lab) -> None:
    letters.kafka.alter_topic(letters.topic("state", 1), cleanup_policy="compact")
    letters.running_relay(settings())
    with letters.conn.transaction():
        before = [small(letters, f"k{n}", n, "state") for n in range(50)]
        guilty = small(letters, None, 50, "state")
        after = [small(letters, f"k{n}", n, "state") for n in range(50)]
    in_order(letters, *before, *after)
    wait_states(letters, (guilty, "waiting"))
    assert row(letters, guilty)["error_code"] == "INVALID_RECORD"
    assert row(letters, guilty)["key"] is None
    letters.wait_confirmed()


def test_a_dead_letter_is_tried_again_whatever_was_known_of_its_topic(letters: Lab) -> None:
    letters.kafka.alter_topic(letters.topic("state", 1), cleanup_policy="compact")
    relay = letters.running_relay(settings())
    guilty = small(letters, None, 1, "state")
    wait_states(letters, (guilty, "waiting"))
    letters.kafka.alter_topic(letters.prefix + "state", cleanup_policy="delete")
    command(relay, "retry", "--all")
    wait_resolved(letters)
    in_order(letters, guilty)


def test_dead_letters_without_a_partition_cost_no_producers_and_are_published_once_there_is_one(
    letters: Lab,
) -> None:
    make_table(letters, "payload jsonb, place int")
    changes = {**settings(), **section(letters, partition="place"), "relay": {"log_level": "debug"}}
    relay = letters.running_relay(changes)
    arrivals(letters, insert(letters, EVENTS, place=0))
    bad = [insert(letters, EVENTS, aggregate_id=f"k{n}", place=3) for n in range(20)]
    wait_states(letters, *((event, "waiting") for event in bad), timeout=60)
    assert row(letters, bad[0])["reason"] == "no such partition"
    assert relay.log_text().count("Kafka refuses: ") <= 2
    letters.kafka.add_partitions(letters.prefix + "order", 4)
    command(relay, "retry", "--all")
    wait_resolved(letters)
    assert {record.partition for record in arrivals(letters, *bad)} == {3}
    letters.verify(duplicates=0)


def test_with_order_skip_a_dead_letter_holds_nothing(letters: Lab) -> None:
    letters.running_relay(settings(order="skip"))
    guilty = big(letters, "k")
    after = letters.writer.number("k", 1, 2)
    arrivals(letters, *after)
    wait_states(letters, (guilty, "waiting"))


def test_a_dead_letter_is_sent_with_the_payload_that_replaces_its_own(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    guilty = big(letters, "k")
    wait_states(letters, (guilty, "waiting"))
    path = letters.directory / "payload"
    path.write_bytes(b'{"n": 7}')
    command(relay, "retry", str(row(letters, guilty)["id"]), "--payload-file", str(path))
    wait_resolved(letters)
    letters.checker.commit(guilty)
    (record,) = arrivals(letters, guilty)
    assert json.loads(record.value or b"") == {"n": 7}
    assert len(row(letters, guilty)["payload"]) > BIG


# ------------------------------------------------------------------------------ crashes


def unconfirmed(letters: Lab) -> tuple[str, str]:
    """One transaction: a dead letter, an event that waits for the topic `absent`, one of the first one's key."""
    with letters.conn.transaction():
        guilty = big(letters, "k")
        blocked = small(letters, "b", 1, "absent")
        behind = small(letters, "k", 2)
    wait_states(letters, (guilty, "waiting"))
    letters.checker.commit(blocked)
    return guilty, behind


def test_a_dead_letter_that_was_not_confirmed_is_known_after_a_kill_and_holds_its_key(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    guilty, behind = unconfirmed(letters)
    relay.kill()
    relay.start()
    letters.topic("absent", 1)
    letters.wait_confirmed(60)
    wait_states(letters, (guilty, "waiting"), (behind, "held"))
    mend_and_retry(letters, relay)
    in_order(letters, guilty, behind)
    letters.verify(duplicates=0)


def test_a_dead_letter_that_was_discarded_before_it_came_again_holds_nothing(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    guilty, behind = unconfirmed(letters)
    relay.kill()
    letters.conn.execute(f"UPDATE {LETTERS} SET state = 'discarded' WHERE event_id = %s", [guilty])
    relay.start()
    letters.topic("absent", 1)
    letters.wait_confirmed(60)
    in_order(letters, behind)
    wait_states(letters, (guilty, "discarded"))
    assert row(letters, guilty)["commit_lsn"] is not None


def test_a_kill_between_the_arrival_of_a_dead_letter_and_the_note_of_it_repeats_it_in_order(letters: Lab) -> None:
    relay = letters.running_relay(settings(retry_initial="8s", retry_max="8s"))
    guilty = big(letters, "k")
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    locker = letters.connect()
    with locker.transaction():
        # It may be read, but what has arrived cannot be noted.
        locker.execute(f"LOCK TABLE {LETTERS} IN SHARE MODE")
        mend(letters)
        wait_until(lambda: arrived(letters, guilty), 40, "the dead letter arrives")
        relay.kill()
    relay.start()
    wait_resolved(letters)
    in_order(letters, guilty, held)


def test_a_dead_letter_whose_slot_was_moved_back_is_neither_sent_nor_held_again(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    letters.conn.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [letters.slot, letters.slot + "_old"])
    guilty = big(letters, "k")
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    letters.conn.execute(f"UPDATE {LETTERS} SET state = 'discarded' WHERE event_id = %s", [guilty])
    wait_states(letters, (guilty, "discarded"), (held, "resolved"))
    assert relay.stop() == 0
    letters.conn.execute(f"UPDATE {LETTERS} SET slot = %s", [letters.slot + "_old"])
    letters.slot += "_old"
    letters.running_relay(settings())
    newer = letters.writer.number("k", 2)
    letters.wait_confirmed()
    wait_states(letters, (guilty, "discarded"), (held, "resolved"))
    in_order(letters, held, *newer)
    letters.verify(duplicates=0)


# -------------------------------------------------------------------- a table in trouble


def test_a_locked_dead_letter_table_holds_the_position_and_nothing_else(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    letters.verify()
    locker = letters.connect()
    with locker.transaction():
        locker.execute(f"LOCK TABLE {LETTERS} IN ACCESS EXCLUSIVE MODE")
        guilty = big(letters, "k")
        end = letters.end_of_wal()
        others = letters.writer.number("other", 1, 2)
        arrivals(letters, *others)
        relay.wait_for_log("the table of dead letters: .*lock timeout", timeout=30)
        assert not letters.confirmed_at_least(end)
    wait_states(letters, (guilty, "waiting"), timeout=60)
    letters.wait_confirmed()


def test_a_dead_letter_table_that_vanishes_and_comes_back_loses_nothing(letters: Lab) -> None:
    relay = letters.running_relay(settings())
    letters.verify()
    letters.conn.execute(f"ALTER TABLE {LETTERS} RENAME TO elsewhere")
    guilty = big(letters, "k")
    end = letters.end_of_wal()
    relay.wait_for_log("the table of dead letters: .*does not exist", timeout=30)
    assert relay.running and not letters.confirmed_at_least(end)
    letters.conn.execute(f"ALTER TABLE elsewhere RENAME TO {LETTERS}")
    wait_states(letters, (guilty, "waiting"), timeout=60)
    letters.wait_confirmed()


# -------------------------------------------------------------------------------- limits


def test_beyond_the_limit_of_held_events_the_relay_stops_before_a_dead_letter_is_lost(letters: Lab) -> None:
    relay = letters.running_relay(settings(held_per_key="2"))
    guilty = big(letters, "k")
    held = small(letters, "k", 1)
    wait_states(letters, (guilty, "waiting"), (held, "held"))
    beyond = small(letters, "k", 2)
    assert relay.wait_exit() == 65
    assert "held_per_key" in relay.wait_for_log(r"^\S+ error .*$").group()
    mend(letters)
    again = letters.running_relay(settings())
    command(again, "retry", "--all")
    wait_resolved(letters)
    in_order(letters, guilty, held, beyond)


def test_too_many_dead_letters_in_a_short_time_open_the_breaker_until_sighup(letters: Lab) -> None:
    relay = letters.running_relay(settings(limit="3", limit_window="1h"))
    with letters.conn.transaction():
        for n in range(6):
            small(letters, f"k{n}", n, "no such/topic")
    relay.wait_for_log("warning more than 3 events were refused", timeout=30)
    late = letters.writer.number("k", 1)
    relay.send_signal(signal.SIGHUP)
    arrivals(letters, *late)
    wait_until(lambda: list(states(letters).values()) == ["dead"] * 6, 30, lambda: f"{states(letters)}")


def test_without_the_table_of_dead_letters_an_event_that_kafka_refuses_stops_the_relay(lab: Lab) -> None:
    relay = lab.running_relay(settings())
    small(lab, "k", 1, "no such/topic")
    assert relay.wait_exit() == 65


# -------------------------------------------------------------------------------- a storm


def test_dead_letters_keep_the_order_of_every_key_while_the_relay_is_killed_again_and_again(letters: Lab) -> None:
    relay = letters.running_relay(settings(retry_initial="500ms", retry_max="2s", max_attempts="3"))
    ids: list[str] = []
    for kill in range(4):
        for n in range(60):
            key = f"k{n % 7}"
            ids.append(big(letters, key) if n % 13 == 5 else small(letters, key, n))
        wait_until(lambda: len(states(letters)) > 20 * kill, 60, lambda: f"{len(states(letters))} dead letters")
        relay.kill()
        relay.start()
    letters.wait_confirmed(90)
    mend(letters)
    ids += [small(letters, f"k{n % 7}", n) for n in range(30)]
    wait_until(lambda: retried(letters, relay), 90, lambda: f"{states(letters)}")
    letters.checker.commit(*ids)
    letters.verify()
