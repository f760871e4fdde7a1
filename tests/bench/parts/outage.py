"""Kafka is away while a backlog builds up behind it, and comes back."""

from __future__ import annotations

import time
from typing import Any, Iterator

from bench import measure
from bench.bench import Bench
from bench.contenders import Walrelay
from bench.world import Load, World
from kit import process

PAYLOAD = 1_000
ROUNDS = 1


def run(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.rounds = ROUNDS
    rows = int(bench.gigabytes * 1e9) // (PAYLOAD + 400) // 100 * 100
    load = Load(rows=rows, payload=PAYLOAD)
    bench.parameters(load, gigabytes=bench.gigabytes)
    with bench.servers() as servers, World(servers, load) as world:
        name = world.next_run()
        world.copy_slot(name, "wal2json")
        contender = Walrelay()
        contender.prepare(world, name, f"{name}.")
        with measure.Goal(world, contender, name, f"{name}.") as goal:
            contender.start()
            try:
                goal.wait_begin()
                figures = outage(bench, goal)
            finally:
                contender.stop()
        check = measure.judge(world, contender, f"{name}.")
        yield bench.row("broker down", Walrelay, 1, {"figures": figures, "check": check})


def outage(bench: Bench, goal: measure.Goal) -> measure.Figures:
    world, contender = goal.world, goal.contender
    pid = contender.pids()[0]
    world.kafka.kill()
    bench.fill(world)
    kept = world.kept_bytes(goal.slot)
    down = process.rss_kb(pid)
    bench.say(f"the slot keeps {kept / 1e9:.1f} GB; starting Kafka")
    world.kafka.start()
    meter = measure.Meter(world, contender, goal.slot)
    meter.begin()
    began = time.monotonic()
    goal.wait(meter)
    seconds = time.monotonic() - began
    rows = world.load.rows
    return {
        "seconds": seconds,
        "rows_per_s": rows / seconds,
        "kept_gb": kept / 1e9,
        "rss_while_down_mb": down / 1024,
        **meter.figures(rows),
    }
