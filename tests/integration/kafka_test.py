"""Kafka goes away and comes back: nothing is lost, the order stays, PostgreSQL does not notice."""

from __future__ import annotations

from kit.lab import Lab
from kit.load import Load, rows, take_table
from kit.wait import wait_until

SENDER_TIMEOUT = "terminating walsender process due to replication timeout"


def test_a_frozen_broker_does_not_let_the_server_give_the_relay_up_A50(lab: Lab, full: bool) -> None:
    lab.topic("order")
    dsn = lab.postgres.dsn(lab.db, options="-c wal_sender_timeout=2s")
    lab.running_relay({"postgres": {"dsn": dsn}})
    lab.writer.insert("first")
    lab.verify()
    logged = len(lab.postgres.log_text())
    sender = lab.slot_row()["active_pid"]
    lab.kafka.freeze()
    lab.conn.execute(rows("1", "100000" if full else "40000", "order", 50, 100))
    take_table(lab, lab.conn)
    lab.wait_speaking(60 if full else 8)
    lab.kafka.thaw()
    lab.verify(120, duplicates=0)
    assert lab.slot_row()["active_pid"] == sender
    assert SENDER_TIMEOUT not in lab.postgres.log_text()[logged:]


def test_events_of_a_missing_topic_wait_while_others_go_on_A57(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    ghosts = lab.writer.number("g", *range(1000), kind="ghost")
    end = lab.end_of_wal()
    others = lab.writer.number("k", *range(100))
    lab.checker.wait_records(len(others))
    warning = relay.wait_for_log("(acknowledged nothing|first event of this topic).*", 40).group(0)
    assert f"{lab.prefix}ghost" in warning and ghosts[0] in warning, warning
    lab.writer.number("k", *range(100, 200))
    lab.checker.wait_records(200)
    assert {r.topic for r in lab.checker.records} == {f"{lab.prefix}order"}
    assert not lab.confirmed_at_least(end)
    assert relay.log_text().count(ghosts[0]) == 1
    lab.topic("ghost")
    lab.verify(90, duplicates=0)
    assert relay.log_text().count("streaming from slot") == 1


def test_a_broker_that_stops_and_starts_under_load_loses_nothing(lab: Lab) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    with Load(lab) as load:
        lab.checker.wait_records(50)
        lab.kafka.stop()
        before = load.written
        wait_until(lambda: load.written > before + 200, 60, "events are written meanwhile")
        lab.kafka.start()
        lab.checker.wait_records(before + 200)
    lab.verify()
    assert relay.running


def test_a_broker_that_freezes_and_thaws_under_load_loses_nothing_A54(lab: Lab, full: bool) -> None:
    """The freezes outlast the time that librdkafka gives an answer, so what was sent may be written
    or not, which an idempotent producer may find fatal."""
    lab.topic("order")
    relay = lab.running_relay({"kafka": {"socket.timeout.ms": "2000", "request.timeout.ms": "1500"}})
    with Load(lab) as load:
        for turn in range(20 if full else 3):
            lab.checker.wait_records(len(lab.checker.records) + 50)
            lab.kafka.freeze()
            lab.wait_speaking((45 if full else 5) if turn else 1)
            lab.kafka.thaw()
            lab.checker.wait_records(load.written, 120)
    lab.verify()
    assert relay.running


def test_a_broker_that_is_killed_under_load_loses_nothing(lab: Lab, full: bool) -> None:
    lab.topic("order")
    relay = lab.running_relay()
    with Load(lab, pause=0.001) as load:
        for _ in range(10 if full else 1):
            lab.checker.wait_records(len(lab.checker.records) + 100)
            lab.kafka.kill()
            lab.kafka.start()
            lab.checker.wait_records(load.written, 120)
    lab.verify()
    assert relay.running


def test_a_relay_that_is_there_before_its_servers_waits_for_them(lab: Lab) -> None:
    lab.topic("order")
    lab.make_slot()
    lab.writer.number("k", 1, 2, 3)
    lab.postgres.stop()
    lab.kafka.stop()
    relay = lab.relay()
    relay.start()
    relay.wait_for_log("refused")
    lab.postgres.start()
    lab.wait_streaming(relay)
    relay.wait_for_log("Kafka: ")
    lab.kafka.start()
    lab.verify(duplicates=0)


def test_positions_are_confirmed_while_the_load_goes_on(lab: Lab) -> None:
    lab.topic("order")
    lab.running_relay()
    with Load(lab, pause=0):
        for _ in range(5):
            ((lsn,),) = lab.postgres.execute("SELECT pg_current_wal_lsn()::text")
            wait_until(lambda: lab.confirmed_at_least(lsn), 20, f"{lsn} is confirmed under load")
    lab.verify(duplicates=0)
