"""Several brokers, some of which die."""

from __future__ import annotations

from typing import Iterator

import pytest

from kit.kafka import Cluster, Kafka
from kit.lab import Lab
from kit.load import Load
from kit.postgres import Postgres
from kit.wait import wait_until


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """Three brokers. A test that stops one brings it back."""
    with Cluster(3) as brokers:
        yield brokers


@pytest.fixture
def cluster_lab(postgres: Postgres, cluster: Cluster) -> Iterator[Lab]:
    with Lab(postgres, cluster.brokers[0], "cluster") as lab:
        yield lab


def wait_in_sync(lab: Lab, topic: str, count: int) -> None:
    wait_until(lambda: len(lab.kafka.describe(topic)[0].isrs) == count, 60, f"{count} replicas are in sync")


def fail_over(lab: Lab, cluster: Cluster, topic: str) -> None:
    """Kill the leader, wait for records from another one, bring the first back."""
    old = wait_until(lambda: cluster.leader(topic), 60, "there is a leader")
    old.kill()

    def another() -> Kafka | None:
        leader = cluster.leader(topic)
        return leader if leader is not old else None

    wait_until(another, 60, "there is another leader")
    lab.checker.wait_records(len(lab.checker.collect()) + 100)
    old.start()
    wait_in_sync(lab, topic, 3)


def test_a_key_stays_in_order_while_one_leader_after_the_other_dies_A55(
    cluster_lab: Lab, cluster: Cluster, full: bool
) -> None:
    lab, topic = cluster_lab, f"{cluster_lab.prefix}order"
    lab.kafka.create_topic(topic, replication_factor=3, config={"min.insync.replicas": "2"})
    relay = lab.running_relay({"kafka": {"linger.ms": "200"}})
    with Load(lab, keys=1, pause=0.001):
        for _ in range(20 if full else 2):
            lab.checker.wait_records(len(lab.checker.collect()) + 100)
            fail_over(lab, cluster, topic)
    lab.verify(120)
    assert relay.running


def test_events_wait_until_enough_replicas_are_in_sync_A64(cluster_lab: Lab, cluster: Cluster, full: bool) -> None:
    lab, topic = cluster_lab, f"{cluster_lab.prefix}order"
    lab.kafka.create_topic(topic, replicas=[[1, 2]], config={"min.insync.replicas": "2"})
    relay = lab.running_relay()
    lab.writer.insert("first")
    lab.verify()
    cluster.brokers[1].stop()
    wait_in_sync(lab, topic, 1)
    lab.writer.number("k", *range(1000))
    end = lab.end_of_wal()
    # librdkafka tries again without a word of the broker's reason
    relay.wait_for_log("acknowledged nothing for .*min.insync.replicas.* topic=" + topic, 60)
    lab.wait_speaking(60 if full else 3)
    assert relay.running and not lab.confirmed_at_least(end)
    cluster.brokers[1].start()
    lab.verify(90)
