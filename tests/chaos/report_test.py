"""The tables of a campaign, from rounds that are made up."""

from __future__ import annotations

from typing import Any

from chaos.report import BEGIN, END, PAGE, fault_row, placed, spans, tables
from chaos.verdict import MUST_BE_ZERO


def fault(kind: str, kills: int, recovery_ms: int, duplicates: int) -> dict[str, Any]:
    return {"kind": kind, "kills": kills, "recovery_ms": recovery_ms, "duplicates": duplicates}


def outcome(seed: int, *faults: dict[str, Any], **wrong: list[str]) -> dict[str, Any]:
    return {
        **{name: [] for name in MUST_BE_ZERO}, "seed": seed, "committed": 1000, "left_behind": 0, "late": 0,
        "duplicates": 7, "looks": 90, "peak_mb": 20, "faults": list(faults), **wrong,
    }  # fmt: skip


ROUNDS = [
    outcome(1, fault("relay killed", 2, 500, 3), fault("relay killed", 1, 1500, 1), fault("checkpoint", 0, 0, 0)),
    outcome(2, fault("relay killed", 1, 900, 0), lost=["a", "b"]),
    outcome(3, fault("checkpoint", 0, 100, 2), disordered=["c"]),
]


def test_a_kind_of_fault_has_the_sums_of_its_rounds_and_the_median_of_its_recoveries() -> None:
    assert fault_row("relay killed", ROUNDS) == ["relay killed", "2", "3", "4", "2", "0", "4", "0.9", "1.5"]
    assert fault_row("checkpoint", ROUNDS) == ["checkpoint", "2", "2", "0", "0", "1", "2", "0.1", "0.1"]


def test_seeds_side_by_side_are_said_in_one() -> None:
    assert spans([9, 1, 3, 2, 5, 6, 6]) == "1 to 3, 5 to 6, 9"


def test_the_totals_name_all_that_must_be_zero() -> None:
    text = tables(ROUNDS)
    assert "| processes killed | 4 |" in text and "| events committed | 3,000 |" in text
    assert "| lost | 2 |" in text and "| out of order | 1 |" in text


def test_the_tables_stand_between_the_marks_and_the_rest_of_the_page_stays() -> None:
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert placed(page, "new") == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    assert placed(placed(page, "new"), "new") == placed(page, "new")
    assert PAGE.read_text().count(BEGIN) == PAGE.read_text().count(END) == 1
