"""`walrelay dead-letters`: what people see of events that Kafka did not take, and what they can do."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from kit.dead_letters import LETTERS, letter, make_letters, put_letter
from kit.lab import Lab

USAGE_EXIT, DENIED_EXIT, CONFIG_EXIT = 64, 77, 78
Done = subprocess.CompletedProcess[str]


@pytest.fixture
def letters(lab: Lab) -> Lab:
    """A lab with the table of dead letters."""
    make_letters(lab)
    return lab


def call(lab: Lab, *words: str) -> Done:
    return lab.relay().call("dead-letters", *words)


def does(lab: Lab, *words: str) -> str:
    """Run it, expect success, return what it printed."""
    done = call(lab, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refuses(lab: Lab, *words: str) -> str:
    """Run it, expect that it names what is not there, return its error."""
    done = call(lab, *words)
    assert done.returncode == USAGE_EXIT, done.stdout + done.stderr
    return done.stderr


def listed(lab: Lab, *words: str) -> list[int]:
    """The ids that list shows, as JSON and as lines alike."""
    objects = [json.loads(line) for line in does(lab, "list", "--json", *words).splitlines()]
    lines = does(lab, "list", *words).splitlines()[1:]
    assert [int(line.split()[0]) for line in lines] == [found["id"] for found in objects]
    return [found["id"] for found in objects]


def shown(lab: Lab, number: int) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(does(lab, "show", str(number), "--json"))
    return found


# ------------------------------------------------------------------------ reading


def test_dead_letter_list_shows_the_unresolved_ones_of_this_slot_in_order(letters: Lab) -> None:
    ids = [put_letter(letters, state=state) for state in ("waiting", "held", "dead", "resolved", "discarded")]
    put_letter(letters, slot="another")
    assert listed(letters) == ids[:3]
    assert listed(letters, "--state", "all") == ids
    assert listed(letters, "--state", "dead") == [ids[2]]


def test_dead_letter_list_takes_filters(letters: Lab) -> None:
    one = put_letter(letters, key="ü k".encode(), topic="t", reason="other")
    two = put_letter(letters, key=None, topic="t")
    three = put_letter(letters)
    assert listed(letters, "--key", "ü k") == [one]
    assert listed(letters, "--topic", "t") == [one, two]
    assert listed(letters, "--reason", "too large") == [two, three]
    assert listed(letters, "--topic", "t", "--reason", "too large") == [two]


def test_dead_letter_list_goes_on_beyond_what_is_read_at_once(letters: Lab) -> None:
    ids = [put_letter(letters) for _ in range(250)]
    assert listed(letters) == ids


def test_a_dead_letter_in_a_line_obeys_no_terminal_and_is_not_too_long(letters: Lab) -> None:
    put_letter(letters, key=b"\x1b[2J", event_id="\x1b]0;x\a" + "é" * 60, topic=None)
    line = does(letters, "list").splitlines()[1]
    assert "\x1b" not in line and "\a" not in line
    assert r"\x1b5b324a" in line and "?]0;x?" + "é" * 5 in line and "..." in line


def test_a_dead_letter_shows_all_that_it_is(letters: Lab) -> None:
    number = put_letter(letters, note="a note", payload='{"naïve": 1}\n'.encode())
    text = does(letters, "show", str(number))
    for line in (
        f"id               {number}",
        "state            waiting",
        "reason           too large",
        "error_code       MSG_SIZE_TOO_LARGE",
        "note             a note",
        "committed_at     2026-11-30T10:00:00.000000Z",
        "key              k",
        "header           type: OrderPaid",
        "payload          14 bytes",
        '{"naïve": 1}',
    ):
        assert line in text.splitlines(), text


def test_a_dead_letter_that_is_no_text_is_shown_as_digits(letters: Lab) -> None:
    number = put_letter(letters, payload=b"\x1b[31m", key=b"\xff\x00", header_values=[b"\xfe", b"e"])
    text = does(letters, "show", str(number))
    assert "\x1b" not in text and "key              \\xff00" in text and r"\x1b5b33316d" in text
    assert "header           id: \\xfe" in text


def test_dead_letter_json_is_exact(letters: Lab) -> None:
    values = {
        "key": b"",
        "payload": b"\x00\xff\x1b",
        "header_names": ["a", "a", 'q"\\'],
        "header_values": [b"1", b"\xc3\x28", b""],
        "partition": 3,
        "event_type": None,
        "retry_after": "2026-11-30T10:00:00.25+01:00",
        "replaced": True,
        "replacement": None,
    }
    found = shown(letters, put_letter(letters, **values))
    assert found["key"] == "" and found["payload"] == {"hex": "00ff1b"} and found["partition"] == 3
    assert found["headers"] == [
        {"name": "a", "value": "1"},
        {"name": "a", "value": {"hex": "c328"}},
        {"name": 'q"\\', "value": ""},
    ]
    assert found["event_type"] is None and found["replaced"] is True and found["replacement"] is None
    assert found["retry_after"] == "2026-11-30T09:00:00.250000Z"


def test_a_tombstone_as_a_dead_letter_is_not_an_empty_one(letters: Lab) -> None:
    tombstone, empty = put_letter(letters, payload=None), put_letter(letters, payload=b"")
    assert (shown(letters, tombstone)["payload"], shown(letters, empty)["payload"]) == (None, "")


def test_dead_letter_export_has_payloads_and_list_has_none(letters: Lab) -> None:
    ids = [put_letter(letters, payload=b"x" * n) for n in range(150)]
    exported = [json.loads(line) for line in does(letters, "export").splitlines()]
    assert [(found["id"], found["payload"]) for found in exported] == [(i, "x" * n) for n, i in enumerate(ids)]
    assert json.loads(does(letters, "list", "--json").splitlines()[9])["payload"] is None


# ------------------------------------------------------------------------- acting


@pytest.mark.parametrize("state", ["waiting", "dead"])
def test_the_retry_of_a_dead_letter_begins_anew_and_at_once(letters: Lab, state: str) -> None:
    number = put_letter(letters, state=state, attempts=10, retry_after="2999-01-01")
    other = put_letter(letters, state=state, attempts=10)
    assert does(letters, "retry", str(number)) == f"retry  {number}\n"
    row = letter(letters, number)
    assert (row["state"], row["attempts"], row["retry_after"]) == ("waiting", 0, None)
    assert letter(letters, other)["attempts"] == 10


def test_the_retry_of_dead_letters_takes_filters_or_all(letters: Lab) -> None:
    one = put_letter(letters, key=b"a", attempts=5)
    two = put_letter(letters, reason="other", attempts=5, state="dead")
    three = put_letter(letters, attempts=5)
    rest = [put_letter(letters, attempts=5, state=state) for state in ("held", "resolved", "discarded")]
    foreign = put_letter(letters, attempts=5, slot="another")
    assert does(letters, "retry", "--key", "a") == f"retry  {one}\n"
    assert does(letters, "retry", "--reason", "other") == f"retry  {two}\n"
    assert does(letters, "retry", "--topic", letters.prefix + "none") == ""
    assert letter(letters, three)["attempts"] == 5
    assert does(letters, "retry", "--all").split() == ["retry", str(one), "retry", str(two), "retry", str(three)]
    assert {letter(letters, number)["attempts"] for number in [*rest, foreign]} == {5}


def test_the_retry_of_a_dead_letter_can_replace_its_payload(letters: Lab) -> None:
    file = letters.directory / "payload"
    number = put_letter(letters, payload=b"old")
    for content in (bytes(range(256)) * 300, b""):
        file.write_bytes(content)
        does(letters, "retry", str(number), "--payload-file", str(file))
        row = letter(letters, number)
        assert (row["payload"], row["replaced"], row["replacement"]) == (b"old", True, content)
    assert "cannot open" in refuses(letters, "retry", str(number), "--payload-file", str(file) + "x")


def test_a_dead_letter_is_discarded_with_the_reason(letters: Lab) -> None:
    ids = [put_letter(letters, state=state, retry_after="2999-01-01") for state in ("waiting", "held", "dead")]
    done = does(letters, "discard", *map(str, ids), "--reason", "customer's test; it's void")
    assert done.split() == [word for number in ids for word in ("discarded", str(number))]
    for number in ids:
        row = letter(letters, number)
        assert (row["state"], row["note"], row["retry_after"]) == ("discarded", "customer's test; it's void", None)


@pytest.mark.parametrize("verb", [("show",), ("retry",), ("discard", "--reason", "r")], ids=lambda verb: verb[0])
def test_a_dead_letter_that_is_not_there_is_named(letters: Lab, verb: tuple[str, ...]) -> None:
    foreign = put_letter(letters, slot="another")
    for number in (foreign, 999999999999999999):
        assert f"there is no dead letter {number} of slot {letters.slot}" in refuses(letters, *verb, str(number))


def test_a_dead_letter_that_needs_no_retry_says_why(letters: Lab) -> None:
    first = put_letter(letters)
    held, done = put_letter(letters, state="held"), put_letter(letters, state="resolved")
    assert f"dead letter {held} was never refused: it waits behind {first} " in refuses(letters, "retry", str(held))
    assert f"dead letter {done} is resolved already" in refuses(letters, "retry", str(first), str(done))
    assert f"dead letter {done} is resolved already" in refuses(letters, "discard", str(done), "--reason", "r")


def test_without_the_dead_letter_table_setup_is_named(lab: Lab) -> None:
    done = call(lab, "list")
    assert done.returncode == CONFIG_EXIT
    assert f"there is no table public.{LETTERS} in this database: walrelay setup --apply" in done.stderr.replace('"', "")


def test_without_rights_the_dead_letter_table_is_named(letters: Lab) -> None:
    role = f"reader_{letters.db}"
    letters.conn.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    try:
        dsn = letters.postgres.dsn(letters.db, user=role, password="pw")
        done = letters.relay({"postgres": {"dsn": dsn}}).call("dead-letters", "list")
    finally:
        letters.conn.execute(f"DROP ROLE {role}")
    assert done.returncode == DENIED_EXIT and LETTERS in done.stderr


def test_dead_letters_can_be_changed_where_transactions_are_read_only_by_default(letters: Lab) -> None:
    letters.conn.execute(f"ALTER DATABASE {letters.db} SET default_transaction_read_only = on")
    letters.conn.execute("SET default_transaction_read_only = off")
    number = put_letter(letters, attempts=5)
    does(letters, "retry", str(number))
    assert letter(letters, number)["attempts"] == 0


def test_dead_letters_in_a_schema_of_any_name_are_found(lab: Lab) -> None:
    lab.conn.execute('CREATE SCHEMA "user"')
    make_letters(lab, schema="user")
    done = lab.relay({"dead_letters": {"schema": "user"}}).call("dead-letters", "list")
    assert done.returncode == 0 and len(done.stdout.splitlines()) == 1, done.stdout + done.stderr
