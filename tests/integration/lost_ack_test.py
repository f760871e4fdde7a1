"""The broker has written, and its acknowledgement does not arrive."""

from __future__ import annotations

import pytest

from kit.lab import Lab
from kit.proxy import Proxy
from kit.relay import Relay
from kit.wait import wait_until

EVENTS = 1000
IMPATIENT = {"socket.timeout.ms": "1000", "request.timeout.ms": "1000"}


def relay_behind(lab: Lab, proxy: Proxy, **properties: str) -> Relay:
    """A relay that has delivered to every partition already, through the proxy."""
    lab.topic("order", partitions=3)
    relay = lab.running_relay({"kafka": {"bootstrap.servers": proxy.address, **properties}})
    for n in range(20):
        lab.writer.number(f"warm{n}", n)
    lab.verify(duplicates=0)
    return relay


def write_without_answers(lab: Lab, proxy: Proxy) -> None:
    """Write events of three keys, of which the broker has written some and acknowledged none."""
    written = len(lab.checker.collect())
    proxy.to_client.drop = True
    for n in range(EVENTS):
        lab.writer.number(f"k{n % 3}", n)
    end = lab.end_of_wal()
    lab.checker.wait_records(written + 1)
    wait_until(lambda: proxy.to_client.swallowed, 20, "an answer is swallowed")
    lab.wait_speaking(5)
    assert not lab.confirmed_at_least(end)


@pytest.mark.parametrize("properties", [{}, IMPATIENT], ids=["patient", "impatient"])
def test_a_relay_that_lives_repeats_nothing_whose_acknowledgement_was_lost_A71(
    lab: Lab, proxy: Proxy, properties: dict[str, str]
) -> None:
    relay = relay_behind(lab, proxy, **properties)
    write_without_answers(lab, proxy)
    proxy.heal()
    lab.verify(90, duplicates=0)
    assert relay.running


def test_a_relay_that_dies_repeats_the_same_events_in_the_same_order_A71(lab: Lab, proxy: Proxy) -> None:
    relay = relay_behind(lab, proxy)
    write_without_answers(lab, proxy)
    relay.kill()
    proxy.heal()
    relay.start()
    assert lab.verify().duplicates > 0
