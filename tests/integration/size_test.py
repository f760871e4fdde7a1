"""Large transactions, large events, many events."""

from __future__ import annotations

from kit.lab import TABLE, Lab
from kit.load import rows, take_table, write_backlog
from kit.wait import wait_until

POISON_EXIT = 65
SENDER_TIMEOUT = "terminating walsender process due to replication timeout"
# hexadecimal digits of hashes: neither lz4 nor pglz makes them much smaller
NOISE = "(SELECT string_agg(md5(i::text), '') FROM generate_series(1, {bytes} / 32) i)"


def insert_noise(lab: Lab, key: str, size: int) -> str:
    """Commit one event with that many bytes of payload that cannot be compressed."""
    ((event,),) = lab.conn.execute(
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        f" VALUES ('order', %s, 'large', to_jsonb({NOISE.format(bytes=size)})) RETURNING id::text",
        [key],
    ).fetchall()
    lab.checker.commit(event)
    return str(event)


def small_relay(lab: Lab) -> dict[str, dict[str, str]]:
    """A budget that a large transaction fills at once, and a server that is quick to give up."""
    dsn = lab.postgres.dsn(lab.db, options="-c wal_sender_timeout=2s")
    return {"relay": {"memory": "4MB"}, "postgres": {"dsn": dsn}}


def one_transaction(lab: Lab, events: int) -> None:
    """Commit events 1 to `events` in one transaction."""
    lab.conn.execute(rows("1", str(events), "order", 50, 100))
    assert take_table(lab, lab.conn) == events


def test_a_transaction_of_a_million_rows_passes_a_small_budget_with_a_frozen_broker_A35(
    big_lab: Lab, full: bool
) -> None:
    lab, events = big_lab, 1_000_000 if full else 50_000
    lab.topic("order")
    relay = lab.running_relay(small_relay(lab))
    lab.writer.insert("first")
    lab.verify()
    logged = len(lab.postgres.log_text())
    lab.kafka.freeze()
    one_transaction(lab, events)
    committed = lab.end_of_wal()
    wait_until(lambda: lab.answered_for(20 if full else 8), 40, "the relay answers meanwhile")
    assert not lab.confirmed_at_least(committed)
    lab.kafka.thaw()
    lab.verify(300 if full else 60, duplicates=0)
    assert SENDER_TIMEOUT not in lab.postgres.log_text()[logged:]
    assert relay.peak_rss_kb() < 28 << 10


def test_a_kill_in_the_middle_of_a_large_transaction_sends_all_of_it_again_A35(big_lab: Lab) -> None:
    lab, events = big_lab, 50_000
    lab.topic("order")
    relay = lab.running_relay(small_relay(lab))
    lab.kafka.freeze()
    one_transaction(lab, events)
    wait_until(lab.is_blocked, 30, "the relay has stopped reading")
    relay.kill()
    lab.kafka.thaw()
    relay.start()
    assert lab.verify(60).published == events


def too_large(lab: Lab, client_limit: int, topic_limit: int) -> None:
    """A 3 MB event between small ones stops the relay; with both limits raised it comes first."""
    topic = lab.topic("order", 1, {"max.message.bytes": str(topic_limit)})
    limits = {"kafka": {"message.max.bytes": str(client_limit)}}
    relay = lab.running_relay(limits)
    lab.writer.number("k", 1)
    lab.verify()
    event = insert_noise(lab, "k", 3_000_000)
    committed = lab.end_of_wal()
    lab.writer.number("k", 2)
    assert relay.wait_exit() == POISON_EXIT
    last = relay.log_text().splitlines()[-1]
    for word in (TABLE, event, "MSG_SIZE_TOO_LARGE", topic, "message.max.bytes"):
        assert word in last, f"{word} is missing in: {last}"
    assert len(lab.checker.collect()) == 1
    assert not lab.confirmed_at_least(committed)

    lab.kafka.alter_topic(topic, max_message_bytes=5_000_000)
    relay.write_config(lab.config({"kafka": {"message.max.bytes": "5000000"}}))
    relay.start()
    lab.verify(duplicates=0)
    assert lab.checker.records[1].header("id") == event.encode()


def test_an_event_over_the_producers_limit_stops_the_relay_until_it_is_raised_A36(lab: Lab) -> None:
    too_large(lab, client_limit=1_000_000, topic_limit=5_000_000)


def test_an_event_over_the_topics_limit_stops_the_relay_until_it_is_raised_A36(lab: Lab) -> None:
    too_large(lab, client_limit=5_000_000, topic_limit=1_000_000)


def test_an_event_over_the_memory_budget_passes_alone_A36(lab: Lab) -> None:
    lab.topic("order", 1, {"max.message.bytes": "9000000"})
    lab.running_relay({"relay": {"memory": "4MB"}, "kafka": {"message.max.bytes": "9000000"}})
    insert_noise(lab, "k", 6_000_000)
    lab.writer.number("k", 1)
    lab.verify(duplicates=0)


def test_a_small_event_is_delivered_though_a_large_one_fills_its_batch_A40(lab: Lab) -> None:
    lab.topic("order", 1, {"max.message.bytes": "100000"})
    lab.running_relay()
    with lab.writer.transaction():
        insert_noise(lab, "k", 90_000)
        for _ in range(500):
            insert_noise(lab, "k", 1_000)
    lab.verify(duplicates=0)


def test_events_of_eight_topics_pass_in_a_stream_A41(big_lab: Lab, full: bool) -> None:
    lab, each = big_lab, 25_000 if full else 4_000
    lab.make_slot()
    for i in range(8):
        lab.topic(f"t{i}")
        write_backlog(lab, each, kind=f"t{i}", start=i * each, fill=220)
    lab.running_relay()
    # 20,000 events a second are the aim on two idle cores; here nobody promises idle cores
    lab.checker.wait_complete(8 * each / 2_000)
    lab.verify(duplicates=0)


def test_a_backlog_of_many_topics_stays_in_order_though_one_refuses_its_batches(big_lab: Lab) -> None:
    """Each refusal ends the producer, and what had gathered of all topics is offered to the next one."""
    lab, topics = big_lab, 60
    lab.make_slot()
    lab.conn.execute(
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload)"
        f" SELECT 't' || n % {topics}, 'k' || n % 7, 'created', jsonb_build_object('n', n, 'noise', md5(n::text))"
        f" FROM generate_series(1, 500 * {topics}) n"
    )
    assert take_table(lab, lab.conn) == 500 * topics
    for i in range(topics):
        lab.topic(f"t{i}", 2, {"max.message.bytes": "2000"} if i == 7 else None)
    relay = lab.running_relay()
    lab.verify(120)
    assert "MSG_SIZE_TOO_LARGE" in relay.log_text()


def test_a_backlog_of_real_transactions_is_complete_after_a_clean_stop_in_its_middle(
    big_lab: Lab, full: bool
) -> None:
    lab, events = big_lab, 1_000_000 if full else 200_000
    lab.make_slot()
    lab.topic("order", 6)
    write_backlog(lab, events, fill=170)
    relay = lab.running_relay()
    lab.checker.wait_records(1)
    first_peak = relay.peak_rss_kb()
    assert relay.stop() == 0
    assert 0 < len(lab.checker.collect()) < events, "the stop came too late"
    relay.start()
    lab.verify(600 if full else 120, duplicates=0)
    assert max(first_peak, relay.peak_rss_kb()) < 48 << 10
