"""Several hosts in the dsn, a real replica, and what becomes of the slot when it is promoted."""

from __future__ import annotations

from typing import Iterator

import pytest

from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.relay import ROOT, Relay
from kit.wait import wait_until

SLOT_EXIT = 66


class Pair:
    """A primary, its replica, and a lab that moves from one to the other."""

    def __init__(self, lab: Lab, primary: Postgres, replica: Postgres) -> None:
        self.lab, self.primary, self.replica = lab, primary, replica

    def dsn(self) -> str:
        ports = f"{self.replica.port},{self.primary.port}"  # the replica first: it must be passed by
        return self.primary.dsn(
            self.lab.db, host="127.0.0.1,127.0.0.1", port=ports, target_session_attrs="read-write"
        )

    def relay(self) -> Relay:
        relay = self.lab.relay({"postgres": {"dsn": self.dsn()}})
        relay.start()
        return relay

    def wait_replayed(self) -> None:
        self.replica.wait_replayed(self.lab.end_of_wal())

    def fail_over(self) -> None:
        """The primary dies, the replica takes its place, and the lab goes there."""
        self.primary.stop("immediate")
        self.replica.promote()
        self.lab.postgres = self.replica
        self.lab.conn = self.lab.writer.conn = self.lab.connect()


@pytest.fixture
def pair(kafka: Kafka) -> Iterator[Pair]:
    with Postgres() as primary, primary.replica() as replica, Lab(primary, kafka, "own") as lab:
        lab.topic("order")
        primary.psql(lab.db, ROOT / "sql" / "state.sql", role="postgres")
        lab.make_slot()
        pair = Pair(lab, primary, replica)
        pair.wait_replayed()  # or the replica refuses connections to a database that it does not know yet
        yield pair


def test_a_promoted_standby_without_the_slot_ends_the_relay_until_the_slot_is_made_A49(pair: Pair) -> None:
    lab = pair.lab
    relay = pair.relay()
    lab.writer.number("k", *range(20))
    lab.verify(duplicates=0)
    pair.wait_replayed()
    pair.fail_over()
    assert relay.wait_exit(60) == SLOT_EXIT, relay.log_text()
    line = relay.log_text().strip().splitlines()[-1]
    assert "does not exist on this server (timeline 2)" in line and "may be lost" in line
    assert "walrelay confirmed" in line and "has 0 rows" in line
    done = relay.call("setup", "--apply")
    assert done.returncode == 0, done.stdout + done.stderr
    relay.start()
    lab.wait_streaming(relay)
    lab.writer.number("k", *range(20, 40))
    lab.verify(duplicates=0)


def test_a_slot_made_by_hand_on_a_promoted_standby_is_not_taken_for_the_old_one_A49(pair: Pair) -> None:
    lab = pair.lab
    relay = pair.relay()
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)
    relay.kill()
    missed = lab.writer.number("k", 2)
    pair.wait_replayed()
    pair.fail_over()
    lab.make_slot()
    relay.start()
    assert relay.wait_exit(60) == SLOT_EXIT, relay.log_text()
    line = relay.log_text().strip().splitlines()[-1]
    assert "ahead of" in line and "has 1 rows" in line
    lab.conn.execute("DELETE FROM public.walrelay_state")
    lab.checker.roll_back(*missed)
    relay.start()
    lab.writer.number("k", 3)
    wait_until(lambda: lab.slot_row()["active"], 20, "the relay streams")


def test_while_there_is_no_primary_the_relay_waits_for_one(pair: Pair) -> None:
    lab = pair.lab
    relay = pair.relay()
    lab.writer.number("k", *range(20))
    lab.verify(duplicates=0)
    pair.primary.stop("fast")
    relay.wait_for_log("session is not read-write|server is in hot standby mode|read-only")
    assert relay.running
    pair.primary.start()
    lab.conn = lab.writer.conn = lab.connect()
    lab.writer.number("k", *range(20, 40))
    lab.verify()


def test_a_server_that_became_a_standby_is_left_for_its_successor_and_not_streamed_from(pair: Pair) -> None:
    """Without target_session_attrs the first host is taken, whatever it is: the checks say so."""
    lab = pair.lab
    relay = lab.relay({"postgres": {"dsn": pair.replica.dsn(lab.db)}})
    relay.start()
    relay.wait_for_log("the server is a standby .* target_session_attrs=read-write")
    assert relay.running
    pair.wait_replayed()
    pair.fail_over()
    assert relay.wait_exit(60) == SLOT_EXIT
