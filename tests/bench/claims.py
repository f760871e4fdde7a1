"""What the benchmark must show: each figure, how much is enough, and where it is measured."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Callable

from bench.figures import Place, Results, Spread, medians, ratio


@dataclass(frozen=True)
class Claim:
    """A quotient of two figures of the same rounds, or one figure alone, and its bound."""

    text: str
    sign: str
    bound: float
    section: str
    over: Place
    under: Place | None = None
    unit: str = ""

    def measure(self, results: Results) -> Spread:
        """NoFigure when there is none."""
        runs = results.runs_of(self.section)
        return ratio(runs, self.over, self.under) if self.under else medians(runs, *self.over)

    def holds(self, found: Spread) -> bool:
        return found.median >= self.bound if self.sign == "≥" else found.median <= self.bound

    @property
    def bound_text(self) -> str:
        return f"{self.sign} {self.show(self.bound, '{:g}'.format)}{self.suffix}"

    @property
    def suffix(self) -> str:
        """What stands behind a number."""
        if self.under is None:
            return f" {self.unit}"
        return " ×" if self.bound > 1 else ""

    def show(self, value: float, number: Callable[[float], str]) -> str:
        """A small part is easier to read as 1/12 than as 0.083."""
        return f"1/{number(1 / value)}" if self.under and self.bound <= 0.2 else number(value)


Where = tuple[str, str, str]  # section, case, figure


def against(other: str, text: str, sign: str, bound: float, where: Where) -> Claim:
    """walrelay's figure divided by that of another contender."""
    section, case, figure = where
    return Claim(text, sign, bound, section, Place(case, "walrelay", figure), Place(case, other, figure))


def alone(text: str, bound: float, unit: str, where: Where) -> Claim:
    """walrelay's figure, at most that much."""
    section, case, figure = where
    return Claim(text, "≤", bound, section, Place(case, "walrelay", figure), unit=unit)


def growing(text: str, much: str, little: str, bound: float = 0.85) -> Claim:
    """walrelay's throughput in one case divided by that in another."""
    over, under = (Place(case, "walrelay", "rows_per_s") for case in (much, little))
    return Claim(text, "≥", bound, "growth", over, under)


THROUGHPUT, CPU, MEMORY = (("drain", "", figure) for figure in ("rows_per_s", "cpu_us", "peak_rss_mb"))
P50, P99 = (("latency", "1000/s x1", figure) for figure in ("p50_ms", "p99_ms"))
HUGE = "rows per transaction 5000000"

CLAIMS = [
    against("limit", "drain: rows/s ÷ pg_recvlogical's", "≥", 0.95, THROUGHPUT),
    against("floor-50", "drain: CPU per event ÷ the floor's with linger 50", "≤", 1.15, CPU),
    alone("memory: drain", 32, "MB", MEMORY),
    alone("memory: at rest", 16, "MB", ("memory", "at rest", "rss_mb")),
    alone("memory: transaction of 5,000,000 rows", 48, "MB", ("memory", HUGE, "peak_rss_mb")),
    alone("memory: broker down, and after it", 48, "MB", ("outage", "broker down", "peak_rss_mb")),
    against("floor-0", "latency at 1,000/s: p50 ÷ the floor's with linger 0", "≤", 1.15, P50),
    against("floor-0", "latency at 1,000/s: p99 ÷ the floor's with linger 0", "≤", 1.5, P99),
    alone("latency at 20,000/s, 100 rows each: p99", 25, "ms", ("latency", "20000/s x100", "p99_ms")),
    alone(
        "CPU per transaction that does not concern the outbox", 1.2, "µs",
        ("memory", "unrelated transactions", "cpu_us"),
    ),
    against("debezium-tuned", "drain: rows/s ÷ tuned Debezium's", "≥", 4, THROUGHPUT),
    against("debezium-tuned", "drain: CPU per event ÷ tuned Debezium's", "≤", 1 / 12, CPU),
    against("debezium-tuned", "drain: memory ÷ tuned Debezium's", "≤", 1 / 20, MEMORY),
    against("debezium-tuned", "latency at 1,000/s: p50 ÷ tuned Debezium's", "≤", 1 / 5, P50),
    against("debezium-tuned", "latency at 1,000/s: p99 ÷ tuned Debezium's", "≤", 1 / 10, P99),
    growing("rows/s with 1,000 topics ÷ with 1", "topics 1000", "topics 1"),
    growing("rows/s with 1,000,000 keys ÷ with 10", "keys 1000000", "keys 10"),
    growing("rows/s with 50 outbox tables ÷ with 1", "tables 50", "tables 1"),
    growing("rows/s with 1 % dead letters ÷ with none", "dead letters 1 of 100", "no dead letters", 0.8),
]  # fmt: skip
