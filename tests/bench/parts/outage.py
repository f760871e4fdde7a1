"""Kafka is away while a backlog builds up behind it, and comes back."""

from __future__ import annotations

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
        with measure.running(world, contender, name) as goal:
            figures = outage(bench, goal)
        check = measure.judge(world, contender, f"{name}.")
        yield bench.row("broker down", Walrelay, 1, {"figures": figures, "check": check})


def outage(bench: Bench, goal: measure.Goal) -> measure.Figures:
    world = goal.world
    (pid,) = goal.contender.pids()
    world.kafka.kill()
    bench.fill(world)
    kept = world.kept_bytes(goal.slot)
    down = process.rss_kb(pid)
    bench.say(f"the slot keeps {kept / 1e9:.1f} GB; starting Kafka")
    world.kafka.start()
    figures = measure.race(goal, world.load.rows)
    return {**figures, "kept_gb": kept / 1e9, "rss_while_down_mb": down / 1024}
