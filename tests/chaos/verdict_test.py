"""The verdict, on rounds that are made up."""

from __future__ import annotations

from chaos import verdict
from chaos.campaign import Era, late_arrivals, stream_starts
from chaos.letters import History, Letter, undeserved
from chaos.site import BIG, ODD
from chaos.verdict import Copies, Start
from chaos.watch import Sample
from chaos.witness import Change, Event, parse
from kit.checker import Record, compare

EVENT = Event("a", "order", end=100, committed_ms=1000)


def copies(*times: int) -> Copies:
    return Copies({"a": list(times)})


def history(*changes: tuple[str, int]) -> History:
    return History.of(Change("a", state, ms) for state, ms in changes)


def early(first: int | None, *samples: Sample, letters: History = History()) -> bool:
    return bool(verdict.early([EVENT], copies(first) if first else Copies(), samples, letters))


def unexplained(times: list[int], samples: list[Sample], *starts: Start, letters: History = History()) -> bool:
    return bool(verdict.unexplained([EVENT], copies(*times), samples, starts, (), letters))


# ------------------------------------------------------------------ confirmed too early


def test_an_event_may_be_confirmed_once_it_is_in_kafka() -> None:
    assert not early(1500, Sample(1200, 99), Sample(1500, 100))


def test_a_position_beyond_an_event_that_kafka_gets_later_is_early() -> None:
    assert early(1500, Sample(1400, 100))


def test_a_position_beyond_an_event_that_kafka_never_gets_is_early() -> None:
    assert early(None, Sample(1400, 120))


def test_a_position_before_the_end_of_the_commit_says_nothing_of_the_event() -> None:
    assert not early(None, Sample(1400, 99))


def test_a_position_that_a_crash_moves_back_was_said_all_the_same() -> None:
    assert early(1500, Sample(1400, 100), Sample(1450, 50))


def test_an_event_may_be_confirmed_once_it_is_a_dead_letter() -> None:
    assert not early(None, Sample(1500, 100), letters=history(("waiting", 1500)))
    assert early(1900, Sample(1500, 100), letters=history(("waiting", 1800)))


# -------------------------------------------------------------------------- duplicates


def test_a_copy_before_the_confirmation_is_explained() -> None:
    assert not unexplained([1100, 1200], [Sample(1300, 100)])


def test_a_copy_after_the_confirmation_has_no_reason() -> None:
    assert unexplained([1100, 1400], [Sample(1300, 100)])


def test_a_stream_that_began_before_the_event_is_a_reason_for_one_copy_only() -> None:
    again = Start(1350, after=99)
    assert not unexplained([1100, 1400], [Sample(1300, 100)], again)
    assert unexplained([1100, 1400, 1401], [Sample(1300, 100)], again)


def test_a_stream_that_began_behind_the_event_is_no_reason() -> None:
    assert unexplained([1100, 1400], [Sample(1300, 100)], Start(1350, after=100))


def test_a_stream_that_ended_before_the_commit_is_no_reason() -> None:
    assert unexplained([1100, 1400], [Sample(1300, 100)], Start(500, after=50), Start(800, after=50))


def test_a_relay_that_is_thawed_after_the_commit_may_send_again_what_its_successor_has_confirmed() -> None:
    def found(*thawed: int) -> bool:
        return bool(verdict.unexplained([EVENT], copies(1100, 1400), [Sample(1300, 100)], [], thawed))

    assert not found(1350)
    assert found(900) and found(1500)


def test_a_dead_letter_may_be_repeated_until_it_is_over() -> None:
    letters = history(("waiting", 1100), ("resolved", 1350))
    assert not unexplained([1200, 1300], [Sample(1150, 100)], letters=letters)
    assert unexplained([1200, 1400], [Sample(1150, 100)], letters=letters)
    again = history(("waiting", 1100), ("resolved", 1350), ("waiting", 1360), ("resolved", 1500))
    assert not unexplained([1200, 1400], [Sample(1150, 100)], letters=again)


# ------------------------------------------------------------------------- dead letters


