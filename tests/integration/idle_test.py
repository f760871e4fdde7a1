"""Databases in which nothing happens for the relay, and servers where much does."""

from __future__ import annotations

import time

from kit.lab import Lab


FLOOD = "DO $$ BEGIN FOR i IN 1..5000 LOOP INSERT INTO noise VALUES (i); COMMIT; END LOOP; END $$"


def test_a_flood_of_unrelated_transactions_moves_the_slot_and_costs_little_A38(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    lab.conn.execute("CREATE TABLE noise (i int)")
    lines = len(relay.log_text().splitlines())
    started, cpu, transactions = time.monotonic(), relay.cpu_seconds(), 0
    while transactions < (1_000_000 if full else 20_000):
        lab.conn.execute(FLOOD)
        transactions += 5000
    lab.wait_confirmed()
    lab.wait_quiet()
    used, took = relay.cpu_seconds() - cpu, time.monotonic() - started
    # 20 % of a core for 5,000 transactions a second is 40 us for each; beside it, the relay's own beat
    assert used < transactions * 40e-6 + 0.05 * took, f"{used} s of CPU in {took} s"
    assert len(relay.log_text().splitlines()) == lines
    lab.verify(duplicates=0)


def test_an_idle_database_lets_go_of_the_wal_of_a_busy_neighbour_A39(lab: Lab, full: bool) -> None:
    lab.topic("order")
    lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    neighbour = f"{lab.db}_neighbour"
    lab.postgres.create_database(neighbour)
    try:
        with lab.postgres.connect(neighbour) as conn:
            conn.execute("CREATE TABLE busy (t text)")
            for _ in range(500 if full else 12):
                conn.execute("INSERT INTO busy SELECT repeat('x', 1000) FROM generate_series(1, 10000)")
                lab.wait_quiet(limit=16 << 20)
    finally:
        lab.postgres.drop_database(neighbour)
    lab.wait_quiet()


def test_an_idle_relay_hardly_uses_the_processor(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    cpu = relay.cpu_seconds()
    lab.wait_speaking(5)
    assert relay.cpu_seconds() - cpu < 0.5
