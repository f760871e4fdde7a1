"""Latency: writers at a steady rate and a consumer (stopwatch.c) around a contender."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path
from typing import Any

from bench.contenders import PROGRAMS, Contender, Floor0
from bench.measure import Figures, Meter, Wrong, judge, running
from bench.world import World, payload
from kit import process
from kit.wait import wait_until

WARMUP = 5  # seconds, for the compilers of the JVMs most of all


def latency(world: World, contender: Contender, rate: int, each: int, seconds: int) -> dict[str, Any]:
    """A run at `rate` events a second, `each` of them a transaction: {"figures", "check", "order_promised"}.

    Figures are of the events of `seconds` after a warm-up. achieved_rate is lower than `rate` when
    the writers do not get to it beside the contender. The world's table is emptied before.
    """
    world.start_over()
    name = world.next_run()
    if contender.plugin:
        world.make_slot(name, contender.plugin)
    with running(world, contender, name):
        watch = Stopwatch(world, contender, name, [rate, each, seconds, WARMUP, writers(rate, each)])
        figures = watch.run(WARMUP, seconds)
    check = judge(world, contender, f"{name}.")
    world.forget_run(name)
    return {"figures": figures, "check": check, "order_promised": contender.keeps_order}


def warm_up(world: World, seconds: int = 60) -> None:
    """Let the broker's JVM compile: in its first minute latency falls from run to run, whoever
    relays. Without this the contender that comes first pays for it."""
    latency(world, Floor0(), 1_000, 1, seconds)


def writers(rate: int, each: int) -> int:
    """Enough that each may take 10 ms for a transaction."""
    return min(max(rate // each // 100, 2), 32)


class Stopwatch:
    """One run of stopwatch.c beside a contender that works already."""

    def __init__(self, world: World, contender: Contender, name: str, numbers: list[int]) -> None:
        self.contender = contender
        self.meter = Meter(world, contender, name)
        self.command: list[str | Path] = [
            PROGRAMS / "stopwatch", world.dsn, world.kafka.bootstrap, f"{name}.order",
            payload(world.load.payload), *map(str, numbers), str(world.load.keys),
        ]  # fmt: skip
        self.log = world.directory / f"{name}-stopwatch.log"

    def run(self, warmup: int, seconds: int) -> Figures:
        """What it prints, and what the contender uses while events are counted."""
        child = process.spawn(self.command, self.log)
        try:
            self._wait(lambda: "counting\n" in self._said(), child, warmup + 60)
            self.meter.begin()
            self._wait(lambda: "}\n" in self._said(), child, 2 * (warmup + seconds) + 120)
            figures: Figures = json.loads(self._said().splitlines()[-1])
            return {**figures, **self.meter.figures(max(int(figures["events"]), 1))}
        finally:
            process.finish(child, signal.SIGKILL, 10)

    def _wait(self, condition: Any, child: "subprocess.Popen[bytes]", limit: float) -> None:
        def over() -> bool:
            self.meter.look()
            if not self.contender.running():
                raise Wrong(f"{self.contender.name} ended:\n{self.contender.log_text()[-3000:]}")
            ended = child.poll() is not None
            if condition():
                return True
            if ended:
                raise Wrong(f"stopwatch ended: {self._said()}")
            return False

        wait_until(over, limit, lambda: f"the stopwatch has stopped: {self._said()}", interval=0.1)

    def _said(self) -> str:
        return self.log.read_text()
