"""The plots: from runs to gnuplot's scripts, and from those to SVG.

Equal results give equal files: the scripts hold nothing but the figures. The background is white on
purpose, so that a plot is readable on a dark page too.
"""

from __future__ import annotations

import html
import math
import re
import subprocess
from pathlib import Path
from typing import Any, Callable, Iterable, Mapping, NamedTuple, Sequence

from bench.figures import NoFigure, Spread, medians
from bench.result import Run


class Look(NamedTuple):
    """How a contender appears."""

    label: str
    colour: str


# In the order in which tables and plots show them.
CONTENDERS = {
    "limit": Look("limit (pg_recvlogical)", "#8c959f"),
    "floor-0": Look("floor, linger 0", "#6e7781"),
    "floor-50": Look("floor, linger 50", "#424a53"),
    "walrelay": Look("walrelay", "#0969da"),
    "kcat": Look("pg_recvlogical | kcat", "#8250df"),
    "debezium": Look("Debezium, defaults", "#ff8182"),
    "debezium-tuned": Look("Debezium, tuned", "#cf222e"),
    "poller-1": Look("poller, 1 worker", "#e0a800"),
    "poller-4": Look("poller, 4 workers", "#9a6700"),
}
PERCENTILES = {"p50_ms": "p50", "p90_ms": "p90", "p99_ms": "p99", "p999_ms": "p99.9", "max_ms": "max"}
CPU = {
    "cpu_us": Look("relay", "#0969da"),
    "walsender_cpu_us": Look("walsender", "#8c959f"),
    "broker_cpu_us": Look("broker", "#d4a72c"),
}
# What the cases of growth vary, and the unit of it.
AXES = {
    "payload": "bytes of payload",
    "rows per transaction": "rows per transaction",
    "topics": "topics",
    "keys": "keys",
    "tables": "outbox tables",
    "partitions": "partitions",
}
SUMMARY = ["limit", "walrelay", "debezium", "debezium-tuned", "poller-1", "poller-4"]
SUMMARY_CASE = "1000/s x1"
PACED = re.compile(r"(\d+)/s x(\d+)")

STYLE = """set encoding utf8
set border 0
set tics nomirror scale 0
set grid lt 1 lc rgb "#d8dee4" lw 0.8
set style fill solid noborder
set bars 0.5
unset key
set title offset 0,-0.3
"""
WHISKERS = 'lt 1 lc rgb "#57606a" lw 1.2'


