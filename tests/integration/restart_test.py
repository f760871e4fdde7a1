"""The relay stops, dies and comes back; PostgreSQL crashes under it; the position stays right."""

from __future__ import annotations

import os
import random
import signal

from kit.kafka import Kafka
from kit.lab import Lab
from kit.load import Load, rows
from kit.postgres import Postgres
from kit.wait import wait_until


def walsender(lab: Lab) -> int:
    """The process that serves the slot; waits until there is one."""
    return int(wait_until(lambda: lab.slot_row().get("active_pid"), 20, "the slot is active"))


def test_a_clean_stop_and_start_publishes_nothing_twice_A42(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.number("k", *range(100))
    lab.wait_confirmed()
    assert relay.stop() == 0
    for turn in range(1, 6):  # now stop at once after the last event was seen
        relay.start()
        lab.writer.number("k", *range(100 * turn, 100 * turn + 20))
        lab.checker.wait_complete()
        assert relay.stop() == 0
    relay.start()
    lab.writer.number("k", 1000)
    assert lab.verify(duplicates=0).published == 201


def test_clean_stops_under_load_and_inside_transactions_publish_nothing_twice_A42_A66(lab: Lab) -> None:
    lab.make_slot()
    for kind in ("order", "large"):
        lab.topic(kind)
    relay = lab.relay()
    with Load(lab):
        for turn in range(1, 11):
            lab.conn.execute(rows(f"{turn}000000", f"{turn}002999", "large", 1, 200))
            seen = len(lab.checker.collect())
            relay.start()
            lab.checker.wait_records(seen + 1 + random.randrange(400))
            assert relay.stop() == 0
        relay.start()
    lab.verify(duplicates=0)


def test_what_waits_for_kafka_is_never_confirmed_by_a_keepalive_A43(lab: Lab, full: bool) -> None:
    lab.topic("order")
    dsn = lab.postgres.dsn(lab.db, options="-c wal_sender_timeout=2s")
    relay = lab.running_relay({"postgres": {"dsn": dsn}})
    lab.writer.number("a", 0)
    lab.verify()
    lab.kafka.freeze()
    lab.writer.number("a", 1)
    ((committed,),) = lab.postgres.execute("SELECT pg_current_wal_insert_lsn()::text")
    lab.conn.execute("CREATE TABLE noise (i int)")

    def churned() -> bool:
        lab.conn.execute("INSERT INTO noise SELECT generate_series(1, 100)")
        assert not lab.confirmed_at_least(committed)
        return lab.answered_for(60 if full else 6)

    wait_until(churned, 90, "many keepalives have been answered")
    relay.kill()
    assert not lab.confirmed_at_least(committed)
    lab.kafka.thaw()
    relay.start()
    lab.verify()


def test_kills_at_random_moments_lose_nothing_A44(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    with Load(lab, pause=0.001):
        for _ in range(200 if full else 20):
            goal = len(lab.checker.collect()) + random.randrange(1, 200)
            lab.checker.wait_records(goal)
            relay.kill()
            relay.start()
    lab.verify()


def test_events_acknowledged_but_not_confirmed_come_twice_and_alike_A45(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.number("k", 0)
    lab.verify()
    sender = walsender(lab)
    lab.kafka.freeze()
    lab.writer.number("k", *range(1, 6))
    lab.writer.number("j", *range(1, 6))
    lab.wait_received()
    os.kill(sender, signal.SIGSTOP)  # what the relay confirms now is not read before it is told to end
    try:
        lab.kafka.thaw()
        lab.checker.wait_complete()
        relay.kill()
        lab.postgres.execute("SELECT pg_terminate_backend(%s)", sender)
    finally:
        os.kill(sender, signal.SIGCONT)
    relay.start()
    # The walsender may read a status or two between SIGCONT and its end.
    assert 0 < lab.verify().duplicates <= 10


def test_a_relay_that_survives_a_crash_of_postgresql_repeats_nothing_A46(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.postgres.execute("CHECKPOINT")
    lab.writer.number("k", 1, 2, 3)
    lab.verify()
    confirmed = lab.slot_row()["confirmed_flush_lsn"]
    relay.freeze()
    lab.postgres.restart("immediate")
    assert not lab.confirmed_at_least(confirmed), "the crash has not moved the slot back"
    writer = lab.new_writer()
    writer.number("k", 4)
    relay.thaw()
    assert lab.verify(duplicates=0).published == 4


def test_a_relay_that_starts_after_a_crash_of_postgresql_repeats_in_order_A46(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.postgres.execute("CHECKPOINT")
    lab.writer.number("k", 1, 2, 3)
    lab.verify()
    relay.kill()
    lab.postgres.restart("immediate")
    writer = lab.new_writer()
    relay.start()
    writer.number("k", 4)
    assert lab.verify().duplicates == 3


def test_what_was_written_while_the_relay_was_down_is_delivered_A47(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    lab.writer.number("k", 1)
    lab.verify()
    assert relay.stop() == 0
    lab.writer.number("k", 2)
    relay.start()
    lab.verify(duplicates=0)


def test_the_position_of_another_server_is_not_used_A47(kafka: Kafka) -> None:
    with Postgres() as first, Postgres() as second:
        with Lab(first, kafka, "one", "moved.") as old, Lab(second, kafka, "one", "moved2.") as new:
            old.topic("order")
            service = old.directory / "pg_service.conf"
            service.write_text(_service(first))
            for _ in range(5):
                first.execute("SELECT pg_switch_wal()")
            old.make_slot()
            changes = {"postgres": {"dsn": f"service=outbox dbname={old.db}"}}
            relay = old.relay(changes, env={"PGSERVICEFILE": str(service)})
            relay.start()
            old.writer.number("k", 1)
            old.verify()
            position = old.slot_row()["confirmed_flush_lsn"]

            new.make_slot()
            ((event,),) = new.conn.execute(_EVENT).fetchall()
            old.checker.commit(event)
            assert not new.confirmed_at_least(position)
            while not _beyond(second, position):
                second.execute("SELECT pg_switch_wal()")
            service.write_text(_service(second))
            first.stop("immediate")
            new.wait_streaming(relay)
            new.wait_confirmed()
            old.checker.wait_complete()
            old.checker.check(duplicates=0)
            first.start()


_EVENT = (
    "INSERT INTO outbox_events (aggregate_type, aggregate_id, payload)"
    " VALUES ('order', 'k', '{}') RETURNING id::text"
)


def _service(server: Postgres) -> str:
    return (
        f"[outbox]\nhost=127.0.0.1\nport={server.port}\nuser=postgres\npassword={server.password}\n"
    )


def _beyond(server: Postgres, position: str) -> bool:
    ((beyond,),) = server.execute("SELECT pg_current_wal_lsn() > %s::pg_lsn", position)
    return bool(beyond)