def row(key: bytes | None, reason: str, size: int = 9, partition: int | None = None) -> Letter:
    return Letter("a", "strict", key, "waiting", reason, partition, size)


def test_a_dead_letter_deserves_to_be_one() -> None:
    right = [row(b"k", "too large", BIG), row(None, "not a legal record"), row(b"m", "no such partition", 9, ODD)]
    assert not undeserved([*right, row(b"k", "held"), row(b"m", "held")])
    for wrong in (row(b"n", "too large"), row(b"n", "no such partition"), row(b"n", "held"), row(None, "held")):
        assert undeserved([*right, wrong]) == [str(wrong)]
    assert undeserved([row(b"k", "refused", BIG)])


# ------------------------------------------------------------------- what the server says


def test_the_witness_gives_each_row_the_end_of_its_commit() -> None:
    row = "table public.outbox_events: INSERT: id[uuid]:'%s' aggregate_type[text]:'order' payload[jsonb]:null"
    first, second = "00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"
    events = parse(
        [
            ("0/10", "BEGIN"),
            ("0/11", "table public.noise: INSERT: n[bigint]:1"),
            ("0/12", row % first),
            ("0/13", row % second),
            ("1/A", "COMMIT (at 2026-01-01 00:00:00.5+00)"),
        ]
    ).events
    assert [event.id for event in events] == [first, second]
    assert {(event.kind, event.end, event.committed_ms) for event in events} == {
        ("order", (1 << 32) + 10, 1767225600500)
    }


def test_the_witness_tells_what_became_of_a_dead_letter() -> None:
    event = "00000000-0000-0000-0000-000000000001"
    row = (
        f"table public.walrelay_dead_letters: %s: id[bigint]:1 slot[text]:'s' event_id[text]:'{event}'"
        " error[text]:'it''s\nlarge' attempts[integer]:1 state[text]:'%s' note[text]:null"
    )
    commits = [("0/20", "COMMIT (at 2026-01-01 00:00:00.5+00)"), ("0/40", "COMMIT (at 2026-01-01 00:00:01+00)")]
    told = parse([("0/10", row % ("INSERT", "held")), commits[0], ("0/30", row % ("UPDATE", "resolved")), commits[1]])
    assert told.changes == [Change(event, "held", 1767225600500), Change(event, "resolved", 1767225601000)]
    assert not told.events


def test_the_servers_log_tells_when_and_from_where_a_stream_began() -> None:
    log = (
        '2026-01-01 00:00:00.500 UTC [7] relay0 LOG:  starting logical decoding for slot "s"\n'
        "2026-01-01 00:00:00.500 UTC [7] relay0 DETAIL:  Streaming transactions committing after 1/A,"
        " reading WAL from 0/1.\n"
        "2026-01-01 00:00:00.501 UTC [7] relay0 STATEMENT:  START_REPLICATION\n"
    )
    assert stream_starts(log, "s") == [Start(1767225600500, (1 << 32) + 10)]
    assert stream_starts(log, "other") == []


# ------------------------------------------------------------- two servers, one after the other


def late(published: str, behind: str) -> list[str]:
    """The events a and b are of a server whose slot was lost, y and z of its successor; those of `published` are in
    Kafka in that order, and `behind` are those that the old slot had not confirmed."""
    eras = [
        Era([Event(name, "order", place, 1000) for place, name in enumerate(names)], [], [], [])
        for names in ("ab", "yz")
    ]
    places = {event.id: place for place, event in enumerate(event for era in eras for event in era.events)}
    records = [
        Record("order", 0, offset, b"k", None, (("id", name.encode()),)) for offset, name in enumerate(published)
    ]
    found = late_arrivals(eras, set(behind), compare(places, records).disordered, records)
    return sorted(text.split()[0] for text in found)


def test_what_a_frozen_broker_had_not_read_may_come_after_the_successor_s() -> None:
    assert late("yabz", behind="ab") == ["a", "b"]


def test_what_the_lost_slot_had_confirmed_may_not() -> None:
    assert late("yabz", behind="b") == ["b"]


def test_the_events_of_one_server_are_in_order_whatever_happens() -> None:
    assert late("ybaz", behind="ab") == ["b"]
