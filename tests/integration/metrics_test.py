"""GET /metrics: what it says is true, and whoever asks does not disturb the stream."""

from __future__ import annotations

import os
import re
import signal
import socket
import time
import urllib.error
import urllib.request
from contextlib import ExitStack

import pytest

from kit.dead_letters import LETTERS, make_letters
from kit.lab import INSERT, Lab
from kit.metrics import Metrics, absent, letters, listen
from kit.relay import ROOT, Relay
from kit.wait import wait_until

CONFIG_EXIT = 78
CLIENTS = 40  # more than are served, and no more than may wait to be accepted
OF_LETTERS = ("outbox_dead_letters", "outbox_dead_letters_oldest_age_seconds", "outbox_held_keys")
Changes = dict[str, dict[str, str]]


def start(lab: Lab, **dead_letters: str) -> tuple[Relay, Metrics]:
    """A relay that streams and tells."""
    changes: Changes = {**listen(), "dead_letters": {"retry_initial": "1h", "retry_max": "1h", **dead_letters}}
    relay = lab.running_relay(changes)
    return relay, Metrics(changes["http"]["listen"])


@pytest.fixture
def small_topic(lab: Lab) -> Lab:
    """A lab with the table of dead letters, and a topic that takes no large record."""
    make_letters(lab)
    lab.topic("order", 1, {"max.message.bytes": "100000"})
    return lab


def insert(lab: Lab, key: str, event: str, kind: str = "order", size: int = 10) -> None:
    """Commit an event of type `event`; the checker does not wait for it."""
    lab.conn.execute(INSERT, [kind, key, event, f'"{os.urandom(size // 2).hex()}"'])


def large(lab: Lab, key: str, event: str = "large") -> None:
    insert(lab, key, event, size=300_000)


def documented() -> dict[str, str]:
    """Name and type of each metric that the reference has."""
    text = (ROOT / "docs" / "reference.md").read_text()
    rows = re.findall(r"^\| `([a-z_]+)(?:\{[^`]*\})?` \| (counter|gauge) \|", text, re.MULTILINE)
    return dict(rows)


def test_the_page_tells_how_much_was_published_and_how_far_it_is(lab: Lab) -> None:
    lab.topic("order")
    relay, metrics = start(lab)
    lab.writer.number("k", *range(10))
    lab.verify(duplicates=0)
    metrics.wait(
        {
            ("outbox_streaming",): 1,
            ("outbox_events_published_total",): 10,
            ("outbox_events_pending",): 0,
            ("outbox_events_pending_bytes",): 0,
            ("outbox_lag_bytes",): 0,
            ("outbox_lag_seconds",): 0,
            ("outbox_reconnects_total",): 0,
        }
    )
    found = metrics.all()
    ((confirmed,),) = lab.postgres.execute(
        "SELECT confirmed_flush_lsn - '0/0' FROM pg_replication_slots WHERE slot_name = %s", lab.slot
    )
    assert found["outbox_received_lsn",] >= found["outbox_confirmed_flush_lsn",] >= float(confirmed) > 0
    assert found["process_resident_memory_bytes",] == pytest.approx(relay.rss_kb() * 1024, rel=0.5)
    assert 0 < found["process_start_time_seconds",] <= time.time()
    assert absent(metrics, OF_LETTERS)  # there is no such table


def test_every_metric_is_in_the_reference(lab: Lab) -> None:
    lab.topic("order")
    _, metrics = start(lab)
    assert metrics.types() == documented()


def test_what_kafka_does_not_acknowledge_shows_as_lag(lab: Lab) -> None:
    lab.topic("order")
    _, metrics = start(lab)
    lab.kafka.freeze()
    lab.writer.insert("k")
    wait_until(lambda: (metrics.get("outbox_lag_seconds") or 0) > 1, 30, "the lag grows")
    found = metrics.all()
    assert found["outbox_events_pending",] == 1 and found["outbox_events_pending_bytes",] > 0
    assert found["outbox_lag_bytes",] > 0
    lab.kafka.thaw()
    lab.verify()
    metrics.wait({("outbox_lag_seconds",): 0, ("outbox_events_pending",): 0})


def test_a_lost_stream_is_counted(lab: Lab) -> None:
    lab.topic("order")
    _, metrics = start(lab)
    lab.postgres.execute("SELECT pg_terminate_backend(%s)", lab.slot_row()["active_pid"])
    wait_until(lambda: (metrics.get("outbox_reconnects_total") or 0) >= 1, 20, "it is counted")
    metrics.wait({("outbox_streaming",): 1})
    lab.writer.insert("k")
    lab.verify()


