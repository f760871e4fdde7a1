"""./dev bench: docs/benchmarks.md says what is measured and how.

./dev bench                 all parts
./dev bench NAME...         these parts
./dev bench --quick         limit, floor and walrelay only, in three minutes
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import sys
import time
from pathlib import Path
from typing import Any

from bench import quick, result
from bench.bench import Bench
from kit import process

ROWS = 500_000
PARTS = ("drain", "latency", "growth", "memory", "outage")


def measure_part(name: str, options: argparse.Namespace) -> None:
    bench = Bench(options.rounds, options.rows or ROWS, options.gigabytes)
    sha, dirty = result.commit()
    began = time.monotonic()
    report: dict[str, Any] = {
        "part": name,
        "commit": sha,
        "dirty": dirty,
        "began": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
        "rounds": options.rounds,
    }
    bench.say(f"part {name}, {options.rounds} rounds")
    part = importlib.import_module(f"bench.parts.{name}")
    report["runs"] = list(part.run(bench))
    report["parameters"] = bench.chosen
    report["seconds"] = round(time.monotonic() - began, 1)
    report["machine"] = result.machine()
    bench.say(f"written: {result.write(options.output, name, report)}")


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench")
    parser.add_argument("parts", nargs="*", metavar="NAME", help=f"of {', '.join(PARTS)}; default: all")
    parser.add_argument("--quick", action="store_true", help="limit, floor and walrelay, in three minutes")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, help="events of the drain")
    parser.add_argument("--gigabytes", type=float, default=2, help="WAL that piles up while Kafka is down")
    parser.add_argument("--output", type=Path, default=result.DIRECTORY, help="directory of the JSON")
    options = parser.parse_args()
    process.raise_on_termination()
    process.forget_libpq_environment()
    if options.quick:
        return quick.quick(options.rows or quick.ROWS)
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    for name in options.parts or PARTS:
        measure_part(name, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
