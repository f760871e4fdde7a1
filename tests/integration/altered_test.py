"""A column that changes between text and bytea while rows are under way: each row arrives right."""

from __future__ import annotations

import pytest

from kit.lab import Lab
from kit.rows import EVENTS, arrivals, insert, make_table, section

HEX = "deadbeef"
RAW = bytes.fromhex(HEX)


@pytest.fixture(autouse=True)
def topic(lab: Lab) -> str:
    return lab.topic("order", partitions=1)


def to_bytea(lab: Lab, column: str = "payload") -> None:
    lab.conn.execute(f"ALTER TABLE {EVENTS} ALTER {column} TYPE bytea USING convert_to({column}, 'UTF8')")


def to_text(lab: Lab, column: str = "payload") -> None:
    lab.conn.execute(f"ALTER TABLE {EVENTS} ALTER {column} TYPE text USING encode({column}, 'hex')")


def test_rows_of_both_types_in_the_backlog_arrive_right(lab: Lab) -> None:
    make_table(lab, "payload text, trace text")
    changes = section(lab, headers="trace")
    lab.make_slot()
    ids = [insert(lab, EVENTS, payload=HEX, trace=HEX)]
    to_bytea(lab)
    to_bytea(lab, "trace")
    ids.append(insert(lab, EVENTS, payload=RAW, trace=RAW))
    to_text(lab)
    to_text(lab, "trace")
    ids.append(insert(lab, EVENTS, payload="\\x" + HEX, trace="\\x" + HEX))
    lab.running_relay(changes)
    records = arrivals(lab, *ids)
    expected = [HEX.encode(), RAW, b"\\x" + HEX.encode()]
    assert [record.value for record in records] == expected
    assert [record.header("trace") for record in records] == expected


def test_a_payload_that_was_bytea_and_is_text_now_is_known_by_its_rows(lab: Lab) -> None:
    make_table(lab, "payload bytea")
    lab.make_slot()
    ids = [insert(lab, EVENTS, payload=RAW), insert(lab, EVENTS, payload=b"")]
    to_text(lab)
    ids.append(insert(lab, EVENTS, payload=HEX))
    lab.running_relay(section(lab))
    assert [record.value for record in arrivals(lab, *ids)] == [RAW, b"", HEX.encode()]


def test_a_text_payload_that_is_hexadecimal_makes_the_relay_ask_for_types(lab: Lab) -> None:
    make_table(lab, "payload text")
    relay = lab.running_relay(section(lab))
    payloads = ["before", HEX, "after", "\\x" + HEX, "00", "ABCDEF12", "\\x"]
    ids = [insert(lab, EVENTS, payload=payload) for payload in payloads]
    assert [record.value for record in arrivals(lab, *ids)] == [payload.encode() for payload in payloads]
    relay.wait_for_log("streaming again with column types")
    lab.checker.check(duplicates=0)
    mark = relay.log_mark()
    assert arrivals(lab, insert(lab, EVENTS, payload="beef"))[0].value == b"beef"
    assert "streaming again" not in relay.log_text(mark)


def test_a_payload_altered_to_bytea_while_streaming_arrives_as_its_bytes(lab: Lab) -> None:
    make_table(lab, "payload text")
    lab.running_relay(section(lab))
    ids = [insert(lab, EVENTS, payload="text")]
    arrivals(lab, *ids)
    to_bytea(lab)
    ids += [insert(lab, EVENTS, payload=RAW), insert(lab, EVENTS, payload=b"")]
    assert [record.value for record in arrivals(lab, *ids)] == [b"text", RAW, b""]


def test_a_payload_altered_from_bytea_while_streaming_arrives_as_its_text(lab: Lab) -> None:
    make_table(lab, "payload bytea")
    lab.running_relay(section(lab))
    ids = [insert(lab, EVENTS, payload=RAW)]
    arrivals(lab, *ids)
    to_text(lab)
    ids += [insert(lab, EVENTS, payload=HEX), insert(lab, EVENTS, payload="")]
    assert [record.value for record in arrivals(lab, *ids)] == [RAW, HEX.encode(), b""]


def test_a_row_of_both_types_within_one_transaction_arrives_right(lab: Lab) -> None:
    make_table(lab, "payload text")
    lab.running_relay(section(lab))
    with lab.conn.transaction():
        ids = [insert(lab, EVENTS, payload=HEX)]
        to_bytea(lab)
        ids.append(insert(lab, EVENTS, payload=RAW))
        to_text(lab)
        ids.append(insert(lab, EVENTS, payload="zz"))
    assert [record.value for record in arrivals(lab, *ids)] == [HEX.encode(), RAW, b"zz"]
    lab.checker.check(duplicates=0)


def test_a_header_altered_to_bytea_while_the_relay_is_stopped_arrives_right(lab: Lab) -> None:
    make_table(lab, "payload text, trace text")
    changes = section(lab, headers="trace")
    relay = lab.running_relay(changes)
    ids = [insert(lab, EVENTS, payload="a", trace="t")]
    arrivals(lab, *ids)
    assert relay.stop() == 0
    to_bytea(lab, "trace")
    ids.append(insert(lab, EVENTS, payload="b", trace=RAW))
    lab.running_relay(changes)
    assert [record.header("trace") for record in arrivals(lab, *ids)] == [b"t", RAW]
    lab.checker.check(duplicates=0)
