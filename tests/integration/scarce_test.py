"""The machine runs out of something: disk, memory, or a clock that tells the truth."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from kit.disk import enlarge, small_disk
from kit.kafka import Kafka
from kit.lab import TABLE, Lab
from kit.load import rows, take_table
from kit.postgres import Postgres
from kit.wait import wait_until

INTERNAL_EXIT = 70
SENDER_TIMEOUT_S = 2


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may mount a small disk")
@pytest.mark.parametrize("server", [{"logical_decoding_work_mem": "64kB"}], indirect=True)
def test_a_full_disk_under_the_decoding_of_a_large_transaction_is_told_and_waited_for_A68(
    server: Postgres, kafka: Kafka, full: bool
) -> None:
    assert server.directory and server.user
    place = server.directory / "data" / "pg_replslot"
    server.stop()
    with small_disk(place, server.user, "64m" if full else "8m"):
        server.start()
        try:
            with Lab(server, kafka, "disk", light=True) as lab:
                lab.topic("order")
                relay = lab.running_relay()
                lab.writer.insert("first")
                lab.verify()
                lab.conn.execute(rows("1", "1000000" if full else "40000", "order", 50, 200))
                end = lab.end_of_wal()
                take_table(lab, lab.conn)
                relay.wait_for_log("warning .*could not write to data file .*No space left on device", 60)
                assert relay.running and not lab.confirmed_at_least(end)
                enlarge(place, "2g")
                lab.verify(300, duplicates=0)
                assert relay.log_text().count("No space left on device") < 10
        finally:
            server.stop("immediate")


def jump(lab: Lab, clock: Path, hours: int) -> None:
    """Set the relay's clock, and let pass what the server gives it to speak, more than twice."""
    clock.write_text(f"{hours:+}h")
    jumped = time.monotonic()

    def passed() -> bool:
        return time.monotonic() - jumped > 2.5 * SENDER_TIMEOUT_S and abs(lab.clock_lead() - hours * 3600) < 60

    wait_until(passed, 30, lambda: f"the relay's clock is {hours} hours ahead, it is {lab.clock_lead()} s")


def test_a_clock_that_jumps_disturbs_nothing_A69(lab: Lab) -> None:
    """libfaketime lies about the time of the day, not about the monotonic clock."""
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
    clock = lab.directory / "clock"
    clock.write_text("+0h")
    lab.topic("order")
    lab.make_slot()
    dsn = lab.postgres.dsn(lab.db, options=f"-c wal_sender_timeout={SENDER_TIMEOUT_S}s")
    relay = lab.relay(
        {"postgres": {"dsn": dsn}},
        env={
            "LD_PRELOAD": str(library),
            "FAKETIME_TIMESTAMP_FILE": str(clock),
            "FAKETIME_NO_CACHE": "1",
            "FAKETIME_DONT_FAKE_MONOTONIC": "1",
        },
    )
    relay.start()
    lab.wait_streaming(relay)
    for hours in (0, 2, -2, 0):
        jump(lab, clock, hours)
        lab.writer.number("k", hours)
        lab.verify(duplicates=0)
    assert relay.running and not relay.warnings(), relay.log_text()
    assert relay.log_text().count("streaming from slot") == 1


def insert_large(lab: Lab, megabytes: int) -> str:
    """Commit an event of that size; return the end of its transaction."""
    ((event,),) = lab.conn.execute(
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        " VALUES ('order', 'k', 'large', to_jsonb(repeat('x', %s))) RETURNING id",
        [megabytes * 1_000_000],
    ).fetchall()
    lab.checker.commit(event)
    return lab.end_of_wal()


def test_an_event_that_memory_does_not_hold_ends_the_relay_before_it_A70(big_lab: Lab, full: bool) -> None:
    """Small ones pass; of the others some fail when they are copied and some when libpq reads them."""
    lab = big_lab
    lab.topic("order", config={"max.message.bytes": "200000000"})
    lab.make_slot()
    changes = {"kafka": {"message.max.bytes": "200000000"}}
    # without arenas, each of which takes a third of the address space
    limited = lab.relay(changes, env={"MALLOC_ARENA_MAX": "1"}, wrapper=["prlimit", f"--as={200_000 << 10}"])
    for megabytes in range(30, 160, 10) if full else (40, 150):
        limited.start()
        lab.wait_streaming(limited)
        end = insert_large(lab, megabytes)
        wait_until(lambda: not limited.running or lab.confirmed_at_least(end), 60, "the event is dealt with")
        if limited.running:
            assert megabytes < 150 and limited.stop() == 0
            continue
        assert limited.wait_exit() == INTERNAL_EXIT
        last = limited.log_text().splitlines()[-1]
        assert " error " in last and "memory" in last, last
        assert str(megabytes * 1_000_000)[:-3] in last or "no memory for a message" in last, last
        assert not lab.confirmed_at_least(end)
        unlimited = lab.running_relay(changes)
        lab.verify(duplicates=0)
        assert unlimited.stop() == 0
