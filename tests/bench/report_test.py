"""The arithmetic of the benchmark's report, on results that are made up."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from bench import report
from bench.claims import CLAIMS
from bench.figures import NoFigure, Place, Results, Spread, by_round, medians, ratio, read_all
from bench.plots import plots
from bench.result import Run



def run(contender: str, number: int, rate: float, case: str = "", **more: Any) -> Run:
    """A run that was right, unless `more` says otherwise."""
    check = {"committed": 9, "lost": 0, "unexpected": 0, "differing": 0, "disordered": 0, "duplicates": 3}
    figures = {"rows_per_s": rate, "p50_ms": rate, "p99_ms": 2 * rate}
    return {
        "case": case, "contender": contender, "round": number, "figures": figures,
        "check": {**check, **more.pop("check", {})}, **more,
    }  # fmt: skip


def rounds(contender: str, *rates: float, case: str = "") -> list[Run]:
    return [run(contender, number, rate, case) for number, rate in enumerate(rates, 1)]


def part(name: str, runs: list[Run], **more: Any) -> dict[str, Any]:
    return {
        "part": name, "commit": "c0ffee0000000001", "dirty": False, "began": "2026-01-02T03:04:05Z",
        "seconds": 90.0, "machine": {"cpu": "Abacus", "cores": 2}, "rounds": 3, "parameters": {"rows": 1200},
        "runs": runs, **more,
    }  # fmt: skip


def rate(runs: list[Run], contender: str, case: str = "") -> Spread:
    return medians(runs, case, contender, "rows_per_s")


def why_not(runs: list[Run], contender: str) -> str:
    with pytest.raises(NoFigure) as caught:
        rate(runs, contender)
    return caught.value.why


def over_limit(runs: list[Run]) -> Spread:
    return ratio(runs, Place("", "walrelay", "rows_per_s"), Place("", "limit", "rows_per_s"))


def row(text: str, beginning: str) -> list[str]:
    """The cells behind the first of the one row that begins so."""
    found = [line for line in text.splitlines() if line.startswith(f"| {beginning} |")]
    assert len(found) == 1, found
    return [cell.strip() for cell in found[0].split("|")[2:-1]]


# ------------------------------------------------------------------------------------- figures


def test_a_figure_is_the_median_with_minimum_and_maximum() -> None:
    runs = [*rounds("walrelay", 30, 10, 20), *rounds("limit", 99), *rounds("walrelay", 7, case="topics 1")]
    assert rate(runs, "walrelay") == (20, 10, 30)
    assert rate(runs, "walrelay", "topics 1") == (7, 7, 7)


def test_several_runs_in_a_round_count_as_one() -> None:
    runs = [run("limit", 1, 10), run("limit", 1, 20), run("limit", 2, 40)]
    assert by_round(runs, Place("", "limit", "rows_per_s")) == {1: 15, 2: 40}


def test_what_nobody_measured_has_no_figure() -> None:
    runs = rounds("limit", 1)
    assert why_not(runs, "walrelay") == "not measured"
    with pytest.raises(NoFigure) as caught:
        medians(runs, "", "limit", "cpu_us")
    assert caught.value.absent


@pytest.mark.parametrize("fault", ["lost", "unexpected", "differing", "disordered"])
def test_a_broken_promise_in_one_round_voids_the_times_of_all(fault: str) -> None:
    runs = [*rounds("walrelay", 10, 20), run("walrelay", 3, 30, check={fault: 1}), *rounds("limit", 9)]
    assert why_not(runs, "walrelay") == "wrong in 1 of 3 rounds"
    assert rate(runs, "limit").median == 9
    with pytest.raises(NoFigure, match="walrelay: wrong in 1 of 3 rounds"):
        over_limit(runs)


def test_disorder_is_no_fault_of_who_promises_no_order_but_a_loss_is() -> None:
    runs = [run("poller-4", 1, 10, check={"disordered": 5}, order_promised=False)]
    assert rate(runs, "poller-4").median == 10
    runs.append(run("poller-4", 2, 10, check={"lost": 1}, order_promised=False))
    assert why_not(runs, "poller-4") == "wrong in 1 of 2 rounds"


def test_a_ratio_is_formed_in_each_round() -> None:
    # The ratio of the medians would be 20 / 20.
    assert over_limit([*rounds("walrelay", 10, 20, 90), *rounds("limit", 5, 20, 30)]) == (2, 1, 3)


def test_a_ratio_leaves_out_the_rounds_that_one_side_lacks() -> None:
    assert over_limit([*rounds("walrelay", 10, 20), *rounds("limit", 5, 40, 1)]) == (1.25, 0.5, 2)
    with pytest.raises(NoFigure, match="no round in common"):
        over_limit([run("walrelay", 1, 10), run("limit", 2, 5)])


# -------------------------------------------------------------------------------------- claims


def drain_verdict(walrelay: float, limit: float) -> list[str]:
    runs = [*rounds("walrelay", walrelay), *rounds("limit", limit)]
    return row(report.claim_table(Results([part("drain", runs)])), CLAIMS[0].text)


def test_a_claim_holds_at_its_bound_and_not_below_it() -> None:
    assert drain_verdict(95, 100) == ["≥ 0.95", "0.950", "holds"]
    assert drain_verdict(94, 100) == ["≥ 0.95", "0.940", "**missed**"]


def test_a_small_part_is_told_as_a_fraction() -> None:
    runs = [*rounds("walrelay", 2, 2, case="1000/s x1"), *rounds("debezium-tuned", 16, 25, case="1000/s x1")]
    table = report.claim_table(Results([part("latency", runs)]))
    told = "1/9.76 (1/12.5–1/8.00)"
    assert row(table, "latency at 1,000/s: p50 ÷ tuned Debezium's") == ["≤ 1/5", told, "holds"]
    assert row(table, "latency at 1,000/s: p99 ÷ tuned Debezium's") == ["≤ 1/10", told, "**missed**"]


def test_a_claim_without_runs_is_not_measured_and_one_of_a_wrong_run_says_whose() -> None:
    runs = [*rounds("walrelay", 9), run("limit", 1, 9), run("debezium-tuned", 1, 9, check={"lost": 2})]
    table = report.claim_table(Results([part("drain", runs)]))
    told = "debezium-tuned: wrong in 1 of 1 rounds"
    assert row(table, "drain: rows/s ÷ tuned Debezium's")[1:] == [told, ""]
    assert row(table, "memory: at rest")[1:] == ["not measured", ""]


def test_growth_is_held_against_its_own_beginning_in_the_same_round() -> None:
    runs = [*rounds("walrelay", 90, 40, case="topics 1000"), *rounds("walrelay", 100, 50, case="topics 1")]
    table = report.claim_table(Results([part("growth", runs)]))
    assert row(table, "rows/s with 1,000 topics ÷ with 1") == ["≥ 0.85", "0.850 (0.800–0.900)", "holds"]


# ---------------------------------------------------------------------------------------- page


@pytest.mark.parametrize(
    "value, text",
    [(0, "0"), (0.8, "0.800"), (9.996, "10.0"), (30.14, "30.1"), (156_432, "156,000"), (999.6, "1,000")],
)
def test_numbers_have_three_digits_that_count(value: float, text: str) -> None:
    assert report.number(value) == text


def test_a_page_shows_wrong_in_place_of_a_number() -> None:
    runs = [*rounds("walrelay", 1234, 1300), run("kcat", 1, 77, check={"lost": 4}), *rounds("limit", 1500)]
    table = report.section(Results([part("drain", runs)]), "drain").replace("\\|", "and")
    assert row(table, "**walrelay**")[0] == "1,270 (1,230–1,300)"
    assert row(table, "pg_recvlogical and kcat") == ["wrong in 1 of 1 rounds"] * 3 + ["4", "3"]


def test_a_page_says_what_was_not_measured() -> None:
    page = report.page(Results([part("drain", rounds("walrelay", 10))]))
    _, _, latency = page.partition("## Latency")
    assert report.MISSING in latency.partition("\n## ")[0]
    assert report.MISSING not in page.partition("## Draining")[2].partition("\n## ")[0]
    assert "${" not in page


def test_a_page_without_any_part_is_still_one() -> None:
    page = report.page(Results([]))
    assert page.count(report.MISSING) == len(Results.SECTIONS) + 1  # and no machine


def test_a_page_warns_when_its_parts_do_not_belong_together() -> None:
    drain, latency = (part(name, rounds("walrelay", 1)) for name in ("drain", "latency"))
    assert "Warning" not in report.page(Results([drain, latency]))
    other = report.page(Results([drain, {**latency, "commit": "bad0000000000002"}]))
    assert "different commits" in other and "`c0ffee000000` (drain); `bad000000000` (latency)" in other
    assert "no commit holds: latency." in report.page(Results([drain, {**latency, "dirty": True}]))
    machine = report.page(Results([drain, {**latency, "machine": {"cpu": "Slide rule", "cores": 2}}]))
    assert "different machines" in machine
    assert row(machine, "cpu") == ["Abacus (drain); Slide rule (latency)"] and row(machine, "cores") == ["2"]


def test_cases_are_told_in_words_and_in_the_order_of_their_numbers() -> None:
    runs = [run("walrelay", 1, 5, f"{pace}/s x{each}") for pace in (1000, 200) for each in (100, 1)]
    page = report.page(Results([part("latency", runs)]))
    headings = [line for line in page.splitlines() if line.startswith("### ")]
    assert headings == [
        "### 200/s, one row per transaction",
        "### 200/s, 100 rows per transaction",
        "### 1,000/s, one row per transaction",
        "### 1,000/s, 100 rows per transaction",
    ]


# -------------------------------------------------------------------------------------- README


def test_the_readme_shows_the_medians_and_wrong_where_there_are_none() -> None:
    drain = [*rounds("walrelay", 1000, 3000, 2000), run("debezium", 1, 500, check={"disordered": 1})]
    latency = rounds("walrelay", 0.5, case="1000/s x1")
    block = report.readme_block(Results([part("drain", drain), part("latency", latency)]))
    assert row(block, "**walrelay**") == ["2,000", "–", "–", "0.500 ms", "1.00 ms"]
    assert row(block, "Debezium, defaults") == ["wrong", "wrong", "wrong", "–", "–"]
    assert "Abacus, 2 cores" in block and "Medians of 3 rounds and 1 round;" in block and "summary.svg" in block


def test_the_readme_says_which_half_is_missing() -> None:
    block = report.readme_block(Results([part("drain", rounds("walrelay", 1000))]))
    assert "*Not measured: latency.*" in block and "summary.svg" not in block


def test_the_block_replaces_what_is_between_the_marks_and_nothing_else() -> None:
    text = f"above\n{report.BEGIN}\nold\n{report.END}\nbelow\n"
    new = report.between_marks(text, "new")
    assert new == f"above\n{report.BEGIN}\nnew\n{report.END}\nbelow\n"
    assert report.between_marks(new, "new") == new
    assert report.between_marks(new, "") == f"above\n{report.BEGIN}\n{report.END}\nbelow\n"
    with pytest.raises(ValueError, match="bench:begin"):
        report.between_marks("no marks", "new")


def test_the_committed_pages_are_those_of_the_committed_results() -> None:
    assert report.stale(report.ROOT) == [], "./dev bench report writes them"


# --------------------------------------------------------------------------------------- plots


def test_a_plot_holds_the_figures_and_no_bar_for_who_was_wrong() -> None:
    runs = [*rounds("walrelay", 150_000, 170_000, 160_000), run("kcat", 1, 77_000, check={"lost": 1})]
    script = plots({"drain": runs})["drain"].script
    assert "2 0 160 " in script and ' 150 170 "160"' in script
    assert '"wrong in 1 of 1 rounds"' in script and "77" not in script


def test_a_plot_without_a_single_point_can_be_drawn(tmp_path: Path) -> None:
    late = {**run("walrelay", 1, 0, "200/s x1"), "figures": {"achieved_rate": 150}}
    lost = [run("walrelay", 1, 9, case, check={"lost": 1}) for case in ("topics 1", "payload 100", "")]
    found = plots({"drain": lost[2:], "latency": [late], "growth": lost[:2]})
    assert set(found) == {"drain", "latency", "growth"}
    for name, plot in found.items():
        plot.draw(tmp_path / name)


def test_there_is_no_plot_of_what_was_not_measured() -> None:
    assert plots({}) == {}
    assert set(plots({"growth": rounds("walrelay", 5, case="unrelated transactions")})) == set()
    assert set(plots({"growth": rounds("walrelay", 5, case="topics 10")})) == {"growth"}


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A source tree with all that is plotted."""
    directory = tmp_path / "docs" / "benchmarks"
    directory.mkdir(parents=True)
    (tmp_path / "README.md").write_text(f"# x\n{report.BEGIN}\n{report.END}\n")
    cases = {
        "drain": [""],
        "latency": [f"{pace}/s x{each}" for pace in (200, 1000) for each in (1, 100)],
        "growth": ["topics 1", "topics 1000", "payload 100", "payload 900000", "unrelated transactions"],
    }
    for name, found in cases.items():
        places = [(case, who) for case in found for who in ("walrelay", "limit", "a new one")]
        runs = [one for case, who in places for one in rounds(who, 1, 2, case=case)]
        (directory / f"{name}.json").write_text(json.dumps(part(name, runs)))
    return tmp_path


