"""The only place that waits."""

from __future__ import annotations

import time
from typing import Callable, TypeVar

T = TypeVar("T")


def wait_until(
    predicate: Callable[[], T | None], timeout: float, what: str | Callable[[], str], interval: float = 0.05
) -> T:
    """Return the first true result of predicate().

    Asks every `interval` seconds. After `timeout` seconds raises TimeoutError, which says
    "not within N s: <what>"; a callable `what` is asked then, to tell how far things got.
    """
    deadline = time.monotonic() + timeout
    while True:
        result = predicate()
        if result:
            return result
        if time.monotonic() >= deadline:
            raise TimeoutError(f"not within {timeout:g} s: {what() if callable(what) else what}")
        time.sleep(interval)
