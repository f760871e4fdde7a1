"""What is promised, compared with what the witness, Kafka and the slot say.

* lost: a committed event that is not in Kafka, when all dead letters are resolved or discarded;
* unexpected: an event in Kafka that was not committed; differing: two copies that are not alike;
* disordered: for a (topic, partition, key) the first copies are not in commit order;
* early: the slot was confirmed beyond an event at a time when it was neither in Kafka nor a dead letter;
* unexplained: a copy of an event that was confirmed by then and in no stream begun before it;
* undeserved: a dead letter that nothing was wrong with and that had none to wait for.
"""

from __future__ import annotations

import bisect
from dataclasses import dataclass, field
from typing import Any, Iterable, Mapping, Sequence

from chaos.letters import History
from chaos.storm import Struck
from chaos.watch import Sample
from chaos.witness import Event
from kit.checker import Record

CLOCK_MS = 2  # both clocks are cut off to milliseconds
NO_LETTERS = History()


@dataclass(frozen=True, slots=True)
class Start:
    """At `ms` the server began to stream what commits after `after`."""

    ms: int
    after: int


def event_of(record: Record) -> str:
    """The id of the event that it is a copy of."""
    return (record.header("id") or b"").decode()


@dataclass
class Copies:
    """When each copy of an event was appended to Kafka, earliest first."""

    times: dict[str, list[int]] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "Copies":
        copies = cls()
        for record in records:
            copies.times.setdefault(event_of(record), []).append(record.timestamp_ms)
        for times in copies.times.values():
            times.sort()
        return copies

    def first(self, event: str) -> int | None:
        times = self.times.get(event)
        return times[0] if times else None


def safe(event: str, copies: Copies, letters: History) -> int | None:
    """Since when it is in Kafka or among the dead letters."""
    times = [ms for ms in (copies.first(event), letters.written.get(event)) if ms is not None]
    return min(times, default=None)


def early(
    events: Sequence[Event], copies: Copies, samples: Sequence[Sample], letters: History = NO_LETTERS
) -> list[str]:
    """Events beyond which the slot was confirmed at a time when they were nowhere, if they ever were."""
    found: list[str] = []
    highest, position = 0, 0
    ordered = sorted(events, key=lambda event: event.end)
    for sample in samples:
        highest = max(highest, sample.confirmed)
        while position < len(ordered) and ordered[position].end <= highest:
            event, first = ordered[position], safe(ordered[position].id, copies, letters)
            if first is None or first > sample.ms + CLOCK_MS:
                found.append(f"{event.id} ends at {event.end:X}, confirmed at {sample.ms}, safe at {first}")
            position += 1
    return found


def unexplained(
    events: Sequence[Event],
    copies: Copies,
    samples: Sequence[Sample],
    starts: Sequence[Start],
    thawed: Sequence[int] = (),
    letters: History = NO_LETTERS,
) -> list[str]:
    """Copies for which there is no reason.

    A copy is explained when the event was not confirmed when it was appended, or when it is not more
    than the streams that held the event: the one at the time of its commit, and each that began since
    before its end. A relay that was frozen, and `thawed` after the commit, may hold what its successor has
    confirmed, and sends that again as often as Kafka makes it: then there is nothing to count.
    A dead letter is tried again until the table says that it is over, and by a relay whose stream had begun
    before that.
    """
    found: list[str] = []
    for event in events:
        for number, appended in enumerate(copies.times.get(event.id, [])[1:], 2):
            since = [s for s in starts if event.committed_ms - CLOCK_MS <= s.ms <= appended + CLOCK_MS]
            streams = 1 + sum(start.after < event.end or event.id in letters.written for start in since)
            tried = letters.may_be_tried(event.id, appended - CLOCK_MS)
            zombie = any(event.committed_ms <= ms <= appended + CLOCK_MS for ms in thawed)
            if tried or zombie:
                continue
            if number > streams and confirmed_at(samples, appended - CLOCK_MS) >= event.end:
                found.append(f"{event.id}: copy {number} at {appended}, in {streams} streams")
    return found


def confirmed_at(samples: Sequence[Sample], ms: int) -> int:
    """What was certainly confirmed at that time; 0 when nobody had looked yet."""
    before = bisect.bisect_right(samples, ms, key=lambda sample: sample.ms)
    return samples[before - 1].confirmed if before else 0


def latencies(events: Iterable[Event], copies: Copies, letters: History) -> list[tuple[Event, int]]:
    """Each event with the milliseconds from its commit until it was safe."""
    found = ((event, safe(event.id, copies, letters)) for event in events)
    return [(event, first - event.committed_ms) for event, first in found if first is not None]


def summary(numbers: Mapping[str, Any]) -> list[str]:
    """What a round found of that of which there must be nothing: how many, and the first few."""
    return [f"{name} {len(numbers[name])}: {numbers[name][:3]}" for name in MUST_BE_ZERO if numbers.get(name)]


MUST_BE_ZERO = (
    "lost", "unexpected", "differing", "disordered", "early", "unexplained", "undeserved", "wrong_ends", "left_over",
    "too_large",
)  # fmt: skip


def per_fault(
    struck: Sequence[Struck], events: Sequence[Event], copies: Copies, letters: History
) -> list[dict[str, Any]]:
    """What came with each fault.

    recovery_ms: how long after the end of the fault, or after its own commit if that was later, the last
    event committed between the beginning of the fault and a second after its end was in Kafka or among the dead
    letters.
    duplicates: further copies appended since the fault began and before another one did.
    """
    late = latencies(events, copies, letters)
    further = sorted(time for times in copies.times.values() for time in times[1:])
    begun = sorted(entry.began_ms for entry in struck)
    found = []
    for entry in struck:
        next_one = bisect.bisect_right(begun, entry.began_ms)
        until = begun[next_one] if next_one < len(begun) else further[-1] + 1 if further else entry.began_ms
        waits = [
            event.committed_ms + latency - max(event.committed_ms, entry.ended_ms)
            for event, latency in late
            if entry.began_ms <= event.committed_ms <= entry.ended_ms + 1000
        ]
        found.append(
            {
                "kind": entry.fault.name,
                "detail": entry.fault.detail,
                "ms": entry.ended_ms - entry.began_ms,
                "kills": entry.fault.kills,
                "recovery_ms": max([0, *waits]),
                "duplicates": bisect.bisect_left(further, until) - bisect.bisect_left(further, entry.began_ms),
            }
        )
    return found
