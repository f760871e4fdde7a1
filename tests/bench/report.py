"""./dev bench report: docs/benchmarks.md, its plots and the README's table, all from docs/benchmarks/*.json.

The words are in benchmarks.md.in, every number comes from the JSON. With --check it writes nothing and
fails when a page is not the one that it would write.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
from pathlib import Path
from string import Template
from typing import Any, Callable, Iterable, Mapping, Sequence

from bench.claims import CLAIMS, Claim
from bench.figures import NoFigure, Part, Results, Spread, count_rounds, medians, read_all
from bench.plots import AXES, PACED, SUMMARY, SUMMARY_CASE, in_order, look, plots
from bench.result import Run
from kit.relay import ROOT

TEMPLATE = Path(__file__).with_name("benchmarks.md.in")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"
MISSING = "*Not measured.*"

# Figures in the order in which tables show them; others follow under their own names.
FIGURES = {
    "seconds": "seconds",
    "rows_per_s": "rows/s",
    "p50_ms": "p50 ms",
    "p90_ms": "p90 ms",
    "p99_ms": "p99 ms",
    "p999_ms": "p99.9 ms",
    "max_ms": "max ms",
    "cpu_us": "CPU µs per event",
    "walsender_cpu_us": "walsender CPU µs",
    "broker_cpu_us": "broker CPU µs",
    "requests_per_s": "produce requests/s",
    "peak_rss_mb": "peak memory MB",
    "rss_mb": "memory MB",
    "rss_while_down_mb": "memory while down MB",
    "kept_gb": "WAL kept GB",
    "confirmed_seconds": "seconds until confirmed",
}
FAULTS = {
    "lost": "lost",
    "unexpected": "unexpected",
    "differing": "differing",
    "disordered": "out of order",
    "duplicates": "repeated",
}
NAMES = {"memory_mb": "memory MB", "each": "rows per transaction", "payload": "bytes of payload"}
# Columns of the README's table: where their figures are, and units.
README = {
    "rows/s": ("drain", "", "rows_per_s", ""),
    "CPU per event": ("drain", "", "cpu_us", " µs"),
    "peak memory": ("drain", "", "peak_rss_mb", " MB"),
    "p50": ("latency", SUMMARY_CASE, "p50_ms", " ms"),
    "p99": ("latency", SUMMARY_CASE, "p99_ms", " ms"),
}


# --------------------------------------------------------------------------------------- words


def number(value: float) -> str:
    """Three digits that count: 0.850, 17.3, 156,000."""
    rounded = float(f"{value:.3g}")
    digits = 2 - math.floor(math.log10(abs(rounded))) if rounded else 0
    return f"{rounded:,.{max(digits, 0)}f}"


def ranged(found: Spread, show: Callable[[float], str] = number) -> str:
    """The median, and in parentheses minimum and maximum."""
    low, high = show(found.least), show(found.most)
    return show(found.median) if low == high else f"{show(found.median)} ({low}–{high})"


def plain(value: Any) -> str:
    return f"{value:,}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


def words(name: str) -> str:
    """The name of a fact or of a parameter as a reader says it."""
    return NAMES.get(name, name.replace("_", " "))


def contender_text(contender: str) -> str:
    return "**walrelay**" if contender == "walrelay" else look(contender).label


def case_text(case: str) -> str:
    """A case in words: "1000/s x100" is 1,000/s, 100 rows per transaction."""
    pace = PACED.fullmatch(case)
    if pace:
        rows = "one row" if pace[2] == "1" else f"{int(pace[2]):,} rows"
        return f"{int(pace[1]):,}/s, {rows} per transaction"
    return re.sub(r"\d+", lambda match: f"{int(match[0]):,}", case)


def natural(text: str) -> list[Any]:
    """A key that sorts numbers inside of texts as numbers."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table, the first column to the left, the others to the right."""
    marks = ["---"] + ["--:"] * (len(header) - 1)
    cells = ([cell.replace("|", "\\|") for cell in row] for row in [header, marks, *rows])
    return "\n".join("| " + " | ".join(row) + " |" for row in cells)


# -------------------------------------------------------------------------------------- tables


def cell(runs: list[Run], case: str, contender: str, figure: str) -> str:
    try:
        return ranged(medians(runs, case, contender, figure))
    except NoFigure as reason:
        return "–" if reason.absent else reason.why


