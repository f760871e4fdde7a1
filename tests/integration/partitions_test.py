"""Rows of a partitioned table, or of one with children, are published wherever they lie."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any, Callable, Iterator

import psycopg
import pytest

from kit.lab import TABLE, Lab
from kit.relay import Config, Relay

POISON_EXIT, CONFIG_EXIT = 65, 78
COLUMNS = "(aggregate_type, aggregate_id, event_type, payload)"


def put(lab: Lab, table: str, key: str, *numbers: int, conn: psycopg.Connection[Any] | None = None) -> list[str]:
    """Insert an event for each number, without a word to the checker; return their ids."""
    return [
        str(row[0])
        for n in numbers
        for row in (conn or lab.conn).execute(
            f"INSERT INTO {table} {COLUMNS} VALUES ('order', %s, 'e', %s) RETURNING id",
            [key, json.dumps({"n": n})],
        )
    ]


def commit(lab: Lab, table: str, key: str, *numbers: int) -> None:
    """Insert events that must be published."""
    lab.checker.commit(*put(lab, table, key, *numbers))


def never(lab: Lab, table: str, key: str, *numbers: int) -> None:
    """Insert rows that must not be published."""
    lab.checker.roll_back(*put(lab, table, key, *numbers))


def partitioned(lab: Lab) -> Config:
    """The table events with partitions for the keys a and b, and the section that publishes it."""
    lab.topic("order")
    lab.conn.execute(f"CREATE TABLE events (LIKE {TABLE} INCLUDING DEFAULTS) PARTITION BY LIST (aggregate_id)")
    for key in "ab":
        lab.conn.execute(f"CREATE TABLE events_{key} PARTITION OF events FOR VALUES IN ('{key}')")
    return {"table public.events": {"topic": lab.prefix + "{aggregate_type}"}}


def new_partition(lab: Lab, name: str, key: str) -> None:
    lab.conn.execute(f"CREATE TABLE {name} PARTITION OF events FOR VALUES IN ('{key}')")


def look(relay: Relay, pattern: str) -> None:
    """Let the relay check the server now; wait for a line of its log."""
    mark = relay.log_mark()
    relay.send_signal(signal.SIGHUP)
    relay.wait_for_log(pattern, after=mark)


# ------------------------------------------------------- present at start


def test_the_rows_of_every_partition_take_the_parents_routing_A32(lab: Lab) -> None:
    config = partitioned(lab)
    lab.conn.execute('CREATE SCHEMA "Old ones"')
    new_partition(lab, '"Old ones"."2024, first"', "c")
    lab.conn.execute("CREATE TABLE rest PARTITION OF events DEFAULT PARTITION BY LIST (event_type)")
    lab.conn.execute("CREATE TABLE rest_e PARTITION OF rest DEFAULT")
    lab.running_relay(config)
    for n, key in enumerate("abcdabcd"):
        commit(lab, "events", key, n)
    commit(lab, "events_a", "a", 8)
    lab.verify(duplicates=0)


def test_the_rows_of_children_and_of_their_parent_are_published_A32(lab: Lab) -> None:
    lab.topic("order")
    lab.conn.execute(f"CREATE TABLE child () INHERITS ({TABLE})")
    lab.conn.execute("CREATE TABLE grandchild (more text) INHERITS (child)")
    lab.running_relay()
    for n, table in enumerate([TABLE, "child", "grandchild", "child", TABLE]):
        commit(lab, table, "k", n)
    lab.verify(duplicates=0)


def test_an_unlogged_partition_is_refused_at_start_A32(lab: Lab) -> None:
    config = partitioned(lab)
    lab.conn.execute("CREATE UNLOGGED TABLE fast PARTITION OF events DEFAULT")
    lab.make_slot()
    relay = lab.relay(config)
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    assert "public.fast is UNLOGGED" in relay.log_text()


# ------------------------------------------------- made while we stream


def test_a_partition_that_is_made_while_the_relay_streams_loses_nothing_A32(lab: Lab) -> None:
    relay = lab.running_relay(partitioned(lab))
    commit(lab, "events", "a", 1, 2)
    new_partition(lab, "events_c", "c")
    for n in range(3, 30):
        commit(lab, "events", "abc"[n % 3], n)
    lab.verify(duplicates=0)
    new_partition(lab, '"Events d"', "d")
    commit(lab, "events", "d", 30)
    commit(lab, "events", "a", 31)
    lab.verify(duplicates=0)
    assert relay.log_text().count("is a new partition") == 2


def test_a_partitioned_table_without_partitions_gets_its_first_one_A32(lab: Lab) -> None:
    config = partitioned(lab)
    lab.conn.execute("DROP TABLE events_a, events_b")
    lab.running_relay(config)
    new_partition(lab, "events_a", "a")
    commit(lab, "events", "a", 1, 2)
    lab.verify(duplicates=0)


def test_a_child_that_is_made_while_the_relay_streams_loses_nothing_A32(lab: Lab) -> None:
    lab.topic("order")
    lab.conn.execute(f"CREATE TABLE child () INHERITS ({TABLE})")
    lab.running_relay()
    lab.conn.execute("CREATE TABLE grandchild (more text) INHERITS (child)")
    commit(lab, "grandchild", "k", 1)
    commit(lab, TABLE, "k", 2)
    lab.verify(duplicates=0)


def test_a_partition_that_was_made_filled_and_renamed_while_the_relay_was_down_is_complete_A32(lab: Lab) -> None:
    config = partitioned(lab)
    relay = lab.running_relay(config)
    assert relay.stop() == 0
    new_partition(lab, "events_c", "c")
    commit(lab, "events", "c", 1)
    relay.start()
    lab.verify(duplicates=0)
    lab.conn.execute("ALTER TABLE events_c RENAME TO events_gamma")
    commit(lab, "events", "c", 2)
    lab.verify(duplicates=0)


@pytest.fixture
def stuck_commits(lab: Lab) -> Iterator[Callable[[], None]]:
    """Until this is called every commit waits, written and not yet visible, for a standby."""

    def release() -> None:
        lab.postgres.conf(synchronous_standby_names=None)

    lab.postgres.conf(synchronous_standby_names="nobody")
    yield release
    release()


def test_a_partition_that_nobody_can_see_yet_is_waited_for_A32(
    lab: Lab, stuck_commits: Callable[[], None]
) -> None:
    """A transaction is in the stream before it is visible; with a synchronous standby, long before."""
    lab.conn.execute("SET synchronous_commit = local")
    relay = lab.running_relay(partitioned(lab))
    commit(lab, "events", "a", 1)
    made = threading.Thread(target=make_and_fill, args=(lab, lab.connect()))
    made.start()
    relay.wait_for_log("transaction ends that is changing partitions")
    stuck_commits()
    made.join()
    commit(lab, "events", "a", 3)
    lab.verify()


def make_and_fill(lab: Lab, conn: psycopg.Connection[Any]) -> None:
    """A new partition and its first row in one transaction."""
    with conn.transaction():
        conn.execute("CREATE TABLE events_c PARTITION OF events FOR VALUES IN ('c')")
        events = put(lab, "events", "c", 2, conn=conn)
    lab.checker.commit(*events)


# ------------------------------------------------------ tables beside them


def test_tables_beside_the_partitions_are_not_published_A32(lab: Lab) -> None:
    config = partitioned(lab)
    lab.conn.execute(f"CREATE TABLE archive (LIKE {TABLE} INCLUDING ALL)")
    lab.conn.execute("CREATE TABLE noise (i int, t text)")
    relay = lab.running_relay(config)
    lab.conn.execute("INSERT INTO noise SELECT i, 'x' FROM generate_series(1, 1000) AS i")
    for n in range(20):
        commit(lab, "events", "a", n)
        never(lab, "archive", "a", n)
    lab.conn.execute(f"CREATE TABLE copied AS TABLE {TABLE}")
    never(lab, "copied", "a", 100)
    commit(lab, TABLE, "k", 21)
    lab.verify(duplicates=0)
    assert "streaming again" not in relay.log_text()


def test_a_table_that_was_looked_up_before_is_published_once_it_is_attached_A32(lab: Lab) -> None:
    config = partitioned(lab)
    lab.conn.execute(f"CREATE TABLE later (LIKE {TABLE} INCLUDING DEFAULTS)")
    lab.running_relay(config)
    never(lab, "later", "c", 1)
    commit(lab, "events", "a", 2)
    lab.verify(duplicates=0)
    with lab.conn.transaction():
        lab.conn.execute("ALTER TABLE events ATTACH PARTITION later FOR VALUES IN ('c')")
        events = put(lab, "events", "c", 3)
    lab.checker.commit(*events)
    commit(lab, "events", "c", 4)
    lab.verify()


# --------------------------------------------- gone before they were read


def backlog_of(lab: Lab, after: str) -> Relay:
    """A row in a partition that was made while the relay was down, then `after`; the relay started."""
    relay = lab.running_relay(partitioned(lab))
    assert relay.stop() == 0
    new_partition(lab, "events_c", "c")
    commit(lab, "events", "a", 1)
    lab.checker.commit(*put(lab, "events", "c", 2))
    lab.conn.execute(after)
    commit(lab, "events", "a", 3)
    relay.start()
    assert relay.wait_exit() == POISON_EXIT, relay.log_text()
    assert "public.events_c, which has the columns of a configured table" in relay.log_text()
    return relay


@pytest.mark.parametrize(
    ("after", "cure"),
    [
        ("ALTER TABLE events DETACH PARTITION events_c", "ALTER TABLE events ATTACH PARTITION events_c FOR VALUES IN ('c')"),
        ("ALTER TABLE events_c RENAME TO gamma", "ALTER TABLE gamma RENAME TO events_c"),
        ("DROP TABLE events_c", "CREATE TABLE events_c PARTITION OF events FOR VALUES IN ('c')"),
    ],
    ids=["detached", "renamed", "dropped"],
)  # fmt: skip
def test_a_partition_that_left_before_its_rows_were_read_stops_the_relay_until_it_is_back_A32(
    lab: Lab, after: str, cure: str
) -> None:
    relay = backlog_of(lab, after)
    lab.conn.execute(cure)
    relay.start()
    lab.verify()


def test_the_rows_of_a_partition_that_was_dropped_are_passed_over_if_an_ordinary_table_has_its_name_A32(
    lab: Lab,
) -> None:
    relay = backlog_of(lab, "DROP TABLE events_c")
    gone = next(event for event, place in lab.checker.committed.items() if place == 1)
    del lab.checker.committed[gone]
    lab.conn.execute("CREATE TABLE events_c (name text)")
    relay.start()
    lab.verify()


# ------------------------------------------------ where none was expected


def test_a_partition_in_a_new_schema_is_found_by_the_next_check_A32(lab: Lab) -> None:
    relay = lab.running_relay(partitioned(lab))
    lab.conn.execute("CREATE SCHEMA far")
    new_partition(lab, "far.events_c", "c")
    look(relay, r"table far\.events_c is a new partition or child where none was expected")
    relay.wait_for_log(r"(?s)none was expected.*streaming from slot")
    commit(lab, "events", "c", 1)
    lab.verify(duplicates=0)


def test_the_first_child_of_a_table_is_found_by_the_next_check_A32(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.conn.execute(f"CREATE TABLE child () INHERITS ({TABLE})")
    look(relay, r"table public\.child is a new partition or child")
    relay.wait_for_log(r"(?s)none was expected.*streaming from slot")
    commit(lab, "child", "k", 1)
    lab.verify(duplicates=0)
