"""An event that cannot be published stops the relay before it; mended, it is the first one."""

from __future__ import annotations

import re
import pytest

from kit.lab import Lab
from kit.relay import Config, Relay
from kit.rows import EVENTS, arrivals, insert, make_table, section

POISON_EXIT = 65


def stops_before(lab: Lab, relay: Relay, event: str, reason: str, table: str = EVENTS) -> None:
    """Expect that the relay has ended, naming the event in one line, with the slot before it."""
    assert relay.wait_exit() == POISON_EXIT
    errors = re.findall(r"^\S+ error .*$", relay.log_text(), re.MULTILINE)
    assert len(errors) == 1, errors
    assert reason in errors[0] and event in errors[0] and table in errors[0], errors[0]
    assert re.search(rf" event_id={event} .*\battempt=1$", errors[0]), errors[0]
    lsn = re.search(r"[0-9A-F]+/[0-9A-F]+", errors[0])
    assert lsn
    ((before,),) = lab.conn.execute(
        "SELECT confirmed_flush_lsn <= %s::pg_lsn FROM pg_replication_slots WHERE slot_name = %s",
        [lsn.group(), lab.slot],
    ).fetchall()
    assert before, f"{errors[0]}\n{lab.slot_row()}"


def is_first_after(lab: Lab, kept: list[str], event: str, after: list[str], mended: Config) -> None:
    """Expect that what came before has arrived, and that the mended relay goes on with the event."""
    lab.checker.committed = {name: n for n, name in enumerate([*kept, event, *after])}
    assert sorted(str((r.header("id") or b"").decode()) for r in lab.checker.collect()) == sorted(kept)
    lab.running_relay(mended)
    lab.verify(duplicates=0)
    rest = [(record.header("id") or b"").decode() for record in lab.checker.records[len(kept) :]]
    assert rest[0] == event and sorted(rest[1:]) == sorted(after)


@pytest.mark.parametrize(
    "kind, reason",
    [
        (None, "column aggregate_type is NULL, and the topic is named after it"),
        ("ünï/b c", '.ünï/b c" is no name for a topic'),
        ("x" * 250, "the topic's name would be longer than 249 bytes"),
    ],
    ids=["null", "odd", "long"],
)
def test_an_event_without_a_legal_topic_waits_until_the_template_is_mended_A58(
    lab: Lab, kind: "str | None", reason: str
) -> None:
    order = lab.topic("order", partitions=1)
    make_table(lab, "payload jsonb")
    relay = lab.running_relay(section(lab))
    kept = [insert(lab, EVENTS, payload="{}") for _ in range(3)]
    bad = insert(lab, EVENTS, aggregate_type=kind)
    after = [insert(lab, EVENTS) for _ in range(3)]
    stops_before(lab, relay, bad, reason)
    is_first_after(lab, kept, bad, after, section(lab, topic=order))


@pytest.mark.parametrize("name", ["", ".."])
def test_a_topic_of_dots_or_nothing_is_refused_A58(lab: Lab, name: str) -> None:
    order = lab.topic("order", partitions=1)
    make_table(lab, "payload jsonb")
    relay = lab.running_relay(section(lab, topic="{aggregate_type}"))
    bad = insert(lab, EVENTS, aggregate_type=name)
    stops_before(lab, relay, bad, f'"{name}" is no name for a topic')
    is_first_after(lab, [], bad, [], section(lab, topic=order))


@pytest.mark.parametrize("shard", ["-1", "2147483648"])
def test_a_number_that_no_partition_can_have_is_refused(lab: Lab, shard: str) -> None:
    lab.topic("order", partitions=2)
    make_table(lab, "payload jsonb, shard bigint")
    relay = lab.running_relay(section(lab, partition="shard"))
    kept = [insert(lab, EVENTS, shard="1")]
    bad = insert(lab, EVENTS, shard=shard)
    after = [insert(lab, EVENTS, shard="0")]
    stops_before(lab, relay, bad, f'column shard holds "{shard}", which is no number of a partition')
    is_first_after(lab, kept, bad, after, section(lab))


def test_a_partition_that_was_text_when_the_row_was_written_is_refused(lab: Lab) -> None:
    lab.topic("order", partitions=2)
    make_table(lab, "payload jsonb, shard text")
    lab.make_slot()
    bad = insert(lab, EVENTS, shard="one")
    lab.conn.execute(f"ALTER TABLE {EVENTS} ALTER shard TYPE int USING 1")
    after = [insert(lab, EVENTS, shard="1")]
    relay = lab.relay(section(lab, partition="shard"))
    relay.start()
    stops_before(lab, relay, bad, 'column shard holds "one", which is no number of a partition')
    is_first_after(lab, [], bad, after, section(lab))


def test_a_partition_that_the_topic_lacks_is_refused_until_it_has_it(lab: Lab) -> None:
    order = lab.topic("order", partitions=2)
    make_table(lab, "payload jsonb, shard int")
    changes = section(lab, partition="shard")
    relay = lab.running_relay(changes)
    kept = [insert(lab, EVENTS, shard=n % 2) for n in range(4)]
    bad = insert(lab, EVENTS, shard=2)
    after = [insert(lab, EVENTS, shard=n % 3) for n in range(3)]
    stops_before(lab, relay, bad, "the topic has no such partition")
    lab.checker.committed = {name: n for n, name in enumerate([*kept, bad, *after])}
    lab.kafka.add_partitions(order, 3)
    lab.running_relay(changes)
    lab.verify()
    assert [record.partition for record in arrivals(lab, *kept, bad, *after)] == [0, 1, 0, 1, 2, 0, 1, 2]


def test_a_row_from_before_its_payload_column_existed_is_refused_A25(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    make_table(lab, "payload jsonb")
    lab.make_slot()
    bad = insert(lab, EVENTS, payload="1")
    lab.conn.execute(f"ALTER TABLE {EVENTS} ADD body jsonb")
    after = [insert(lab, EVENTS, body="2")]
    relay = lab.relay(section(lab, payload="body"))
    relay.start()
    stops_before(lab, relay, bad, "the row has no column body; it had none when it was written")
    is_first_after(lab, [], bad, after, section(lab))


def test_what_was_committed_before_a_refused_event_is_published_and_confirmed(lab: Lab) -> None:
    order = lab.topic("order", partitions=3)
    make_table(lab, "payload jsonb")
    lab.make_slot()
    with lab.conn.transaction():
        kept = [insert(lab, EVENTS, aggregate_id=f"k{n % 7}") for n in range(2000)]
    ((end,),) = lab.conn.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
    with lab.conn.transaction():
        torn = insert(lab, EVENTS)
        bad = insert(lab, EVENTS, aggregate_type="a b")
    relay = lab.relay(section(lab))
    relay.start()
    stops_before(lab, relay, bad, "is no name for a topic")
    assert lab.confirmed_at_least(end)
    found = [(record.header("id") or b"").decode() for record in lab.checker.collect()]
    assert set(kept) <= set(found) <= {*kept, torn}
    lab.running_relay(section(lab, topic=order))
    lab.verify(duplicates=1)  # the beginning of the transaction that could not end
