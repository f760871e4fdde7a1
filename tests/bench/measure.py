"""One drain: how long a contender takes for the backlog, and what it and the servers use meanwhile."""

from __future__ import annotations

import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Iterator

from confluent_kafka import Consumer, TopicPartition

from bench.contenders import Contender
from bench.world import World
from kit import process
from kit.wait import wait_until

TICK = 0.02
LIMIT = 3600.0
Figures = dict[str, float]


class Wrong(RuntimeError):
    """A contender ended, or did not get to the end."""


@dataclass
class Meter:
    """CPU time and memory of everybody from now on."""

    world: World
    contender: Contender
    slot: str
    before: dict[int, float] = field(default_factory=dict)  # of `cpu`, when it began
    broker_before: float = 0
    serving: list[int] = field(default_factory=list)  # the contender's processes of PostgreSQL
    cpu: dict[int, float] = field(default_factory=dict)  # of each process, so far
    peak_kb: dict[int, int] = field(default_factory=dict)

    def begin(self) -> None:
        self.broker_before = process.cpu_seconds(self.world.kafka.pid)
        self.look()
        self.before = dict(self.cpu)

    def look(self) -> None:
        """Processes take their figures with them: read while they live."""
        if not self.serving:
            self.serving = self.contender.serving(self.world, self.slot)
        for pid in [*self.contender.pids(), *self.serving]:
            with suppress(OSError, LookupError):
                self.cpu[pid] = process.cpu_seconds(pid)
                self.peak_kb[pid] = process.peak_rss_kb(pid)

    def figures(self, events: int) -> Figures:
        self.look()
        broker = process.cpu_seconds(self.world.kafka.pid) - self.broker_before
        own = self.cpu.keys() - set(self.serving)
        return {
            "cpu_us": self._used(own) / events * 1e6,
            "walsender_cpu_us": self._used(self.serving) / events * 1e6,
            "broker_cpu_us": broker / events * 1e6,
            "peak_rss_mb": sum(self.peak_kb[pid] for pid in own) / 1024,
        }

    def _used(self, pids: Iterable[int]) -> float:
        """CPU seconds of processes since the beginning, or since their own."""
        return sum(self.cpu.get(pid, 0) - self.before.get(pid, 0) for pid in pids)


def drain(
    world: World,
    contender: Contender,
    per: int | None = None,
    afterwards: Callable[[], Figures] | None = None,
) -> dict[str, Any]:
    """A run of the contender over the whole backlog: {"figures", "check", "order_promised"}.

    The time begins when the slot is read (without a slot: when the process starts), and ends when
    the slot is confirmed to the end of the backlog; for who confirms late, when everything is in
    Kafka. Figures are per event, or per one of `per` things; `afterwards` is called while the
    contender has nothing more to do and gives further ones. Wrong when the contender ends before.
    """
    things = per or world.load.rows
    name = world.next_run(contender.publishes)
    prefix = f"{name}."
    if contender.plugin:
        world.copy_slot(name, contender.plugin)
    requests = world.kafka.produce_requests() if contender.publishes else 0
    with running(world, contender, name) as goal:
        figures = race(goal, things)
        figures.update(afterwards() if afterwards else {})
    if contender.publishes:
        requests = world.kafka.produce_requests() - requests
        figures["requests_per_s"] = requests / figures["seconds"]
    check = judge(world, contender, prefix) if contender.publishes else {}
    if world.load.compacted and world.dead_letters(name) != world.load.refused:
        raise Wrong(f"{world.dead_letters(name)} dead letters, not {world.load.refused}")
    world.forget_run(name)
    return {"figures": figures, "check": check, "order_promised": contender.keeps_order}


@contextmanager
def running(world: World, contender: Contender, name: str) -> "Iterator[Goal]":
    """The contender at work on the run's slot and topics; it is stopped at the end."""
    prefix = f"{name}."
    contender.prepare(world, name, prefix)
    world.settle()
    with Goal(world, contender, name, prefix) as goal:
        contender.start()
        try:
            goal.wait_begin()
            yield goal
        finally:
            contender.stop()


def race(goal: "Goal", things: int) -> Figures:
    """From now until the goal is reached: time, and what everybody used for one of the things."""
    meter = Meter(goal.world, goal.contender, goal.slot)
    meter.begin()
    began = time.monotonic()
    goal.wait(meter)
    seconds = time.monotonic() - began
    figures = {"seconds": seconds, "rows_per_s": things / seconds, **meter.figures(things)}
    if goal.contender.confirms_late and goal.contender.confirms_last and goal.contender.plugin:
        goal.wait_confirmed()
        figures["confirmed_seconds"] = time.monotonic() - began
    return figures


class Goal:
    """Knows when a drain begins and when it is over. A context manager."""

    def __init__(self, world: World, contender: Contender, slot: str, prefix: str) -> None:
        self.world, self.contender, self.slot = world, contender, slot
        self.counter = Counter(world, prefix) if contender.confirms_late else None

    def __enter__(self) -> "Goal":
        return self

    def __exit__(self, *_: object) -> None:
        if self.counter:
            self.counter.close()

    def wait_begin(self) -> None:
        if self.contender.plugin:
            wait_until(
                lambda: self.world.walsender(self.slot) or not self.contender.running(), 120,
                "the slot is read", interval=TICK / 4,
            )  # fmt: skip

    def wait(self, meter: Meter) -> None:
        def over() -> bool:
            meter.look()
            return self._reached()

        wait_until(over, LIMIT, lambda: f"{self.contender.name} is done", interval=TICK)

    def _reached(self) -> bool:
        if not self.contender.running():
            if self.contender.succeeded() and not self.contender.publishes:
                return True
            raise Wrong(f"{self.contender.name} ended:\n{self.contender.log_text()[-3000:]}")
        if self.contender.plugin is None:
            return self.contender.finished(self.world)
        if self.counter:
            return self.counter.count() >= self.world.load.rows
        return self.contender.publishes and self.world.is_confirmed(self.slot)

    def wait_confirmed(self) -> None:
        wait_until(lambda: self.world.is_confirmed(self.slot), 600, "the slot is confirmed", interval=TICK)


class Counter:
    """How many records the topics of a run hold."""

    def __init__(self, world: World, prefix: str) -> None:
        self._consumer = Consumer({"bootstrap.servers": world.kafka.bootstrap, "group.id": "bench-counter"})
        self._places = [
            TopicPartition(prefix + kind, partition)
            for kind in world.load.kinds()
            for partition in range(world.load.partitions)
        ]

    def count(self) -> int:
        return sum(self._consumer.get_watermark_offsets(place, timeout=30)[1] for place in self._places)

    def close(self) -> None:
        self._consumer.close()


def judge(world: World, contender: Contender, prefix: str) -> dict[str, int]:
    """What the checker of the tests says of the run's topics."""
    checker = contender.checker(world, prefix)
    try:
        checker.collect(600)
        report = checker.report()
    finally:
        checker.close()
    return {
        "committed": report.committed,
        "lost": len(report.lost),
        "unexpected": len(report.unexpected),
        "differing": len(report.differing),
        "disordered": len(report.disordered),
        "duplicates": report.duplicates,
    }

