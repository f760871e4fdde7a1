"""A plan follows from its seed, and faults that would get into each other's way follow each other."""

from __future__ import annotations

import itertools

from chaos.faults import KINDS, by_name
from chaos.schedule import GAP_S, STORM_S, plan

FIXED = range(1, 11)  # the seeds of the test chaos.fixed


def test_a_seed_gives_the_same_plan_each_time() -> None:
    assert [str(entry) for entry in plan(7)] == [str(entry) for entry in plan(7)]
    assert [str(entry) for entry in plan(7)] != [str(entry) for entry in plan(8)]


def test_faults_that_touch_the_same_thing_do_not_overlap() -> None:
    for seed in range(200):
        for one, other in itertools.combinations(plan(seed), 2):
            if one.fault.touches & other.fault.touches:
                assert one.over + GAP_S <= other.at + 0.02, f"seed {seed}: {one}, {other}"


def test_every_plan_has_several_faults_and_they_begin_within_the_storm() -> None:
    for seed in range(200):
        assert len(plan(seed)) >= 2 and all(entry.at < STORM_S for entry in plan(seed))


def test_the_fixed_rounds_know_every_kind_of_fault() -> None:
    drawn = {entry.fault.name for seed in FIXED for entry in plan(seed)}
    assert drawn == {kind.name for kind in KINDS}


def test_each_name_stands_for_one_kind() -> None:
    assert [by_name(kind.name) for kind in KINDS] == KINDS
