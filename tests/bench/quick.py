"""./dev bench --quick: limit, floor and walrelay, and a last line of ratios for machines."""

from __future__ import annotations

import statistics
from typing import Any

from bench.bench import Bench
from bench.contenders import Floor0, Floor50, Limit, Walrelay
from bench.result import is_right
from bench.stopwatch import latency
from bench.world import Load, World

ROUNDS = 3
RATE = 1000
SECONDS = 8


def quick(rows: int) -> int:
    """0, or 1 when something was lost or out of order."""
    bench = Bench(ROUNDS, rows)
    runs: list[dict[str, Any]] = []
    with bench.servers(fsync=True) as servers:
        load = Load(rows=rows)
        with World(servers, load) as world:
            bench.fill(world)
            runs += bench.drains(world, "drain", (Limit, Floor50, Walrelay))
        with World(servers, Load(rows=0)) as world:
            for number, contender in bench.in_turn((Floor0, Walrelay)):
                run = latency(world, contender(), RATE, 1, SECONDS)
                runs.append(bench.row("latency", contender, number, run))
    if not all(map(is_right, runs)):
        print("not everything arrived, or not in order: these times mean nothing")
        return 1
    drain, cpu = ratio(runs, "drain", Limit, "seconds"), 1 / ratio(runs, "drain", Floor50, "cpu_us")
    memory = max(values(runs, "drain", Walrelay.name, "peak_rss_mb"))
    p50, p99 = (1 / ratio(runs, "latency", Floor0, figure) for figure in ("p50_ms", "p99_ms"))
    print(
        f"drain_ratio={drain:.2f} cpu_ratio={cpu:.2f} rss_mb={memory:.0f}"
        f" p50_ratio={p50:.2f} p99_ratio={p99:.2f}"
    )
    return 0


def values(runs: list[dict[str, Any]], case: str, contender: str, figure: str) -> list[float]:
    """The figure in each round."""
    return [
        run["figures"][figure] for run in runs if run["case"] == case and run["contender"] == contender
    ]


def ratio(runs: list[dict[str, Any]], case: str, other: Any, figure: str) -> float:
    """The other's figure by walrelay's, both medians."""
    ours, theirs = (
        statistics.median(values(runs, case, name, figure)) for name in (Walrelay.name, other.name)
    )
    return theirs / ours
