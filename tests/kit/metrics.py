"""The relay's page of metrics, read as Prometheus reads it."""

from __future__ import annotations

import urllib.request
from typing import Iterable

from prometheus_client.parser import text_string_to_metric_families

from kit import process
from kit.wait import wait_until

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def listen() -> dict[str, dict[str, str]]:
    """Settings for a relay that answers on a port of its own; see Metrics."""
    return {"http": {"listen": f"127.0.0.1:{process.free_port()}"}}


class Metrics:
    """The page at an address. Each call asks anew."""

    def __init__(self, address: str) -> None:
        self.url = f"http://{address}/metrics"

    def text(self) -> str:
        with urllib.request.urlopen(self.url, timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            return str(answer.read().decode())

    def types(self) -> dict[str, str]:
        """The type of each name on the page, with samples or without."""
        lines = [line.split() for line in self.text().splitlines()]
        return {line[2]: line[3] for line in lines if line[:2] == ["#", "TYPE"]}

    def all(self) -> dict[tuple[str, ...], float]:
        """Each sample: its name and the values of its labels; none is there twice."""
        samples = [s for family in text_string_to_metric_families(self.text()) for s in family.samples]
        found = {(s.name, *s.labels.values()): float(s.value) for s in samples}
        assert len(found) == len(samples)
        return found

    def get(self, *sample: str) -> float | None:
        """One sample by its name and the values of its labels; None: it is not on the page."""
        return self.all().get(sample)

    def wait(self, expected: dict[tuple[str, ...], float], timeout: float = 30) -> None:
        """Wait until the page has these samples."""

        def wrong() -> dict[tuple[str, ...], float | None]:
            found = self.all()
            return {name: found.get(name) for name, value in expected.items() if found.get(name) != value}

        wait_until(lambda: not wrong(), timeout, lambda: f"the metrics are {expected}, but not {wrong()}")


def letters(waiting: int, held: int, dead: int) -> dict[tuple[str, ...], float]:
    """The samples that count dead letters by state."""
    return {("outbox_dead_letters", s): n for s, n in (("waiting", waiting), ("held", held), ("dead", dead))}


def absent(metrics: Metrics, names: Iterable[str]) -> bool:
    """Has the page no sample of these names?"""
    found = {sample[0] for sample in metrics.all()}
    return not found.intersection(names)