def run_table(runs: list[Run], with_case: bool) -> str:
    """Every case, contender and figure of these runs, and the faults that the checker found."""
    figures = in_table_order({figure for run in runs for figure in run["figures"]})
    faults = [fault for fault in FAULTS if any(run.get("check", {}).get(fault) for run in runs)]
    header = ["case"] * with_case + [""] + [FIGURES.get(figure, words(figure)) for figure in figures]
    rows = []
    for case in sorted({run["case"] for run in runs}, key=natural):
        for contender in in_order(run["contender"] for run in runs if run["case"] == case):
            row = [case_text(case)] * with_case + [contender_text(contender)]
            row += [cell(runs, case, contender, figure) for figure in figures]
            row += [fault_cell(runs, case, contender, fault) for fault in faults]
            rows.append(row)
    return markdown(header + [FAULTS[fault] for fault in faults], rows)


def run_tables(runs: list[Run]) -> list[str]:
    """A table for everything that grows and one for each other case; headings when there are several."""
    groups: dict[str, list[Run]] = {axis: [] for axis in AXES}
    for run in sorted(runs, key=lambda run: natural(run["case"])):
        axis = re.sub(r" \d+$", "", run["case"])
        groups.setdefault(axis if axis in AXES else run["case"], []).append(run)
    groups = {name: found for name, found in groups.items() if found}
    tables = []
    for name, found in groups.items():
        cases = {run["case"] for run in found}
        title = case_text(name if len(cases) > 1 else min(cases))
        heading = f"### {title[:1].upper()}{title[1:]}\n\n" if len(groups) > 1 else ""
        tables.append(heading + run_table(found, with_case=len(cases) > 1))
    return tables


def in_table_order(figures: set[str]) -> list[str]:
    return [one for one in FIGURES if one in figures] + sorted(figures - set(FIGURES))


def fault_cell(runs: Iterable[Run], case: str, contender: str, fault: str) -> str:
    """How often in all rounds; a dash for who publishes nothing."""
    mine = [run for run in runs if (run["case"], run["contender"]) == (case, contender)]
    checks = [run["check"] for run in mine if run.get("check")]
    return plain(sum(check.get(fault, 0) for check in checks)) if checks else "–"


def claim_table(results: Results) -> str:
    rows = [[claim.text, claim.bound_text, *verdict(results, claim)] for claim in CLAIMS]
    return markdown(["figure", "at least", "measured", ""], rows)


def verdict(results: Results, claim: Claim) -> tuple[str, str]:
    """What was measured, and whether that is enough."""
    try:
        found = claim.measure(results)
    except NoFigure as reason:
        return ("not measured" if reason.absent else str(reason)), ""
    measured = ranged(found, lambda value: claim.show(value, number))
    return measured + claim.suffix, "holds" if claim.holds(found) else "**missed**"


def machine_table(parts: Sequence[Part]) -> str:
    """The facts about the machine; where the parts differ, which says what."""
    names = dict.fromkeys(name for part in parts for name in part["machine"])
    rows = [[words(name), each(parts, lambda part: part["machine"].get(name, "–"))] for name in names]
    return markdown(["", ""], rows) if rows else MISSING


def each(parts: Iterable[Part], value: Callable[[Part], Any]) -> str:
    """The value that all parts have, or every value with its parts."""
    found: dict[str, list[str]] = {}
    for part in parts:
        found.setdefault(plain(value(part)), []).append(part["part"])
    if len(found) == 1:
        return next(iter(found))
    return "; ".join(f"{text} ({', '.join(names)})" for text, names in found.items())


# ------------------------------------------------------------------------------------ sections


def warnings(parts: Sequence[Part]) -> str:
    """What keeps these parts from being one result."""
    found = []
    if len({part["commit"] for part in parts}) > 1:
        commits = each(parts, lambda part: f"`{part['commit'][:12]}`")
        found.append(f"The parts come from different commits, so this is not one result: {commits}.")
    if len({part["machine"].get("cpu") for part in parts}) > 1:
        found.append("The parts come from different machines: a figure of one says nothing beside another's.")
    dirty = [part["part"] for part in parts if part["dirty"]]
    if dirty:
        found.append(f"Measured with changes that no commit holds: {', '.join(dirty)}.")
    return "\n>\n".join(f"> **Warning.** {text}" for text in found)


def facts(part: Part) -> str:
    """Under which conditions a part was measured."""
    parameters = "".join(f", {words(name)} {plain(value)}" for name, value in part["parameters"].items())
    minutes = max(1, round(part["seconds"] / 60))
    return f"{rounds(part)}{parameters}; commit `{part['commit'][:12]}`, {part['began'][:10]}, {minutes} min."


def rounds(part: Part) -> str:
    """Those that were run; a long part may do fewer than it was asked for."""
    count = count_rounds(part["runs"])
    return f"{count} round{'s' * (count != 1)}"