class Plot(NamedTuple):
    """A plot: what it shows, for those who cannot see it too, and how gnuplot draws it."""

    title: str
    width: int
    height: int
    script: str

    def draw(self, path: Path) -> None:
        """Write it as SVG; RuntimeError with gnuplot's words when that fails."""
        text = (
            f"set terminal svg size {self.width},{self.height} noenhanced"
            f' font "Helvetica,Arial,sans-serif,12" background "#ffffff"\n{STYLE}{self.script}'
        )
        try:
            done = subprocess.run(["gnuplot"], input=text, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            raise RuntimeError("there is no gnuplot to draw with; Debian's package is gnuplot-nox") from None
        if done.returncode or "</svg>" not in done.stdout:
            raise RuntimeError(f"gnuplot could not draw {path.name}: {done.stderr.strip()}")
        svg = re.sub(r"<desc>.*?</desc>\n|<g [^>]*>\n</g>\n", "", done.stdout)
        svg = svg.replace("<title>Gnuplot<", f"<title>{html.escape(self.title)}<")
        path.write_text(svg, encoding="utf-8")


def look(contender: str) -> Look:
    """A contender that nobody knows appears under its own name."""
    return CONTENDERS.get(contender, Look(contender, "#57606a"))


def in_order(contenders: Iterable[str]) -> list[str]:
    """Each once: the known ones in their order, then the others by name."""
    known = list(CONTENDERS)
    return sorted(set(contenders), key=lambda one: (known.index(one) if one in known else len(known), one))


def find(runs: Iterable[Run], case: str, contender: str, figure: str) -> Spread | None:
    """The figure, or None where there is none to draw."""
    try:
        return medians(runs, case, contender, figure)
    except NoFigure:
        return None


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def block(name: str, rows: Iterable[Sequence[object]]) -> str:
    """Rows as inline data of gnuplot."""
    text: dict[type, Callable[[Any], str]] = {str: quoted, int: str, float: "{:.6g}".format}
    lines = (" ".join(text[type(cell)](cell) for cell in row) for row in rows)
    return "\n".join([f"{name} << END", *lines, "END\n"])


# -------------------------------------------------------------------------------------- panels


def cases_of(runs: Iterable[Run], axis: str) -> dict[int, str]:
    """The cases "AXIS NUMBER", by their number."""
    matches = {run["case"]: re.fullmatch(rf"{axis} (\d+)", run["case"]) for run in runs}
    return {int(match[1]): case for case, match in sorted(matches.items()) if match}


def paced(runs: Iterable[Run], rows: int) -> dict[int, str]:
    """The cases "RATE/s xROWS", by their rate."""
    matches = {run["case"]: PACED.fullmatch(run["case"]) for run in runs}
    return {int(m[1]): case for case, m in sorted(matches.items()) if m and int(m[2]) == rows}


def bars(name: str, title: str, labels: Sequence[str], rows: Sequence[Sequence[Any]], more: str = "") -> str:
    """Horizontal bars, the first at the top. Rows are y, start, end, colour, and what `more` needs: the
    numbers among it are on the same axis."""
    top = max(value for row in rows for value in (row[2], *row[4:]) if not isinstance(value, str))
    tics = ", ".join(f"{quoted(label)} {len(labels) - y}" for y, label in enumerate(labels))
    return f"""{block(name, rows)}set title {quoted(title)}
set ytics ({tics})
set yrange [0.4:{len(labels) + 0.6}]
set xrange [0:{1.12 * top or 1:g}]
set grid x noy
plot {name} using 3:1:2:3:($1-0.34):($1+0.34):4 with boxxyerror lc rgb variable{more}
"""


def throughput(runs: list[Run], contenders: Sequence[str]) -> str:
    """Rows/s in the drain, or why there are none."""
    rows = []
    for y, contender in enumerate(contenders):
        try:
            middle, low, high = (value / 1000 for value in medians(runs, "", contender, "rows_per_s"))
            label = f"{middle:.{0 if middle >= 10 else 1}f}"
        except NoFigure as reason:
            middle, low, high, label = 0, 0, 0, reason.why
        rows.append([len(contenders) - y, 0, middle, shade(look(contender)), low, high, label])
    more = f""", \\
  $throughput using 3:1:5:6 with xerrorbars pt -1 {WHISKERS}, \\
  $throughput using 6:1:7 with labels left offset 0.6,0"""
    labels = [look(one).label for one in contenders]
    return bars("$throughput", "drain, thousand rows/s", labels, rows, more)


def cost(runs: list[Run], contenders: Sequence[str]) -> str:
    """CPU per event in the drain: the relay's, the walsender's and the broker's, one after the other. The
    names stand beside throughput()."""
    rows = []
    for y, contender in enumerate(contenders):
        left = 0.0
        for figure, part in CPU.items():
            found = find(runs, "", contender, figure)
            if found:
                rows.append([len(contenders) - y, left, left + found.median, shade(part)])
                left += found.median
    return bars("$cost", "drain, µs of CPU per event", [""] * len(contenders), rows)


def percentiles(runs: list[Run], case: str, contenders: Sequence[str]) -> str:
    """Latency over its percentiles."""
    series = {one: [find(runs, case, one, figure) for figure in PERCENTILES] for one in contenders}
    tics = ", ".join(f'"{label}" {x}' for x, label in enumerate(PERCENTILES.values()))
    return f"""set logscale y
set xrange [-0.2:{len(PERCENTILES) - 0.8}]
set xtics ({tics})
set ytics auto
set yrange [*:*]
set grid x y
{lines({one: list(enumerate(found)) for one, found in series.items()})}"""


def over(runs: list[Run], cases: Mapping[int, str], figure: str, contenders: Sequence[str]) -> str:
    """A figure over what the cases vary, on a logarithmic axis."""
    series = {one: [(x, find(runs, cases[x], one, figure)) for x in sorted(cases)] for one in contenders}
    tics = ", ".join(f'"{brief(x)}" {x}' for x in sorted(cases))
    return f"""set logscale x
set xrange [{min(cases) / 1.5:g}:{max(cases) * 1.5:g}]
set xtics ({tics})
{lines(series)}"""


def lines(series: Mapping[str, Sequence[tuple[float, Spread | None]]]) -> str:
    """A line with whiskers for each contender, through the points that it has."""
    data, plots = "", []
    for number, (contender, points) in enumerate(series.items()):
        rows = [[x, *found] for x, found in points if found and found.least > 0]
        if rows:
            width = 3 if contender == "walrelay" else 1.6
            data += block(f"$line{number}", rows)
            plots.append(
                f"$line{number} using 1:2:3:4 with yerrorlines"
                f' lt 1 pt 7 ps 0.4 lw {width} lc rgb "{look(contender).colour}"'
            )
    return f"{data}plot " + (", \\\n  ".join(plots) or "[][1:10] NaN") + "\n"


def legend(looks: Sequence[Look], width: int, height: int) -> str:
    """One line at the bottom of the picture: every name in its colour. It is drawn with the next panel."""
    size = [6.3 * len(one.label) + 32 for one in looks]
    x = (width - sum(size)) / 2
    commands = ""
    for one, room in zip(looks, size):
        place = f"at screen {x / width:.4f},{14 / height:.4f} left"
        commands += f'set label {quoted("● " + one.label)} {place} textcolor rgb "{one.colour}"\n'
        x += room
    return commands


def shade(of: Look) -> int:
    """A colour as the number that gnuplot wants in data."""
    return int(of.colour.removeprefix("#"), 16)


def brief(number: int) -> str:
    """1000000 as 1M, 10000 as 10k."""
    for size, letter in ((1_000_000, "M"), (1000, "k")):
        if number >= size and number % (size // 10) == 0:
            return f"{number / size:g}{letter}"
    return str(number)


# --------------------------------------------------------------------------------------- plots


def plots(sections: Mapping[str, list[Run]]) -> dict[str, Plot]:
    """The plots that these runs allow, by the names of their files."""
    drain, latency, growth = (sections.get(name, []) for name in ("drain", "latency", "growth"))
    found = {}
    if drain:
        found["drain"] = drain_plot(drain)
    if any(PACED.fullmatch(run["case"]) for run in latency):
        found["latency"] = latency_plot(latency)
    if any(cases_of(growth, axis) for axis in AXES):
        found["growth"] = growth_plot(growth)
    if drain and SUMMARY_CASE in {run["case"] for run in latency}:
        found["summary"] = summary_plot(drain, latency)
    return found


def picture(
    title: str, height: int, columns: int, panels: Sequence[str], looks: Sequence[Look], left: int = 50
) -> Plot:
    """Panels in columns, `left` pixels from the border, and a legend below them."""
    width, rows = 960, -(-len(panels) // columns)
    script = f"""set multiplot layout {rows},{columns} \\
  margins screen {left / width:.4f},{1 - 20 / width:.4f},{65 / height:.4f},{1 - 40 / height:.4f} \\
  spacing screen {60 / width:.4f},{70 / height:.4f}
{legend(looks, width, height)}"""
    return Plot(title, width, height, script + "unset label\n".join(panels) + "unset multiplot\n")


def drain_plot(runs: list[Run]) -> Plot:
    """Throughput, and what it costs."""
    contenders = in_order(run["contender"] for run in runs)
    height = 105 + 26 * len(contenders)
    panels, looks = [throughput(runs, contenders)], []
    if any(find(runs, "", contender, figure) for contender in contenders for figure in CPU):
        panels.append(cost(runs, contenders))
        looks = list(CPU.values())
    return picture("Throughput and CPU in the drain", height, 2, panels, looks, left=160)


def latency_plot(runs: list[Run]) -> Plot:
    """The median and the 99th percentile over the rate, with one row and with more to a transaction."""
    contenders = in_order(run["contender"] for run in runs)
    sizes = sorted({int(m[2]) for run in runs if (m := PACED.fullmatch(run["case"]))})
    panels = []
    for figure in ("p50_ms", "p99_ms"):
        for rows in sizes:
            each = "one row" if rows == 1 else f"{rows} rows"
            title = f"{PERCENTILES[figure]} in ms over events/s, {each} per transaction"
            panels.append(f"set title {quoted(title)}\n{over(runs, paced(runs, rows), figure, contenders)}")
    panels[0] = f"set logscale y\nset yrange [{decades(runs)}]\n" + panels[0]
    return picture("Latency over the rate", 600, len(sizes), panels, [look(one) for one in contenders])


def decades(runs: list[Run]) -> str:
    """A range for all panels that holds each p50 and p99, from a power of ten to another."""
    values = [run["figures"].get(figure) for run in runs for figure in ("p50_ms", "p99_ms")]
    exponents = [math.log10(value) for value in values if value]
    return f"1e{math.floor(min(exponents))}:1e{math.ceil(max(exponents))}" if exponents else "*:*"


def growth_plot(runs: list[Run]) -> Plot:
    """Throughput over everything that grows."""
    runs = [run for run in runs if any(cases_of([run], axis) for axis in AXES)]
    contenders = in_order(run["contender"] for run in runs)
    axes = [axis for axis in AXES if cases_of(runs, axis)]
    panels = [growth_panel(runs, axis, contenders) for axis in axes]
    height = 45 + 250 * -(-len(panels) // 3)
    return picture("Throughput over what grows", height, 3, panels, [look(one) for one in contenders])


def growth_panel(runs: list[Run], axis: str, contenders: Sequence[str]) -> str:
    """A payload divides the rows/s by thousands, all else should leave them where they are."""
    scale = "set logscale y\nset yrange [*:*]" if axis == "payload" else "unset logscale y\nset yrange [0:*]"
    return f"""set title "rows/s over {AXES[axis]}"
{scale}
set format y "%.0s%c"
{over(runs, cases_of(runs, axis), "rows_per_s", contenders)}"""


def summary_plot(drain: list[Run], latency: list[Run]) -> Plot:
    """The one plot that matters."""
    known = {run["contender"] for run in drain}
    contenders = [one for one in SUMMARY if one in known]
    right = f'set title "latency at 1,000 events/s, ms"\n{percentiles(latency, SUMMARY_CASE, SUMMARY)}'
    panels = [throughput(drain, contenders), right]
    looks = [look(one) for one in contenders]
    return picture("Throughput and latency", 120 + 26 * len(contenders), 2, panels, looks, left=160)