def test_the_metrics_count_each_dead_letter_until_it_is_resolved(small_topic: Lab) -> None:
    lab = small_topic
    relay, metrics = start(lab)
    metrics.wait({**letters(0, 0, 0), ("outbox_dead_letters_oldest_age_seconds",): 0, ("outbox_held_keys",): 0})
    large(lab, "k", 'a "large" \\ one\n')
    insert(lab, "k", "small")
    insert(lab, "k", "small")
    insert(lab, "other", "nowhere", kind="no such/topic")
    metrics.wait(
        {
            **letters(1, 2, 1),
            ("outbox_events_failed_total", 'a "large" \\ one\n'): 1,
            ("outbox_events_failed_total", "nowhere"): 1,
            ("outbox_held_keys",): 1,
            ("outbox_dead_letters_breaker_open",): 0,
        }
    )
    wait_until(lambda: (metrics.get("outbox_dead_letters_oldest_age_seconds") or 0) > 1, 20, "it ages")
    lab.conn.execute(f"UPDATE {LETTERS} SET retry_after = NULL WHERE state = 'waiting'")  # refused once more
    metrics.wait({**letters(1, 2, 1), ("outbox_events_failed_total", 'a "large" \\ one\n'): 2})
    lab.conn.execute(f"UPDATE {LETTERS} SET state = 'discarded' WHERE state IN ('waiting', 'dead')")
    metrics.wait({**letters(0, 0, 0), ("outbox_dead_letters_oldest_age_seconds",): 0, ("outbox_held_keys",): 0})
    assert metrics.get("outbox_events_published_total") == 2
    assert relay.running


def test_a_relay_that_begins_knows_each_dead_letter_and_one_that_stands_by_tells_none(small_topic: Lab) -> None:
    lab = small_topic
    first, metrics = start(lab)
    large(lab, "k")
    metrics.wait(letters(1, 0, 0))
    changes = listen()
    second, successor = lab.relay(changes), Metrics(changes["http"]["listen"])
    second.start()
    second.wait_for_log("standing by")
    assert successor.get("outbox_streaming") == 0 and absent(successor, OF_LETTERS)
    first.stop()
    successor.wait({**letters(1, 0, 0), ("outbox_streaming",): 1, ("outbox_held_keys",): 1})
    assert (successor.get("outbox_dead_letters_oldest_age_seconds") or 0) > 0
    assert absent(successor, ["outbox_events_failed_total"])


def test_too_many_dead_letters_show_as_an_open_breaker(small_topic: Lab) -> None:
    lab = small_topic
    relay, metrics = start(lab, limit="1", limit_window="1h")
    for key in "abc":
        large(lab, key)
    metrics.wait({("outbox_dead_letters_breaker_open",): 1})
    lab.kafka.alter_topic(lab.prefix + "order", max_message_bytes=1_000_000)
    relay.send_signal(signal.SIGHUP)
    metrics.wait({("outbox_dead_letters_breaker_open",): 0})


# ----------------------------------------------------------------------------- who asks


def ask(metrics: Metrics, path: str, method: str = "GET") -> int:
    """The status of an answer."""
    url = metrics.url.replace("/metrics", path)
    try:
        with urllib.request.urlopen(urllib.request.Request(url, method=method), timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def half_open(address: tuple[str, int], n: int) -> socket.socket:
    """A client that says nothing, half of its request, or all of it without reading the answer."""
    client = socket.create_connection(address)
    client.sendall((b"", b"GET /met", b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n" * 50)[n % 3])
    return client


def test_slow_clients_do_not_disturb_the_stream(lab: Lab) -> None:
    lab.topic("order")
    relay, metrics = start(lab)
    host, port = re.findall(r"//(.*):(\d+)/", metrics.url)[0]
    before = relay.threads()
    with ExitStack() as stack:
        for n in range(CLIENTS):
            stack.enter_context(half_open((host, int(port)), n))
        for n in range(300):
            lab.writer.number(f"k{n % 7}", n)
        lab.verify(duplicates=0)
        assert relay.running and relay.threads() <= before and relay.fds() < 100
    metrics.wait({("outbox_events_published_total",): 300})


def test_there_is_nothing_but_the_page(lab: Lab) -> None:
    lab.topic("order")
    _, metrics = start(lab)
    assert ask(metrics, "/metrics") == ask(metrics, "/metrics", "HEAD") == 200
    assert (ask(metrics, "/"), ask(metrics, "/metrics", "POST"), ask(metrics, "/metrics", "DELETE")) == (404, 405, 405)


def test_a_port_that_is_taken_is_an_error_of_the_configuration(lab: Lab) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"127.0.0.1:{server.getsockname()[1]}"
        relay = lab.relay(env={"WALRELAY_HTTP_LISTEN": address})
        relay.start()
        assert relay.wait_exit() == CONFIG_EXIT
    relay.wait_for_log(rf"error cannot listen at {address} \(listen in \[http\]\): Address already in use")

