"""From just before COMMIT to the consumer: how long, at which rate, and what does it cost?"""

from __future__ import annotations

from typing import Any, Iterator

from bench.bench import Bench
from bench.contenders import Contender, all_contenders
from bench.stopwatch import WARMUP, latency, warm_up
from bench.world import Load, Servers, World

ROUNDS = 3
SECONDS = 10
REACHED = 0.95  # of the rate
RATES = (200, 1_000, 5_000, 20_000)
EACH = (1, 100)
CONTENDERS = ("floor-0", "walrelay", "debezium", "debezium-tuned", "poller-1")


def run(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.rounds = min(bench.rounds, ROUNDS)
    bench.parameters(
        Load(rows=0), seconds=SECONDS, warmup_seconds=WARMUP, rates=RATES, rows_per_transaction=EACH
    )
    known = all_contenders()
    contenders = [known[name] for name in CONTENDERS]
    with bench.servers(fsync=True) as servers:
        bench.say("warming up the broker")
        with World(servers, Load(rows=0)) as world:
            warm_up(world)
        for rate in RATES:
            for each in EACH:
                yield from at_rate(bench, servers, contenders, rate, each)


def at_rate(
    bench: Bench, servers: Servers, contenders: list[type[Contender]], rate: int, each: int
) -> Iterator[dict[str, Any]]:
    """All rounds of a case. A contender beside which the rate is not reached has one round, and no
    latency: that would be the length of a queue."""
    hopeless: set[str] = set()
    with World(servers, Load(rows=0, each=each)) as world:
        for number, contender in bench.in_turn(contenders):
            if contender.name in hopeless:
                continue
            run = latency(world, contender(), rate, each, SECONDS)
            achieved = run["figures"]["achieved_rate"]
            if achieved < REACHED * rate:
                run["figures"] = {"achieved_rate": achieved}
                hopeless.add(contender.name)
            yield bench.row(f"{rate}/s x{each}", contender, number, run)
