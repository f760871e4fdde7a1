"""A backlog of small events: who empties it how fast, and what does it cost?"""

from __future__ import annotations

from typing import Any, Iterator

from bench.bench import Bench
from bench.contenders import Walrelay, all_contenders
from bench.world import Load, World


def run(bench: Bench) -> Iterator[dict[str, Any]]:
    load = Load(rows=bench.rows)
    bench.parameters(load)
    with bench.servers() as servers, World(servers, load) as world:
        bench.fill(world)
        bench.warm_up(world, Walrelay)
        yield from bench.drains(world, "", list(all_contenders().values()))
