"""A record's timestamp: the commit's, or a column's as far as Kafka takes it."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone

import pytest

from kit.checker import Record
from kit.lab import Lab
from kit.rows import EVENTS, arrival, arrivals, insert, make_table, section
from kit.wait import wait_until

NAME = "walrelay.timestamp"


@pytest.fixture(autouse=True)
def topic(lab: Lab) -> str:
    return lab.topic("order", partitions=1)


def server_ms(lab: Lab) -> float:
    ((now,),) = lab.conn.execute("SELECT extract(epoch FROM clock_timestamp())::float8 * 1000").fetchall()
    return float(now)


def given(record: Record) -> "bytes | None":
    return dict(record.headers).get(NAME)


def milliseconds(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


def test_a_record_carries_the_time_of_its_commit(lab: Lab) -> None:
    lab.running_relay()
    with lab.writer.transaction():
        event = lab.writer.insert("k")
        wait_until(lambda: lab.checker.collect() == [], 5, "nothing of an open transaction is published")
        before = server_ms(lab)
    after = server_ms(lab)
    record = arrival(lab, event)
    assert int(before) <= record.timestamp_ms <= after
    assert given(record) is None


def test_a_row_of_the_backlog_carries_the_time_of_its_commit(lab: Lab) -> None:
    lab.make_slot()
    event = lab.writer.insert("k")
    committed = server_ms(lab)
    wait_until(lambda: server_ms(lab) > committed + 100, 5, "some time passes")
    lab.running_relay()
    record = arrival(lab, event)
    assert committed - 1000 <= record.timestamp_ms <= committed


def test_a_timestamp_column_is_the_records_timestamp(lab: Lab) -> None:
    make_table(lab, "payload jsonb, z timestamptz, t timestamp, ms bigint")
    lab.make_slot()
    moments = ["2026-11-30 09:15:02.114523+00", "1970-01-01 00:00:00.001+00", "2024-02-29 23:59:59.999+05:30", None]
    columns = ("z", "t", "ms")
    for column in columns:
        relay = lab.running_relay(section(lab, timestamp=column))
        for text in moments:
            moment = datetime.fromisoformat(text).astimezone(timezone.utc) if text else None
            value = {
                "z": moment,
                "t": moment.replace(tzinfo=None) if moment else None,
                "ms": int(moment.timestamp() * 1000) if moment else None,
            }[column]
            before = server_ms(lab)
            record = arrival(lab, insert(lab, EVENTS, **{column: value}))
            if text is None:
                assert int(before) <= record.timestamp_ms <= server_ms(lab)
            else:
                assert record.timestamp_ms == milliseconds(text)
            assert given(record) is None
        assert relay.stop() == 0


@pytest.mark.parametrize(
    "text",
    [
        "infinity",
        "-infinity",
        "0044-03-15 10:00:00+00 BC",
        "294276-12-31 23:59:59.999999+00",
        "1970-01-01 00:00:00+00",
    ],
)
def test_a_timestamp_that_kafka_cannot_carry_goes_into_a_header_A22(lab: Lab, text: str) -> None:
    make_table(lab, "payload jsonb, z timestamptz")
    lab.running_relay(section(lab, timestamp="z", headers="z"))
    before = server_ms(lab)
    record = arrival(lab, insert(lab, EVENTS, z=text))
    assert int(before) <= record.timestamp_ms <= server_ms(lab)
    assert given(record) == text.encode() == record.header("z")


def test_a_timestamp_more_than_an_hour_ahead_goes_into_a_header(lab: Lab) -> None:
    make_table(lab, "payload jsonb, z timestamptz")
    lab.running_relay(section(lab, timestamp="z"))
    before = server_ms(lab)
    now = datetime.now(timezone.utc)
    far, near = now + timedelta(hours=2), now + timedelta(minutes=55)
    ahead, soon = arrivals(lab, insert(lab, EVENTS, z=far), insert(lab, EVENTS, z=near))
    assert int(before) <= ahead.timestamp_ms <= server_ms(lab)
    assert datetime.fromisoformat((given(ahead) or b"").decode()) == far
    assert (soon.timestamp_ms, given(soon)) == (int(near.timestamp() * 1000), None)
