"""./dev bench --quick: limit, floor and walrelay, and a last line of ratios for machines."""

from __future__ import annotations

from typing import Any

from bench.bench import Bench
from bench.contenders import Contender, Floor0, Floor50, Limit, Walrelay
from bench.figures import Place, by_round, ratio
from bench.result import is_right
from bench.stopwatch import latency, warm_up
from bench.world import Load, World

ROWS = 120_000
ROUNDS = 3
RATE = 1000
SECONDS = 6
WARM_UP = 30


def quick(rows: int = ROWS) -> int:
    """0, or 1 when something was lost or out of order."""
    bench = Bench(ROUNDS, rows)
    runs: list[dict[str, Any]] = []
    with bench.servers(fsync=True) as servers:
        load = Load(rows=rows)
        with World(servers, load) as world:
            bench.fill(world)
            runs += bench.drains(world, "drain", (Limit, Floor50, Walrelay))
        with World(servers, Load(rows=0)) as world:
            warm_up(world, WARM_UP)
            for number, contender in bench.in_turn((Floor0, Walrelay)):
                run = latency(world, contender(), RATE, 1, SECONDS)
                runs.append(bench.row("latency", contender, number, run))
    if not all(map(is_right, runs)):
        print("not everything arrived, or not in order: these times mean nothing")
        return 1
    drain = ratio(runs, figure("drain", Walrelay, "rows_per_s"), figure("drain", Limit, "rows_per_s"))
    cpu = ratio(runs, figure("drain", Walrelay, "cpu_us"), figure("drain", Floor50, "cpu_us"))
    memory = by_round(runs, figure("drain", Walrelay, "peak_rss_mb"))
    p50, p99 = (
        ratio(runs, figure("latency", Walrelay, name), figure("latency", Floor0, name))
        for name in ("p50_ms", "p99_ms")
    )
    print(
        f"drain_ratio={drain.median:.2f} cpu_ratio={cpu.median:.2f} rss_mb={max(memory.values()):.0f}"
        f" p50_ratio={p50.median:.2f} p99_ratio={p99.median:.2f}"
    )
    return 0


def figure(case: str, contender: type[Contender], name: str) -> Place:
    return Place(case, contender.name, name)
