"""What walrelay holds: at rest, and with a transaction that fits into no memory; and what it costs
to step over transactions that do not concern it."""

from __future__ import annotations

import time
from typing import Any, Iterator

from bench import measure
from bench.bench import Bench
from bench.contenders import Limit, Walrelay
from bench.world import Load, Servers, World
from kit import process

ROUNDS = 3
REST_SECONDS = 60
UNRELATED = 1_000_000


def run(bench: Bench) -> Iterator[dict[str, Any]]:
    bench.rounds = min(bench.rounds, ROUNDS)
    huge = 10 * bench.rows
    bench.parameters(Load(), rows_of_the_transaction=huge, unrelated=UNRELATED, rest_seconds=REST_SECONDS)
    with bench.servers() as servers:
        yield rest(bench, servers)
        yield from unrelated(bench, servers)
        with World(servers, Load(rows=huge, each=huge)) as world:
            bench.fill(world)
            yield from bench.drains(world, f"rows per transaction {huge}", (Limit, Walrelay))


def rest(bench: Bench, servers: Servers) -> dict[str, Any]:
    """One event, then nothing for a minute."""
    with World(servers, Load(rows=1, each=1)) as world:
        world.fill()
        contender = Walrelay()
        run = measure.drain(world, contender, afterwards=lambda: rested(contender.relay.pid))
    return bench.row("at rest", Walrelay, 1, run)


def rested(pid: int) -> measure.Figures:
    before = process.cpu_seconds(pid)
    time.sleep(REST_SECONDS)
    used = process.cpu_seconds(pid) - before
    return {"rss_mb": process.rss_kb(pid) / 1024, "cpu_ms_per_s": used / REST_SECONDS * 1000}


def unrelated(bench: Bench, servers: Servers) -> Iterator[dict[str, Any]]:
    """A million transactions of another table, and one event behind them."""
    with World(servers, Load(rows=1, each=1, unrelated=UNRELATED)) as world:
        bench.say(f"writing {UNRELATED:,} transactions")
        world.fill()
        yield from bench.drains(world, "unrelated transactions", (Limit, Walrelay), per=UNRELATED)
