"""The judge itself on trial: it must see every kind of broken promise."""

from __future__ import annotations

from typing import Sequence

from kit.checker import Record, compare

COMMITTED = {"a": 0, "b": 1, "c": 2}


def records(*events: str, key: str = "k", partition: int = 0) -> list[Record]:
    """A partition that holds these events in this order."""
    return [
        Record("t", partition, offset, key.encode(), event.encode(), (("id", event.encode()),))
        for offset, event in enumerate(events)
    ]


def verdict(found: Sequence[Record]) -> dict[str, int]:
    """How many of each fault compare() sees, without those it does not see."""
    report = compare(COMMITTED, found)
    faults = {n: len(getattr(report, n)) for n in ("lost", "unexpected", "disordered", "differing")}
    assert report.ok == (not any(faults.values()))
    return {name: count for name, count in faults.items() if count}


def test_everything_once_and_in_order_is_fine() -> None:
    assert verdict(records("a", "b", "c")) == {}


def test_a_lost_event_is_seen() -> None:
    assert verdict(records("a", "c")) == {"lost": 1}


def test_two_swapped_events_of_a_key_are_seen() -> None:
    assert verdict(records("b", "a", "c")) == {"disordered": 1}


def test_an_event_that_was_not_committed_is_seen() -> None:
    assert verdict(records("a", "b", "x", "c")) == {"unexpected": 1}


def test_a_record_without_an_id_is_seen() -> None:
    assert verdict([*records("a", "b", "c"), Record("t", 0, 3, b"k", b"", (("id", None),))]) == {
        "unexpected": 1
    }


def test_a_repeated_suffix_is_allowed_and_counted() -> None:
    report = compare(COMMITTED, records("a", "b", "a", "b", "c"))
    assert report.ok and report.duplicates == 2


def test_a_gap_that_a_repetition_fills_later_is_disorder() -> None:
    assert verdict(records("a", "c", "b", "c")) == {"disordered": 1}


def test_keys_and_partitions_are_judged_each_by_itself() -> None:
    assert verdict([*records("b", "c", key="k"), *records("a", key="other")]) == {}
    assert verdict([*records("b", "c"), *records("a", partition=1)]) == {}


def test_a_copy_with_another_value_is_seen() -> None:
    forged = Record("t", 0, 3, b"k", b"other", (("id", b"c"),))
    assert verdict([*records("a", "b", "c"), forged]) == {"differing": 1}