def test_equal_results_give_equal_files(tree: Path) -> None:
    first = {path: path.read_bytes() for path in report.write(tree)}
    svg = [path.name for path in first if path.suffix == ".svg"]
    assert sorted(svg) == ["drain.svg", "growth.svg", "latency.svg", "summary.svg"]
    assert {path: path.read_bytes() for path in report.write(tree)} == first
    assert report.stale(tree) == []


def test_a_change_by_hand_is_found_and_a_plot_of_yesterday_goes(tree: Path) -> None:
    old = tree / "docs" / "benchmarks" / "old.svg"
    old.touch()
    report.write(tree)
    assert not old.exists()
    page = tree / "docs" / "benchmarks.md"
    page.write_text(page.read_text().replace("holds", "does hold"))
    assert report.stale(tree) == [page]


def test_every_plot_that_a_page_shows_is_there(tree: Path) -> None:
    report.write(tree)
    for page in (tree / "README.md", tree / "docs" / "benchmarks.md"):
        shown = re.findall(r"!\[.*\]\((.*)\)", page.read_text())
        assert shown and all((page.parent / name).read_text().startswith("<?xml") for name in shown)


def test_a_file_that_is_no_result_is_named(tmp_path: Path) -> None:
    (tmp_path / "drain.json").write_text('{"part": "drain"}')
    with pytest.raises(ValueError, match="drain.json: no commit, dirty"):
        read_all(tmp_path)
    (tmp_path / "drain.json").write_text("{")
    with pytest.raises(ValueError, match="drain.json: "):
        read_all(tmp_path)
