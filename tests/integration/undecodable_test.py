"""A row that wal2json cannot send: the server fails at the same place again and again."""

from __future__ import annotations

from kit.lab import Lab
from kit.rows import EVENTS, arrivals, insert, make_table, section
from kit.wait import wait_until

MEGABYTES = 540  # over a gigabyte in hexadecimal


def test_a_row_of_a_gigabyte_is_named_and_tried_ever_more_slowly_until_it_is_passed_by_A37(lab: Lab) -> None:
    lab.topic("order")
    make_table(lab, "payload bytea")
    lab.conn.execute(f"ALTER TABLE {EVENTS} ALTER payload SET COMPRESSION lz4")
    relay = lab.running_relay(section(lab))
    before = insert(lab, EVENTS, payload=b"before")
    arrivals(lab, before)
    lab.wait_confirmed()
    row = lab.conn.execute(
        f"INSERT INTO {EVENTS} (payload) VALUES (convert_to(repeat(repeat('x', 1000000), %s), 'UTF8')) RETURNING id",
        [MEGABYTES],
    ).fetchone()
    assert row is not None
    ((end,),) = lab.conn.execute("SELECT pg_current_wal_insert_lsn()::text").fetchall()
    after = insert(lab, EVENTS, payload=b"after")
    line = relay.wait_for_log(r"^\S+ warning .*invalid memory alloc request size.*$", 60).group()
    assert "associated LSN" in line and "no row may be larger than 1 GB" in line
    wait_until(lambda: relay.log_text().count("streaming from slot") >= 3, 60, "it tries again")
    assert relay.log_text().count("invalid memory alloc") == 1, "the same warning is not repeated"
    assert not lab.confirmed_at_least(end)
    assert relay.stop() == 0
    wait_until(lambda: not lab.slot_row()["active"], 60, "the server has noticed that the relay is gone")
    lab.conn.execute("SELECT pg_replication_slot_advance(%s, %s)", [lab.slot, end])
    lab.running_relay(section(lab))
    assert arrivals(lab, after)[0].value == b"after"
    lab.verify(duplicates=0)
