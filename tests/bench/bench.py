"""What all parts share: rounds in varied order, progress on the screen, the rows of the result."""

from __future__ import annotations

import random
import time
from dataclasses import asdict
from typing import Any, Iterator, Sequence

from bench import measure
from bench.contenders import Contender
from bench.world import Load, Servers, World


class Bench:
    """The options of a run of the benchmark, and the parameters that a part chose."""

    def __init__(self, rounds: int, rows: int, gigabytes: float = 1) -> None:
        self.rounds, self.rows, self.gigabytes = rounds, rows, gigabytes
        self.chosen: dict[str, Any] = {}
        self._began = time.monotonic()

    def parameters(self, load: Load, **more: Any) -> None:
        """What the result says about the load."""
        self.chosen = {**asdict(load), **more}

    def servers(self, fsync: bool = False, **settings: str | int) -> Servers:
        self.say("starting PostgreSQL and Kafka")
        return Servers(fsync, **settings)

    def fill(self, world: World) -> None:
        load = world.load
        self.say(f"writing {load.rows:,} rows, {load.each:,} a transaction")
        world.fill()

    def say(self, text: str) -> None:
        seconds = int(time.monotonic() - self._began)
        print(f"{seconds // 60:3}:{seconds % 60:02} {text}", flush=True)

    def in_turn(self, contenders: Sequence[type[Contender]]) -> Iterator[tuple[int, type[Contender]]]:
        """Each contender in each round, every round in another order, the same in each run."""
        for number in range(1, self.rounds + 1):
            shuffled = list(contenders)
            random.Random(number).shuffle(shuffled)
            for contender in shuffled:
                yield number, contender

    def warm_up(self, world: World, contender: type[Contender], drains: int = 1) -> None:
        """Drains that do not count: the broker's Java compiles what this load needs."""
        self.say(f"warming up with {contender.name}")
        for _ in range(drains):
            measure.drain(world, contender())

    def drains(
        self, world: World, case: str, contenders: Sequence[type[Contender]], per: int | None = None
    ) -> Iterator[dict[str, Any]]:
        """Let each contender drain the world's backlog in each round; figures per event, or per one
        of so many things."""
        for number, contender in self.in_turn(contenders):
            run = measure.drain(world, contender(), per)
            yield self.row(case, contender, number, run)

    def row(self, case: str, contender: type[Contender], number: int, run: dict[str, Any]) -> dict[str, Any]:
        """A row of the result, which is also told on the screen."""
        row = {"case": case, "contender": contender.name, "round": number, **run}
        figures = run["figures"]
        told = "  ".join(f"{name} {figures[name]:,.1f}" for name in figures)
        wrong = {name: n for name, n in run.get("check", {}).items() if n and name != "committed"}
        self.say(f"round {number} {case:<24} {contender.name:<15} {told}  {wrong or ''}")
        return row
