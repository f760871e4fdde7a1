"""Nothing lost, nothing invented, in order: the one judge of all tests.

A Checker is told every committed and every rolled-back event, reads the topics and compares.
What is promised, and checked, for records whose `id` header names an event:

* lost: each committed event is there at least once;
* unexpected: no other event is there, a rolled-back one least of all;
* disordered: for each (topic, partition, key) the first occurrences stand in commit order;
* differing: copies of one event are equal byte for byte.

Duplicates are allowed and counted.
"""

from __future__ import annotations

import hashlib
import itertools
import time
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, KafkaException, Message, TopicPartition

from kit.wait import wait_until

Place = tuple[str, int]
LEADERLESS = {
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError._UNKNOWN_PARTITION,
}


@dataclass(frozen=True, slots=True)
class Record:
    """One record as a consumer sees it."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp_ms: int = 0

    def header(self, name: str) -> bytes | None:
        """The first header of that name; LookupError when there is none."""
        for header, value in self.headers:
            if header == name:
                return value
        raise LookupError(f"no header {name} in {self}")

    def same_event_as(self, other: "Record") -> bool:
        return (self.topic, self.key, self.value, self.headers) == (
            other.topic, other.key, other.value, other.headers,
        )  # fmt: skip


@dataclass
class Report:
    """What compare() found. `str()` of it is readable."""

    committed: int = 0
    published: int = 0
    duplicates: int = 0
    lost: list[str] = field(default_factory=list)
    unexpected: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    differing: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.lost or self.unexpected or self.disordered or self.differing)

    def __str__(self) -> str:
        text = f"{self.committed} committed, {self.published} published, {self.duplicates} duplicates"
        for name in ("lost", "unexpected", "disordered", "differing"):
            found: list[str] = getattr(self, name)
            text += f"\n  {name} {len(found)}" + "".join(f"\n    {item}" for item in found[:5])
        return text


def compare(committed: Mapping[str, int], records: Iterable[Record], id_header: str = "id") -> Report:
    """Compare the committed events, id to place in commit order, with the records.

    The records of a partition must come in the order of their offsets.
    """
    report = Report(committed=len(committed))
    first: dict[str, Record] = {}
    newest: dict[tuple[str, int, bytes | None], int] = {}
    seen: set[tuple[str, int, str]] = set()
    for record in records:
        event = (record.header(id_header) or b"").decode()
        if event not in committed:
            report.unexpected.append(f"{event} at {_place(record)}")
            continue
        if not first.setdefault(event, record).same_event_as(record):
            report.differing.append(f"{event}: {_place(first[event])} and {_place(record)}")
        if first[event] is not record:
            report.duplicates += 1
        if (record.topic, record.partition, event) in seen:
            continue
        seen.add((record.topic, record.partition, event))
        lane = (record.topic, record.partition, record.key)
        if committed[event] < newest.get(lane, -1):
            report.disordered.append(f"{event} at {_place(record)}, key {record.key!r}: after a later one")
        newest[lane] = max(committed[event], newest.get(lane, -1))
    report.published = len(first)
    report.lost = [event for event in committed if event not in first]
    return report


class Checker:
    """Knows what was committed, reads all topics that begin with `prefix`, compares.

    `light` keeps a digest in place of each value and only the id of the headers: for millions.
    """

    def __init__(self, bootstrap: str, prefix: str, id_header: str = "id", light: bool = False) -> None:
        self.bootstrap = bootstrap
        self.prefix = prefix
        self.id_header = id_header
        self.light = light
        self.records: list[Record] = []
        self.committed: dict[str, int] = {}
        self.rolled_back: set[str] = set()
        self._counter = itertools.count()
        self._consumer: Consumer | None = None
        self._position: dict[Place, int] = {}
        self._seen: set[str] = set()

    # ------------------------------------------------------------- knowledge

    def commit(self, *ids: object) -> None:
        """These events were committed, in this order and after all those named before."""
        for event in ids:
            self.committed[str(event)] = next(self._counter)

    def roll_back(self, *ids: object) -> None:
        """These events were rolled back and must never be seen."""
        self.rolled_back.update(str(event) for event in ids)

    def commit_table(self, conn: Any, table: str, order_by: str, id_column: str = "id") -> int:
        """Take all rows of an outbox table as committed, in the order of the SQL expression
        `order_by`; rows known already stay where they are. Return how many were new."""
        rows = conn.execute(f"SELECT {id_column}::text FROM {table} ORDER BY {order_by}").fetchall()
        new = [event for (event,) in rows if event not in self.committed]
        self.commit(*new)
        return len(new)

    # --------------------------------------------------------------- reading

    def collect(self, timeout: float = 60) -> list[Record]:
        """Read to the present end of every topic; return all records so far.

        KafkaException when no broker answers, TimeoutError when the end is not reached.
        """
        consumer = self._assigned_consumer()
        deadline = time.monotonic() + timeout
        ends = {place: _end(consumer, place, timeout) for place in self._position}
        while any(self._position[place] < end for place, end in ends.items()):
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"not within {timeout:g} s: read {self.prefix}* to {ends}, am at {self._position}"
                )
            for message in consumer.consume(10_000, timeout=0.2):
                self._take(message)
        return self.records

    def missing(self) -> list[str]:
        """Read on, then name the committed events that have not been seen."""
        self.collect()
        return [event for event in self.committed if event not in self._seen]

    def wait_complete(self, timeout: float = 60) -> None:
        """Wait until every event committed so far has been seen at least once."""
        wait_until(lambda: not self.missing(), timeout, lambda: f"all events are published\n{self.report()}")

    def wait_records(self, count: int, timeout: float = 60) -> list[Record]:
        """Wait until at least `count` records were read; return all of them."""
        wait_until(
            lambda: len(self.collect()) >= count,
            timeout,
            lambda: f"{count} records, have {len(self.records)}",
        )
        return self.records

    # --------------------------------------------------------------- verdict

    def report(self) -> Report:
        """Compare what was read so far."""
        return compare(self.committed, self.records, self.id_header)

    def check(self, duplicates: int | None = None) -> Report:
        """Read on, compare; AssertionError with the report when the promise was broken, or when
        there are more than `duplicates` (None: any number)."""
        self.collect()
        report = self.report()
        leaked = self.rolled_back & self._seen
        assert not leaked, f"rolled back and yet published: {sorted(leaked)[:5]}"
        assert report.ok, str(report)
        assert duplicates is None or report.duplicates <= duplicates, str(report)
        return report

    def close(self) -> None:
        """Close the consumer. May be called twice."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    # --------------------------------------------------------------- private

    def _assigned_consumer(self) -> Consumer:
        """The consumer, reading also the partitions that came since the last time."""
        if self._consumer is None:
            self._consumer = Consumer(
                {
                    "bootstrap.servers": self.bootstrap,
                    "group.id": "walrelay-checker",
                    "enable.auto.commit": False,
                    "enable.partition.eof": True,
                    "auto.offset.reset": "earliest",
                    "fetch.wait.max.ms": 50,
                    "log_level": 0,
                }
            )
        metadata = self._consumer.list_topics(timeout=30)
        places = {
            (name, partition)
            for name, topic in metadata.topics.items()
            if name.startswith(self.prefix)
            for partition in topic.partitions
        }
        new = sorted(places - self._position.keys())
        if new:
            self._consumer.incremental_assign([TopicPartition(*place, OFFSET_BEGINNING) for place in new])
            self._position.update((place, 0) for place in new)
        return self._consumer

    def _take(self, message: Message) -> None:
        place = (message.topic(), message.partition())
        error = message.error()
        if error is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                self._position[place] = max(self._position[place], message.offset())
                return
            raise KafkaException(error)
        self._position[place] = message.offset() + 1
        record = self._record(message)
        self.records.append(record)
        self._seen.add((record.header(self.id_header) or b"").decode())

    def _record(self, message: Message) -> Record:
        value, headers = message.value(), tuple(message.headers() or ())
        if self.light:
            value = hashlib.blake2b(value or b"", digest_size=8).digest()
            headers = tuple(h for h in headers if h[0] == self.id_header)
        return Record(
            message.topic(), message.partition(), message.offset(), message.key(), value, headers,
            message.timestamp()[1],
        )  # fmt: skip


def _place(record: Record) -> str:
    return f"{record.topic}[{record.partition}]@{record.offset}"


def _end(consumer: Consumer, place: Place, timeout: float) -> int:
    """The offset behind the last record. A partition that is new, or whose broker was away, may
    have no leader yet that knows of it."""

    def offsets() -> tuple[int, int] | None:
        try:
            low, high = consumer.get_watermark_offsets(TopicPartition(*place), timeout=timeout)
        except KafkaException as failure:
            if failure.args[0].code() not in LEADERLESS:
                raise
            return None
        return low, high

    return wait_until(offsets, timeout, f"{place} has a leader")[1]
