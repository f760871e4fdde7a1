"""How cost grows with what there is more of: one case for each value, walrelay beside the limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Iterator

from bench.bench import Bench
from bench.contenders import Limit, Walrelay
from bench.world import Load, Servers, World

ROUNDS = 3
BYTES = 200_000_000  # of payloads at most in one case
WARM_UPS = {"topics": 6}  # a broker does more per topic than per event, and Java compiles what is done often
POISON = {"no dead letters": 0, "dead letters 1 of 100": 100}

AXES: dict[str, tuple[int, ...]] = {
    "partitions": (1, 6, 50),
    "payload": (100, 1_000, 10_000, 100_000, 900_000),
    "topics": (1, 10, 100, 1_000),
    "keys": (10, 1_000, 1_000_000),
    "tables": (1, 10, 50),
    "each": (1, 10, 100, 1_000),
}
NAMES = {"each": "rows per transaction"}


def cases(rows: int) -> Iterator[tuple[str, Load, int]]:
    """Name, load and warm-ups; the same events but for one thing, and fewer when they are large."""
    plain = Load(rows=rows // 2)
    for axis, values in AXES.items():
        for value in values:
            load = replace(plain, **{axis: value})
            if axis == "topics":  # of one partition each, so that only one thing grows; each gets a thousand
                load = replace(load, partitions=1, rows=max(rows, 1000 * max(values)))
            if axis == "keys":  # each occurs
                load = replace(load, rows=max(rows, max(values)))
            fewer = max(min(load.rows, BYTES // load.payload) // load.each, 1) * load.each
            yield f"{NAMES.get(axis, axis)} {value}", replace(load, rows=fewer), WARM_UPS.get(axis, 1)


def run(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.rounds = min(bench.rounds, ROUNDS)
    rows = bench.rows
    bench.parameters(Load(rows=rows), most_payload_bytes=BYTES)
    with bench.servers() as servers:
        for name, load, warm_ups in cases(rows):
            with World(servers, load) as world:
                bench.fill(world)
                bench.warm_up(world, Walrelay, warm_ups)
                yield from bench.drains(world, name, (Limit, Walrelay))
        for name, poison in POISON.items():
            yield from with_poison(bench, servers, name, Load(rows=rows // 2, compacted=True, poison=poison))


def with_poison(bench: Bench, servers: Servers, name: str, load: Load) -> Iterator[dict[str, Any]]:
    """Events that Kafka does not take among others: figures are per event that it takes."""
    with World(servers, load) as world:
        bench.fill(world)
        bench.warm_up(world, Walrelay)
        yield from bench.drains(world, name, (Walrelay,), per=load.rows - load.refused)
