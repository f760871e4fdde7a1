"""Figures out of runs: over the rounds of a case, and compared within each round.

A run that lost an event, or reordered a key although its contender promises order, has no time: a
contender that was wrong in any round has no figure in that case. Comparisons are made round by round: the
noise that slows a minute slows both sides of them.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any, Iterable, Mapping, NamedTuple

from bench.result import Run, is_right

Part = Mapping[str, Any]


class Place(NamedTuple):
    """Where a figure stands."""

    case: str
    contender: str
    figure: str


class Spread(NamedTuple):
    """A figure over its rounds."""

    median: float
    least: float
    most: float


class NoFigure(LookupError):
    """There is no such figure; `why` says it without the contender's name. `absent`: nobody measured it."""

    def __init__(self, contender: str, why: str, absent: bool = True) -> None:
        super().__init__(f"{contender}: {why}")
        self.why = why
        self.absent = absent


def by_round(runs: Iterable[Run], place: Place) -> dict[int, float]:
    """The figure in each round, the middle of it where a round has several; NoFigure."""
    mine = [run for run in runs if (run["case"], run["contender"]) == (place.case, place.contender)]
    wrong = {run["round"] for run in mine if not is_right(run)}
    if wrong:
        why = f"wrong in {len(wrong)} of {count_rounds(mine)} rounds"
        raise NoFigure(place.contender, why, absent=False)
    values: dict[int, list[float]] = {}
    for run in mine:
        if run["figures"].get(place.figure) is not None:
            values.setdefault(run["round"], []).append(run["figures"][place.figure])
    if not values:
        raise NoFigure(place.contender, "not measured")
    return {number: statistics.median(found) for number, found in values.items()}


def count_rounds(runs: Iterable[Run]) -> int:
    return len({run["round"] for run in runs})


def medians(runs: Iterable[Run], case: str, contender: str, figure: str) -> Spread:
    """The median of a figure over the rounds, its minimum and its maximum; NoFigure."""
    return spread(by_round(runs, Place(case, contender, figure)).values())


def ratio(runs: Iterable[Run], over: Place, under: Place) -> Spread:
    """`over` divided by `under` in each round, and then the median of that; NoFigure."""
    runs = list(runs)
    above, below = by_round(runs, over), by_round(runs, under)
    found = [above[number] / below[number] for number in above if below.get(number)]
    if not found:
        raise NoFigure(over.contender, f"no round in common with {under.contender}")
    return spread(found)


def spread(values: Iterable[float]) -> Spread:
    values = list(values)
    return Spread(statistics.median(values), min(values), max(values))


# --------------------------------------------------------------------------------------- parts


class Results:
    """Parts by the section of the report that shows them; those without one of their own concern growth."""

    SECTIONS = ("drain", "latency", "growth", "memory", "outage")

    def __init__(self, parts: list[Part]) -> None:
        self.parts = parts

    def parts_of(self, section: str) -> list[Part]:
        """Those that have runs."""
        return [part for part in self.parts if part["runs"] and self._section(part) == section]

    def runs_of(self, section: str) -> list[Run]:
        return [run for part in self.parts_of(section) for run in part["runs"]]

    def runs(self) -> dict[str, list[Run]]:
        return {section: self.runs_of(section) for section in self.SECTIONS}

    def _section(self, part: Part) -> str:
        return part["part"] if part["part"] in self.SECTIONS else "growth"


def read_all(directory: Path) -> Results:
    """The parts that were measured; ValueError, with the name of the file, when one cannot be read."""
    return Results([_read(path) for path in sorted(directory.glob("*.json"))])


def _read(path: Path) -> Part:
    try:
        found: Part = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    fields = ("part", "commit", "dirty", "began", "seconds", "machine", "parameters", "runs")
    missing = [name for name in fields if name not in found]
    if missing:
        raise ValueError(f"{path}: no {', '.join(missing)}")
    return found
