"""Very many events that Kafka does not take, among a hundred times as many healthy ones."""

from __future__ import annotations

from kit.dead_letters import LETTERS, make_letters
from kit.lab import TABLE, Lab
from kit.load import take_table
from kit.wait import wait_until

LIMIT = 50_000
EACH = 100  # one of so many is refused, and the one behind it has the same key
RESTARTS = 10  # of producers; the topic's limit is known, so it takes none for each
# 64 kB that no compression makes small enough
NOISE = "(SELECT string_agg(md5(n || '/' || i), '') FROM generate_series(1, 2000) i)"


def write(lab: Lab, events: int) -> None:
    """Commit them, a hundred a transaction."""
    insert = (
        f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload) SELECT 'order',"
        f" CASE WHEN n % {EACH} < 2 THEN 'p' || n / {EACH} ELSE 'k' || n % 1000 END, 'e',"
        f" jsonb_build_object('n', n, 'fill', CASE WHEN n % {EACH} = 0 THEN {NOISE} ELSE repeat('x', 100) END)"
        " FROM generate_series(t * 100 + 1, (t + 1) * 100) n"
    )
    lab.conn.execute(f"DO $$ BEGIN FOR t IN 0..{events // 100 - 1} LOOP {insert}; COMMIT; END LOOP; END $$")
    take_table(lab, lab.conn)


def unresolved(lab: Lab) -> dict[str, set[str]]:
    """The events in the table by state."""
    found: dict[str, set[str]] = {}
    for event, state in lab.conn.execute(f"SELECT event_id, state FROM {LETTERS} WHERE state <> 'resolved'"):
        found.setdefault(state, set()).add(event)
    return found


def test_very_many_dead_letters_cost_few_producers_and_no_order(big_lab: Lab, full: bool) -> None:
    lab, events = big_lab, 1_000_000 if full else 20_000
    timeout = events / 200
    make_letters(lab)
    lab.topic("order", 3, {"max.message.bytes": str(LIMIT)})
    lab.make_slot()
    write(lab, events)
    relay = lab.running_relay(
        {
            "relay": {"log_level": "debug"},
            "dead_letters": {"limit": "0", "retry_initial": "1h", "retry_max": "1h"},
        }
    )
    lab.wait_confirmed(timeout)
    letters = unresolved(lab)
    assert (len(letters["waiting"]), len(letters["held"])) == (events // EACH, events // EACH - 1)
    ((attempts,),) = lab.conn.execute(f"SELECT max(attempts) FROM {LETTERS}")
    assert attempts == 1, "however often others were looked for among them"
    assert set(lab.checker.missing()) == letters["waiting"] | letters["held"]
    assert relay.log_text().count("Kafka refuses: ") <= RESTARTS
    lab.kafka.alter_topic(lab.prefix + "order", max_message_bytes=1_000_000)
    assert relay.call("dead-letters", "retry", "--all").returncode == 0
    wait_until(lambda: not unresolved(lab), timeout, lambda: f"{len(unresolved(lab))} states")
    lab.verify(timeout, duplicates=0)