def section(results: Results, name: str) -> str:
    """Conditions, plot and tables of a section."""
    parts, runs = results.parts_of(name), results.runs_of(name)
    if not runs:
        return MISSING
    drawn = plots({name: runs}).get(name)
    pieces = [facts(part) for part in parts]
    pieces += [f"![{drawn.title}](benchmarks/{name}.svg)"] if drawn else []
    return "\n\n".join(pieces + run_tables(runs))


def page(results: Results) -> str:
    """docs/benchmarks.md."""
    pieces = {name: section(results, name) for name in results.SECTIONS}
    pieces |= {
        "warnings": warnings(results.parts),
        "claims": claim_table(results),
        "machine": machine_table(results.parts),
    }
    text = Template(TEMPLATE.read_text(encoding="utf-8")).substitute(pieces)
    return re.sub(r"\n{3,}", "\n\n", text)


# -------------------------------------------------------------------------------------- README


def readme_block(results: Results) -> str:
    """The README's section: the one table and the one plot that matter; empty without a result."""
    runs = {name: results.runs_of(name) for name in ("drain", "latency")}
    known = {run["contender"] for found in runs.values() for run in found}
    contenders = [one for one in SUMMARY if one in known]
    if not contenders:
        return ""
    cells = ([readme_cell(runs, one, *where) for where in README.values()] for one in contenders)
    rows = [[contender_text(one), *row] for one, row in zip(contenders, cells)]
    drawn = plots(runs).get("summary")
    pieces = ["## How fast", readme_words(results), markdown(["", *README], rows)]
    pieces += [f"*Not measured: {name}.*" for name, found in runs.items() if not found]
    pieces += [f"![{drawn.title}](docs/benchmarks/summary.svg)"] if drawn else []
    return "\n\n".join(pieces)


def readme_words(results: Results) -> str:
    parts = [*results.parts_of("drain"), *results.parts_of("latency")]
    machine = parts[0]["machine"]
    medians_of = " and ".join(dict.fromkeys(rounds(part) for part in parts))
    return (
        "A backlog to drain, then latency from just before COMMIT to the consumer at 1,000 events/s.\n"
        "PostgreSQL, Kafka and the relay share one machine"
        f" ({machine.get('cpu')}, {plain(machine.get('cores'))} cores).\n"
        f"Medians of {medians_of}; `./dev bench` measures yours;"
        " [method and all results](docs/benchmarks.md)."
    )


def readme_cell(
    runs: Mapping[str, list[Run]], contender: str, section: str, case: str, figure: str, unit: str
) -> str:
    try:
        return number(medians(runs[section], case, contender, figure).median) + unit
    except NoFigure as reason:
        return "–" if reason.absent else "wrong"


def between_marks(text: str, block: str) -> str:
    """The README with another block between its marks; ValueError when it has none."""
    head, begin, rest = text.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"README.md has no {BEGIN} followed by {END}")
    return f"{head}{BEGIN}\n" + (f"{block}\n" if block else "") + f"{END}{tail}"


# ---------------------------------------------------------------------------------------- files


def pages(root: Path) -> dict[Path, str]:
    """The pages as they should be. Without a result there is no docs/benchmarks.md."""
    results = read_all(root / "docs" / "benchmarks")
    readme = root / "README.md"
    found = {readme: between_marks(readme.read_text(encoding="utf-8"), readme_block(results))}
    if results.parts:
        found[root / "docs" / "benchmarks.md"] = page(results)
    return found


def stale(root: Path) -> list[Path]:
    """The pages that are not what the JSON says."""
    return [
        path for path, text in pages(root).items()
        if not path.exists() or path.read_text(encoding="utf-8") != text
    ]  # fmt: skip


def write(root: Path) -> list[Path]:
    """Write pages and plots, remove plots of yesterday; return what was written."""
    directory = root / "docs" / "benchmarks"
    results = read_all(directory)
    drawn = {directory / f"{name}.svg": plot for name, plot in plots(results.runs()).items()}
    for path in set(directory.glob("*.svg")) - set(drawn):
        path.unlink()
    for path, plot in drawn.items():
        plot.draw(path)
    texts = pages(root)
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    return [*drawn, *texts]


def main() -> int:
    parser = argparse.ArgumentParser(prog="./dev bench report")
    parser.add_argument("--check", action="store_true", help="only say which pages are not up to date")
    check = parser.parse_args().check
    try:
        found = stale(ROOT) if check else write(ROOT)
    except (ValueError, RuntimeError) as error:
        print(f"bench: {error}", file=sys.stderr)
        return 1
    for path in found:
        print(f"{path.relative_to(ROOT)}{': not what ./dev bench report makes of the JSON' if check else ''}")
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
