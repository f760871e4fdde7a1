"""./dev chaos report FILE: the tables of docs/reliability.md, from a campaign's result file.

They go between the two marks in that page; all other words there are written by hand. With --check it
writes nothing and fails when the page is not the one that it would write.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any, Iterable, Mapping, Sequence

from chaos.verdict import MUST_BE_ZERO
from kit.relay import ROOT

PAGE = ROOT / "docs" / "reliability.md"
RESULTS = ROOT / "docs" / "reliability.jsonl"
BEGIN, END = "<!-- chaos:begin -->", "<!-- chaos:end -->"
HEADER = ("fault", "rounds", "times", "kills", "lost", "out of order", "duplicates", "back after, s", "at most, s")
LETTERS = ("dead_letters", "discarded")
Outcome = Mapping[str, Any]


def read(path: Path) -> list[Outcome]:
    """The rounds of a campaign."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def sizes(rounds: Iterable[Outcome], name: str) -> int:
    """How much of it there was; rounds of before it was looked for count as none."""
    return sum(len(entry.get(name, ())) for entry in rounds)


def number(rounds: Iterable[Outcome], name: str) -> int:
    return sum(entry.get(name, 0) for entry in rounds)


def fault_row(kind: str, rounds: Sequence[Outcome]) -> list[str]:
    """One kind of fault: what happened in the rounds in which it struck, and what came with itself."""
    struck = [entry for entry in rounds if any(fault["kind"] == kind for fault in entry["faults"])]
    faults = [fault for entry in struck for fault in entry["faults"] if fault["kind"] == kind]
    back = [fault["recovery_ms"] / 1000 for fault in faults]
    return [
        kind, str(len(struck)), str(len(faults)), str(sum(fault["kills"] for fault in faults)),
        str(sizes(struck, "lost")), str(sizes(struck, "disordered")),
        f"{sum(fault['duplicates'] for fault in faults):,}",
        f"{statistics.median(back):.1f}", f"{max(back):.1f}",
    ]  # fmt: skip


def tables(rounds: Sequence[Outcome]) -> str:
    """What stands between the marks."""
    kinds = sorted({fault["kind"] for entry in rounds for fault in entry["faults"]})
    rows = [fault_row(kind, rounds) for kind in kinds]
    return "\n".join([totals(rounds), "", *markdown(HEADER, rows)])


def spans(numbers: Iterable[int]) -> str:
    """1 to 3, 7: what stands side by side is said in one."""
    found: list[list[int]] = []
    for number in sorted(set(numbers)):
        if found and number == found[-1][-1] + 1:
            found[-1] = [found[-1][0], number]
        else:
            found.append([number])
    return ", ".join(" to ".join(map(str, span)) for span in found)


def totals(rounds: Sequence[Outcome]) -> str:
    faults = [fault for entry in rounds for fault in entry["faults"]]
    seeds = [entry["seed"] for entry in rounds]
    lines = [
        ("rounds", f"{len(rounds):,} (seeds {spans(seeds)})"),
        ("faults", f"{len(faults):,}"),
        ("processes killed", f"{sum(fault['kills'] for fault in faults):,}"),
        ("events committed", f"{sum(entry['committed'] for entry in rounds):,}"),
        ("duplicates", f"{sum(entry['duplicates'] for entry in rounds):,}"),
        ("left behind by a failover that lost the slot", f"{sum(entry['left_behind'] for entry in rounds):,}"),
        ("came from there after newer ones", f"{sum(entry['late'] for entry in rounds):,}"),
        ("dead letters, of which discarded", " / ".join(f"{number(rounds, name):,}" for name in LETTERS)),
        ("looks at the slot", f"{sum(entry['looks'] for entry in rounds):,}"),
        ("most memory of a relay", f"{max(entry['peak_mb'] for entry in rounds)} MB"),
        *((WORDS[name], f"{sizes(rounds, name):,}") for name in MUST_BE_ZERO),
    ]
    return "\n".join(markdown(("", ""), lines))


WORDS = {
    "lost": "lost",
    "unexpected": "published and never committed",
    "differing": "copies that are not alike",
    "disordered": "out of order",
    "early": "confirmed before Kafka, or the dead letters, had it",
    "unexplained": "duplicates without a reason",
    "undeserved": "dead letters without a reason",
    "wrong_ends": "ends of a relay that nobody caused",
    "left_over": "descriptors or threads left over",
    "too_large": "rounds with a relay above its memory",
}


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table, the first column to the left, the others to the right."""
    marks = ["---", *["--:"] * (len(header) - 1)]
    return ["| " + " | ".join(row) + " |" for row in [header, marks, *rows]]


def placed(page: str, text: str) -> str:
    """The page with `text` between its marks."""
    before, rest = page.split(BEGIN, 1)
    _, after = rest.split(END, 1)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev chaos report")
    parser.add_argument("file", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--check", action="store_true", help="write nothing, fail when the page is another")
    wanted = parser.parse_args()
    page = PAGE.read_text()
    new = placed(page, tables(read(wanted.file)))
    if wanted.check:
        return int(new != page)
    PAGE.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
