"""./dev bench [ROWS]: drain a backlog with walrelay and, from the same WAL, with pg_recvlogical.

`pg_recvlogical -f /dev/null` with the same options of wal2json is what the server can deliver at
most; the ratio says how near the relay comes while it waits for Kafka's acknowledgements. Both
times run from the start of the process; the relay's ends when its slot is confirmed to the end.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from contextlib import ExitStack

import psycopg

from kit import process
from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.postgres import Postgres
from kit.wait import wait_until

ROWS_PER_TRANSACTION = 100
FILL = f"""
INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)
SELECT 'order', 'order-' || n %% 1000, 'OrderPlaced', jsonb_build_object('n', n, 'text', repeat('x', 170))
FROM generate_series(%s::int, %s::int) n"""
PLUGIN_OPTIONS = ["format-version=2", "include-timestamp=true", "include-types=false", "actions=insert"]


def fill(lab: Lab, rows: int) -> None:
    """Write `rows` events of about 200 bytes, 100 to a transaction."""
    for first in range(1, rows + 1, ROWS_PER_TRANSACTION):
        lab.conn.execute(FILL, [first, min(first + ROWS_PER_TRANSACTION - 1, rows)])


def copy_slot(lab: Lab, name: str) -> None:
    lab.conn.execute("SELECT pg_copy_logical_replication_slot(%s, %s)", [lab.slot, name])


def end_of_wal(lab: Lab) -> str:
    """A position behind which there is a little more, so that readers get beyond it."""
    row = lab.conn.execute("SELECT pg_current_wal_lsn()::text").fetchone()
    assert row is not None
    lab.conn.execute("SELECT pg_logical_emit_message(true, 'bench', 'end')")
    return str(row[0])


def time_floor(lab: Lab, slot: str, end: str) -> float:
    """Seconds that pg_recvlogical takes to read `slot` to `end`."""
    options = [part for option in [*PLUGIN_OPTIONS, f"add-tables={TABLE}"] for part in ("-o", option)]
    command = [
        str(lab.postgres.bin / "pg_recvlogical"), "-d", lab.postgres.dsn(lab.db), "-S", slot,
        "--start", "--no-loop", f"--endpos={end}", "-f", "/dev/null", *options,
    ]  # fmt: skip
    start = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL)
    return time.monotonic() - start


def time_relay(lab: Lab, end: str) -> tuple[float, str]:
    """Seconds that walrelay takes until its slot is confirmed to `end`, and what it used."""
    relay = lab.relay()
    broker_cpu = process.cpu_seconds(lab.kafka.pid)
    start = time.monotonic()
    relay.start()
    wait_until(
        lambda: not relay.running or lab.confirmed_at_least(end), 600,
        lambda: f"the backlog is drained\n{relay.log_text()[-2000:]}", interval=0.02,
    )  # fmt: skip
    seconds = time.monotonic() - start
    if not relay.running:
        raise RuntimeError(f"walrelay ended:\n{relay.log_text()[-2000:]}")
    broker_cpu = process.cpu_seconds(lab.kafka.pid) - broker_cpu
    own = f"CPU {relay.cpu_seconds():.1f} s, at most {relay.peak_rss_kb() / 1024:.0f} MB"
    relay.stop()
    return seconds, f"{own}; broker CPU {broker_cpu:.1f} s"


def bench(lab: Lab, rows: int) -> bool:
    """Measure and print; did everything arrive, in order?"""
    lab.topic("order", partitions=3)
    lab.make_slot()
    print(f"writing {rows} rows, {ROWS_PER_TRANSACTION} a transaction", flush=True)
    fill(lab, rows)
    for slot in ("floor_before", "floor_after"):
        copy_slot(lab, slot)
    end = end_of_wal(lab)
    before = time_floor(lab, "floor_before", end)
    relay, used = time_relay(lab, end)
    after = time_floor(lab, "floor_after", end)
    lab.checker.commit_table(lab.conn, TABLE, "(payload->>'n')::bigint")
    lab.checker.collect(300)
    report = lab.checker.report()
    for name, seconds in (
        ("pg_recvlogical, before", before),
        ("walrelay", relay),
        ("pg_recvlogical, after", after),
    ):
        print(f"{name:<24}{seconds:8.2f} s {rows / seconds:10,.0f} rows/s")
    print(f"walrelay runs at {(before + after) / 2 / relay:.0%} of the limit; {used}\n{report}")
    return report.ok


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("rows", nargs="?", type=int, default=200_000)
    rows = parser.parse_args().rows
    process.raise_on_termination()
    process.forget_libpq_environment()
    with ExitStack() as stack:
        postgres = stack.enter_context(Postgres(max_wal_size="4GB"))
        kafka = stack.enter_context(Kafka())
        lab = stack.enter_context(Lab(postgres, kafka, "bench", light=True))
        try:
            return 0 if bench(lab, rows) else 1
        except (psycopg.Error, RuntimeError, TimeoutError) as error:
            print(f"bench: {error}", file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())
