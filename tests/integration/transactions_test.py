"""Exactly the rows whose transactions committed are published, whatever else the transactions do."""

from __future__ import annotations

import json
import threading
import uuid
from typing import Any

import psycopg
import pytest

from kit.lab import INSERT, TABLE, Lab
from kit.wait import wait_until

COLUMNS = "(id, aggregate_type, aggregate_id, event_type, payload)"
THREE_ROWS = "SELECT gen_random_uuid(), 'order', 'k', 'e', jsonb_build_object('n', i) FROM generate_series(1, 3) AS i"
NUMBERED = "(payload->>'n')::int"


def numbers(lab: Lab) -> list[int]:
    """The numbers n of the payloads, in the order in which a partition holds them."""
    return [json.loads(record.value or b"{}")["n"] for record in lab.checker.collect()]


def insert(conn: psycopg.Connection[Any], key: str, n: int) -> str:
    """Insert an event without a word to the checker; return its id."""
    row = conn.execute(INSERT, ["order", key, "e", json.dumps({"n": n})]).fetchone()
    assert row is not None
    return str(row[0])


def prepare(lab: Lab, gid: str, key: str, n: int) -> str:
    """Insert an event in a transaction that stays prepared; return its id."""
    with lab.postgres.connect(lab.db) as conn:
        conn.execute("BEGIN")
        event = insert(conn, key, n)
        conn.execute(f"PREPARE TRANSACTION '{gid}'")
    return event


# -------------------------------------------------------------- rolled back


