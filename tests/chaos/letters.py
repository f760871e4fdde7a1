"""Events that Kafka refuses, and those that wait behind them: the table walrelay_dead_letters, what people do
to it, and what must be true of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Callable, Iterable, Sequence

from chaos.site import CONFIG, LOW, ODD, Site, settings
from chaos.witness import Change
from kit.dead_letters import LETTERS
from kit.wait import wait_until

RETRY = f"UPDATE {LETTERS} SET attempts = 0, retry_after = NULL WHERE state IN ('waiting', 'dead')"
DISCARD = (
    f"UPDATE {LETTERS} SET state = 'discarded', note = 'chaos'"
    " WHERE state IN ('waiting', 'held', 'dead') AND id %% %s = 0"
)
OVER = ("resolved", "discarded")


@dataclass(frozen=True, slots=True)
class Letter:
    """A row."""

    event: str
    topic: str | None
    key: bytes | None
    state: str
    reason: str
    partition: int | None
    size: int  # bytes of the payload


def rows(site: Site) -> list[Letter]:
    """All rows, in the order in which they were written."""
    columns = "event_id, topic, key, state, reason, partition, coalesce(octet_length(payload), 0)"
    query = f"SELECT {columns} FROM {LETTERS} ORDER BY id"
    return [Letter(*row) for row in site.lab.postgres.execute(query, db=site.lab.db)]


# ------------------------------------------------------------------------ what must be true

DESERVES: dict[str, Callable[[Letter], bool]] = {
    "too large": lambda row: row.size > LOW,
    "not a legal record": lambda row: row.key is None,
    "no such partition": lambda row: row.partition == ODD,
    "not publishable": lambda row: row.topic is None,
}


def undeserved(letters: Iterable[Letter]) -> list[str]:
    """Rows of events that nothing was wrong with, and that had none to wait for."""
    found: list[str] = []
    before: set[tuple[str | None, bytes | None]] = set()
    for row in letters:
        place = (row.topic, row.key)
        if row.reason == "held":
            right = row.key is not None and place in before
        else:
            right = row.reason in DESERVES and DESERVES[row.reason](row)
        if not right:
            found.append(str(row))
        before.add(place)
    return found


@dataclass
class History:
    """When each event came into the table, and since when it is resolved or discarded for good."""

    written: dict[str, int] = field(default_factory=dict)
    over: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, changes: Iterable[Change]) -> "History":
        history = cls()
        for change in sorted(changes, key=lambda change: change.ms):
            history.written.setdefault(change.event, change.ms)
            if change.state not in OVER:
                history.over.pop(change.event, None)
            else:
                history.over.setdefault(change.event, change.ms)
        return history

    def may_be_tried(self, event: str, ms: int) -> bool:
        """Was it in the table and not over at that time?"""
        return event in self.written and (event not in self.over or ms <= self.over[event])


# ----------------------------------------------------------------------------- what people do


def mend(site: Site, timeout: float) -> None:
    """After the storm: the causes are mended, what has no topic is given up, all others are tried again until
    they are in Kafka."""
    topic, kafka = site.topic("strict"), site.lab.kafka
    site.do(lambda: kafka.alter_topic(topic, **settings(CONFIG)))
    site.do(lambda: kafka.add_partitions(topic, ODD + 1))
    hopeless = _ids(site, "topic IS NULL")
    if hopeless:
        _command(site, "discard", *hopeless, "--reason", "it has no topic")
    if _ids(site):
        _command(site, "retry", "--all")
    wait_until(lambda: _over(site), timeout, lambda: f"no dead letters are left: {_ids(site)}\n{site.logs()}")


def _over(site: Site) -> bool:
    site.look()
    left = _ids(site)
    if _ids(site, "state = 'dead'"):  # tried too often while a broker did not know yet
        _command(site, "retry", "--all")
    return not left


def _ids(site: Site, condition: str = "true") -> list[str]:
    """Of the unresolved rows."""
    query = f"SELECT id::text FROM {LETTERS} WHERE state IN ('waiting', 'held', 'dead') AND {condition}"
    return [row[0] for row in site.lab.postgres.execute(query, db=site.lab.db)]


def _command(site: Site, *words: str) -> None:
    done = site.relays[0].relay.call("dead-letters", *words)
    if done.returncode != 0:
        raise RuntimeError(f"walrelay dead-letters {words[0]}: {done.stderr}")


def has_all(site: Site, events: Sequence[str]) -> bool:
    """Are all of these in the table?"""
    ((n,),) = site.lab.postgres.execute(
        f"SELECT count(*) FROM {LETTERS} WHERE event_id = ANY (%s)", list(events), db=site.lab.db
    )
    return bool(n == len(events))
