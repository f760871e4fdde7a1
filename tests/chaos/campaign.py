"""One round after the other, each in a place of its own, on the same servers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any, Callable, Sequence

from chaos import letters, verdict, witness
from chaos.faults.base import Fault
from chaos.letters import History
from chaos.schedule import Planned, plan
from chaos.servers import Servers
from chaos.site import BIG, KINDS, Site
from chaos.storm import Struck, rage
from chaos.verdict import Copies, Start
from chaos.watch import Sample, Watch
from chaos.witness import Change, Event
from chaos.writers import Writers
from kit import process
from kit.checker import Record, compare
from kit.lab import TABLE
from kit.relay import ROOT
from kit.wait import wait_until

RECOVERY_S = 180  # a limit for machines that do much else; what it took is in the result
PEAK_MB = 64
SETTLED_S = 10
NO_KEY = ", key None: "
LOGS = ROOT / "build" / "chaos"
_STREAM = re.compile(
    r"^(\S+ \S+) UTC \[\d+\] .*starting logical decoding for slot \"(\w+)\"\n"
    r".*Streaming transactions committing after ([0-9A-F]+/[0-9A-F]+)",
    re.MULTILINE,
)


class Campaign:
    """Runs rounds and says, for each, what came of it."""

    def __init__(self, servers: Servers, kinds: Sequence[type[Fault]], say: Callable[[str], None]) -> None:
        self.servers, self.kinds, self.say = servers, kinds, say

    def round(self, number: int, seed: int) -> dict[str, Any]:
        """The result of one round, as it stands in the result file."""
        planned = plan(seed, self.kinds)
        self.say(f"round {number}, seed {seed}: {len(planned)} faults")
        allowed = {code for entry in planned for code in entry.fault.allowed}
        with Site(self.servers, f"chaos{number}", allowed) as site:
            outcome = Round(site, seed, planned, self.say).run()
            if verdict.summary(outcome):
                self.say(f"  logs are in {site.keep_logs(LOGS / str(seed))}")
        return {"round": number, "seed": seed, **outcome}


class Round:
    """The storm, the calm after it, and the verdict."""

    def __init__(self, site: Site, seed: int, planned: list[Planned], say: Callable[[str], None]) -> None:
        self.site, self.seed, self.planned, self.say = site, seed, planned, say
        self.watch = Watch(site)
        self.struck: list[Struck] = []
        self.log_from = len(site.lab.postgres.log_text())

    def run(self) -> dict[str, Any]:
        warm = self._warm_up()
        with self.watch:
            with Writers(self.site, self.seed):
                self.struck = rage(self.site, self.planned, self.say)
            self.site.heal()
            self._recover()
            letters.mend(self.site, RECOVERY_S)
        figures = self._judge()
        figures["left_over"] = self._left_over(warm)
        return {"at": datetime.now(timezone.utc).isoformat(timespec="seconds"), **figures}

    # ------------------------------------------------------- before and after

    def _warm_up(self) -> tuple[int, int]:
        """An event to each topic, and two that are refused, so that the second producer is there as well; then
        descriptors and threads of the relay that streams."""
        for kind in KINDS:
            self.site.lab.conn.execute(
                f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type) VALUES (%s, 'k0', 'e')", [kind]
            )
        self.site.lab.conn.execute(
            f"INSERT INTO {TABLE} (aggregate_type, aggregate_id, event_type, payload, place)"
            " SELECT 'strict', 'warm' || n, 'e', to_jsonb(string_agg(md5(i::text), '')), 0"
            " FROM generate_series(1, 2) n, generate_series(1, %s) i GROUP BY n",
            [BIG // 32],
        )
        self.site.lab.wait_confirmed(60)
        relay = self.site.relays[0].relay
        return relay.fds(), relay.threads()

    def _recover(self) -> None:
        """Wait until everything is in Kafka and confirmed; the keeper starts what is down meanwhile."""
        site = self.site
        site.wait_streaming(RECOVERY_S)
        end = site.lab.end_of_wal()

        def confirmed() -> bool:
            site.look()
            return site.lab.confirmed_at_least(end)

        wait_until(confirmed, RECOVERY_S, lambda: f"everything is confirmed: {site.lab.slot_row()}\n{site.logs()}")

    def _left_over(self, warm: tuple[int, int]) -> list[str]:
        """Descriptors and threads that the relay that streams keeps beyond those of a fresh one, when whatever
        was under way has ended."""
        try:
            wait_until(lambda: not self._beyond(warm), SETTLED_S, "nothing is left over")
        except TimeoutError:
            return self._beyond(warm)
        return []

    def _beyond(self, warm: tuple[int, int]) -> list[str]:
        """What it has more at this moment. A broker that it did not need at first is worth one of each."""
        relay = self.site.relay(streams=True).relay
        fds, threads = relay.fds(), relay.threads()
        found = []
        if fds > warm[0] + 6:
            found.append(f"{fds} descriptors, {warm[0]} in the beginning")
        if threads > warm[1] + 3:
            found.append(f"{threads} threads, {warm[1]} in the beginning: {process.thread_names(relay.pid)}")
        return found

    # --------------------------------------------------------------- verdict

    def _judge(self) -> dict[str, Any]:
        """The figures of the result; what must be zero is a list of what was found."""
        site, eras = self.site, self._eras()
        events = [event for era in eras for event in era.events]
        site.lab.checker.commit(*(event.id for event in events))
        copies = Copies.of(site.lab.checker.collect(RECOVERY_S))
        rows = letters.rows(site)
        history = History.of(change for era in eras for change in era.changes)
        discarded = {row.event for row in rows if row.state == "discarded"}
        report = site.lab.checker.report()
        gone = {event.id for event in events if any(entry.fault.destroys(event) for entry in self.planned)}
        behind = {event.id for era in eras[:-1] for event in era.events}
        late = late_arrivals(eras, behind, report.disordered, site.lab.checker.records)
        peak = self.watch.peak_kb // 1024
        return {
            "committed": report.committed,
            "published": report.published,
            "duplicates": report.duplicates,
            "dead_letters": len(rows),
            "discarded": len(discarded),
            "left_behind": sum(event in behind for event in report.lost),
            "lost": [event for event in report.lost if event not in gone | behind | discarded],
            "unexpected": report.unexpected,
            "differing": report.differing,
            "disordered": [
                text for text in report.disordered if text not in late and self._promised(text, gone, copies)
            ],
            "late": len(late),
            **judge_positions(
                eras, gone, copies, [entry.ended_ms for entry in self.struck if entry.fault.freezes], history
            ),
            "undeserved": letters.undeserved(rows),
            "wrong_ends": [wrong for relay in site.relays for wrong in relay.wrong],
            "too_large": [f"{peak} MB"] if peak > PEAK_MB else [],
            "peak_mb": peak,
            "looks": self.watch.looks,
            "exits": [code for relay in site.relays for code in relay.exits],
            "faults": verdict.per_fault(self.struck, [e for e in events if e.id not in gone], copies, history),
        }

    def _promised(self, disorder: str, gone: set[str], copies: Copies) -> bool:
        """Is there an order to be broken? Not without a key, and not for a further copy of an event whose key
        had another partition before its topic grew."""
        event = disorder.split()[0]
        moved = any(entry.fault.moves(disorder) for entry in self.planned) and len(copies.times[event]) > 1
        return not (NO_KEY in disorder or event in gone or moved)

    def _eras(self) -> list[Era]:
        """For each server that was the primary, what its witness says; an old one is asked once more."""
        site, eras = self.site, []
        for number, server in enumerate(site.primaries):
            if not server.running:
                server.start()
            with server.connect(site.lab.db) as conn:
                told = witness.read(conn, site.witness)
                table = {row[0] for row in conn.execute(f"SELECT id::text FROM {TABLE}").fetchall()}
            samples = self.watch.samples[number] if number < len(self.watch.samples) else []
            log = server.log_text()[0 if number else self.log_from :]
            eras.append(Era(told.events, told.changes, samples, stream_starts(log, site.lab.slot)))
            known = {event.id for era in eras for event in era.events}
            if not {event.id for event in told.events} <= table <= known:
                raise RuntimeError(f"witness and table of server {number} do not agree: {len(known)}, {len(table)}")
        return eras


@dataclass(frozen=True)
class Era:
    """What happened on one primary."""

    events: list[Event]
    changes: list[Change]
    samples: list[Sample]
    starts: list[Start]


def late_arrivals(
    eras: Sequence[Era], behind: set[str], disordered: Sequence[str], records: Sequence[Record]
) -> set[str]:
    """Of what stands after a later event, that which does so only because the later one is of another server.

    A slot that was lost begins anew behind what the old server had not confirmed. Some of that may be on
    its way yet, in the socket of a frozen broker. Within the events of one server there is no excuse.
    """
    within: set[str] = set()
    for era in eras:
        places = {event.id: place for place, event in enumerate(era.events)}
        own = [record for record in records if verdict.event_of(record) in places]
        within.update(compare(places, own).disordered)
    return {text for text in disordered if text.split()[0] in behind} - within


def judge_positions(
    eras: Sequence[Era], gone: set[str], copies: Copies, thawed: Sequence[int], history: History
) -> dict[str, Any]:
    """What the slots had confirmed, compared with what was in Kafka; LSNs of one server only are compared."""
    early, unexplained = [], []
    for era in eras:
        events = [event for event in era.events if event.id not in gone]
        early += verdict.early(events, copies, era.samples, history)
        unexplained += verdict.unexplained(events, copies, era.samples, era.starts, thawed, history)
    return {
        "early": early,
        "unexplained": unexplained,
        "positions": sum(len(era.samples) for era in eras),
        "streams": sum(len(era.starts) for era in eras),
    }


def stream_starts(log: str, slot: str) -> list[Start]:
    """When and from where the server began to stream from the slot, as its log says."""
    return [
        Start(int(datetime.fromisoformat(f"{at}+00:00").timestamp() * 1000), witness.lsn(after))
        for at, name, after in _STREAM.findall(log)
        if name == slot
    ]
