"""./dev chaos: faults at random, and a judge who knows every event.

./dev chaos                      ten rounds
./dev chaos --rounds N           that many
./dev chaos --minutes N          as many as that
./dev chaos --seed S             the rounds that begin with that seed, once more
./dev chaos --resume FILE        append to this file, and begin where it ends
./dev chaos --only REGEX         only faults whose names match
"""

from __future__ import annotations

import argparse
import json
import logging
import random
import re
import sys
import time
from pathlib import Path
from typing import Any, Iterator

from chaos import verdict
from chaos.campaign import Campaign
from chaos.faults import KINDS
from chaos.servers import Servers
from kit import process


def options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="./dev chaos")
    parser.add_argument("--rounds", type=int, help="how many (10)")
    parser.add_argument("--minutes", type=float, help="begin no round later than that")
    parser.add_argument("--seed", type=int, help="of the first round; the next ones have the next numbers")
    parser.add_argument("--resume", type=Path, metavar="FILE", help="append the results to FILE")
    parser.add_argument("--only", metavar="REGEX", default="", help="only faults whose names match")
    return parser.parse_args()


def results(path: Path) -> list[dict[str, Any]]:
    """The rounds that a result file holds."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def numbers(wanted: argparse.Namespace, done: list[dict[str, Any]]) -> Iterator[tuple[int, int]]:
    """Number and seed of each round, for as long as is wanted."""
    number = done[-1]["round"] + 1 if done else 1
    following = done[-1]["seed"] + 1 if done else random.SystemRandom().randrange(1_000_000_000)
    seed = following if wanted.seed is None else wanted.seed
    rounds = wanted.rounds or (10 if wanted.minutes is None else sys.maxsize)
    end = time.monotonic() + (wanted.minutes or 1e9) * 60
    for more in range(rounds):
        if time.monotonic() > end:
            return
        yield number + more, seed + more


def main() -> int:
    wanted = options()
    process.raise_on_termination()
    process.forget_libpq_environment()
    logging.getLogger("psycopg").setLevel(logging.ERROR)  # that a writer's connection is gone is no news
    kinds = [kind for kind in KINDS if re.search(wanted.only, kind.name)]
    broken: list[str] = []
    done = results(wanted.resume) if wanted.resume else []
    with Servers() as servers:
        campaign = Campaign(servers, kinds, say)
        for number, seed in numbers(wanted, done):
            began = time.monotonic()
            outcome = campaign.round(number, seed)
            outcome["seconds"] = round(time.monotonic() - began, 1)
            wrong = verdict.summary(outcome)
            broken += [f"round {number}, seed {seed}: {text}" for text in wrong]
            tell(outcome, wrong)
            if wanted.resume:
                with wanted.resume.open("a") as out:
                    out.write(json.dumps(outcome) + "\n")
    for text in broken:  # once more: who reads the end of a long log sees it
        say(f"BROKEN: {text}")
    return 1 if broken else 0


def tell(outcome: dict[str, Any], wrong: list[str]) -> None:
    say(
        f"  {outcome['committed']} committed, {outcome['published']} published,"
        f" {outcome['duplicates']} duplicates, {outcome['dead_letters']} dead letters, {outcome['streams']} streams,"
        f" {outcome['positions']} positions, relays ended with {outcome['exits']}, {outcome['peak_mb']} MB,"
        f" {outcome['seconds']} s"
    )
    for text in wrong:
        say(f"  BROKEN: {text}")


def say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