def test_what_a_savepoint_or_a_transaction_rolls_back_is_not_published_A27(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    lab.running_relay()
    with lab.conn.transaction():
        kept = [insert(lab.conn, "k", 1)]
        with lab.conn.transaction(force_rollback=True):
            lab.checker.roll_back(insert(lab.conn, "k", 2))
        with lab.conn.transaction():
            kept.append(insert(lab.conn, "k", 3))
    lab.checker.commit(*kept)
    with lab.writer.transaction(rollback=True):
        lab.writer.number("k", 4)
    lab.writer.number("k", 5)
    lab.verify(duplicates=0)
    assert numbers(lab) == [1, 3, 5]


# ------------------------------------------------------------- two phases


@pytest.mark.parametrize("two_phase", [False, True])
def test_a_prepared_transaction_is_published_when_it_is_committed_and_not_before_A28(
    lab: Lab, two_phase: bool
) -> None:
    lab.topic("order", partitions=1)
    lab.make_slot(two_phase=two_phase)
    relay = lab.running_relay()
    first = prepare(lab, f"{lab.db} first", "k", 1)
    lab.checker.roll_back(prepare(lab, f"{lab.db} second", "k", 3))
    lab.writer.number("k", 2)
    lab.verify(duplicates=0)
    assert relay.stop() == 0
    relay.start()
    lab.wait_streaming(relay)
    lab.conn.execute(f"COMMIT PREPARED '{lab.db} first'")
    lab.checker.commit(first)
    lab.conn.execute(f"ROLLBACK PREPARED '{lab.db} second'")
    lab.verify(duplicates=0)
    assert numbers(lab) == [2, 1]


# -------------------------------------------------- rows that do not stay


def test_only_the_inserted_row_is_published_whatever_is_done_to_it_later_A29(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    with lab.writer.transaction() as conn:
        lab.writer.number("k", 1)
        conn.execute(f"DELETE FROM {TABLE}")
    with lab.writer.transaction() as conn:
        lab.writer.number("k", 2)
        conn.execute(f"""UPDATE {TABLE} SET payload = '{{"n": 99}}'""")
    lab.conn.execute(f"DELETE FROM {TABLE}")
    lab.conn.execute(f"TRUNCATE {TABLE}")
    lab.writer.number("k", 3)
    lab.verify(duplicates=0)
    assert numbers(lab) == [1, 2, 3]
    assert relay.running


# --------------------------------------------------------- many at a time


def test_the_rows_of_one_statement_come_in_its_order_A30(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    lab.running_relay()
    lab.conn.execute(f"INSERT INTO {TABLE} {COLUMNS} {THREE_ROWS}")
    with lab.conn.cursor() as cursor, cursor.copy(f"COPY {TABLE} {COLUMNS} FROM STDIN") as copy:
        for n in range(4, 5004):
            copy.write_row((uuid.uuid4(), "order", "k", "e", json.dumps({"n": n})))
    assert lab.checker.commit_table(lab.conn, TABLE, NUMBERED) == 5003
    lab.verify(duplicates=0)
    assert numbers(lab) == list(range(1, 5004))


def test_rows_that_are_copied_frozen_are_published_A30(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    lab.running_relay()
    with lab.conn.transaction():
        lab.conn.execute(f"TRUNCATE {TABLE}")
        with lab.conn.cursor() as cursor, cursor.copy(f"COPY {TABLE} {COLUMNS} FROM STDIN (FREEZE)") as copy:
            for n in range(1, 101):
                copy.write_row((uuid.uuid4(), "order", "k", "e", json.dumps({"n": n})))
    assert lab.checker.commit_table(lab.conn, TABLE, NUMBERED) == 100
    lab.verify(duplicates=0)
    assert numbers(lab) == list(range(1, 101))


def test_a_row_in_conflict_is_published_only_if_it_is_inserted_A30(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    lab.running_relay()
    (event,) = lab.writer.number("k", 1)
    upsert = f"INSERT INTO {TABLE} {COLUMNS} VALUES (%s, 'order', 'k', 'e', %s) ON CONFLICT "
    update = upsert + "(id) DO UPDATE SET payload = excluded.payload"
    huge = json.dumps({"n": 2, "text": "x" * 5_000_000})
    lab.conn.execute(upsert + "DO NOTHING", [event, huge])
    lab.conn.execute(update, [event, '{"n": 3}'])
    new = uuid.uuid4()
    lab.conn.execute(update, [new, '{"n": 4}'])
    lab.checker.commit(new)
    lab.verify(duplicates=0)
    assert numbers(lab) == [1, 4]


# ------------------------------------------------------ logical messages


def test_logical_messages_are_passed_over_A34(lab: Lab) -> None:
    lab.topic("order", partitions=1)
    relay = lab.running_relay()
    emit = "SELECT pg_logical_emit_message(%s, %s, %s)"
    with lab.writer.transaction(rollback=True) as conn:
        conn.execute(emit, [True, "x", "hi"])
        lab.writer.number("k", 1)
        conn.execute(emit, [False, "x", 'now "quoted" \\ \t'])
    lab.conn.execute(emit, [False, "alone", ""])
    with lab.writer.transaction() as conn:
        conn.execute(emit, [True, "wal2json", "between the rows"])
        lab.writer.number("k", 2)
        conn.execute(emit, [False, "x", "inside, and yet outside"])
    lab.conn.execute("SELECT pg_logical_emit_message(true, 'bytes', '\\x00ff'::bytea)")
    lab.verify(duplicates=0)
    assert numbers(lab) == [2]
    assert relay.running


# --------------------------------------------------------- lost connections


class Load:
    """Writers that insert numbered events, each under a key of its own, until they are stopped."""

    def __init__(self, lab: Lab, writers: int = 3) -> None:
        self.lab = lab
        self.written = 0
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._write, args=(f"k{i}",)) for i in range(writers)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def wait_more(self, count: int) -> None:
        """Wait until that many further events were committed."""
        goal = self.written + count
        wait_until(lambda: self.written >= goal, 30, lambda: f"{goal} events written, have {self.written}")

    def _write(self, key: str) -> None:
        """Rows of a commit that the server did not answer are looked up when it is back."""
        n, unsure = 0, []
        while not self._stop.is_set():
            try:
                with self.lab.postgres.connect(self.lab.db) as conn:
                    self._settle(conn, key, unsure)
                    while not self._stop.is_set():
                        n += 1
                        unsure = [str(uuid.uuid4())]
                        conn.execute(
                            f"INSERT INTO {TABLE} {COLUMNS} VALUES (%s, 'order', %s, 'e', %s)",
                            [unsure[0], key, json.dumps({"n": n})],
                        )
                        self._took(unsure)
                        unsure = []
            except psycopg.OperationalError:
                continue
        if unsure:
            with self.lab.postgres.connect(self.lab.db) as conn:
                self._settle(conn, key, unsure)

    def _settle(self, conn: psycopg.Connection[Any], key: str, unsure: list[str]) -> None:
        for event in unsure:
            committed = conn.execute(f"SELECT FROM {TABLE} WHERE id = %s", [event]).rowcount
            if committed:
                self._took([event])

    def _took(self, events: list[str]) -> None:
        self.lab.checker.commit(*events)
        self.written += len(events)


def test_nothing_is_lost_when_the_walsender_is_terminated_under_load_A48(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    with Load(lab) as load:
        for _ in range(5):
            load.wait_more(100)
            mark = relay.log_mark()
            lab.wait_streaming(relay)
            pid = lab.slot_row()["active_pid"]
            lab.postgres.execute("SELECT pg_terminate_backend(%s)", pid)
            # Why it ended is not always heard: a server says nothing when it is in the middle of sending,
            # and a status it has not read yet takes its last words away.
            relay.wait_for_log(r"warning PostgreSQL replication connection: ", after=mark)
            relay.wait_for_log(r"streaming from slot", after=mark)
        load.wait_more(100)
    lab.verify()


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_restart_of_the_server_under_load_loses_nothing_A48(lab: Lab, mode: str) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    with Load(lab) as load:
        load.wait_more(100)
        mark = relay.log_mark()
        lab.postgres.restart(mode)
        relay.wait_for_log(r"streaming from slot", after=mark)
        load.wait_more(100)
    lab.verify()
    assert relay.running
