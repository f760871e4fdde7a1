"""Who competes: how each is started, and what it is. Debezium and the poller have files of their own."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from confluent_kafka import Message

from bench.world import World
from kit import process
from kit.checker import Checker, Record
from kit.relay import ROOT, Relay

PROGRAMS = ROOT / "build" / "release" / "bench"


def plugin_options(world: World) -> dict[str, str]:
    """wal2json's options, the same that walrelay gives."""
    return {
        "format-version": "2",
        "include-timestamp": "true",
        "include-types": "false",
        "actions": "insert",
        "add-tables": ",".join(world.tables),
    }


class Contender:
    """One way to bring the backlog to Kafka. Start and stop once each."""

    name: ClassVar[str]
    plugin: ClassVar[str | None] = "wal2json"  # of the slot that it reads; None: it reads the table
    keeps_order: ClassVar[bool] = True
    publishes: ClassVar[bool] = True
    # Confirms by a timer of its own, so its time ends when everything is in Kafka.
    confirms_late: ClassVar[bool] = False
    # Confirms also the last transaction while nobody writes.
    confirms_last: ClassVar[bool] = True

    def __init__(self) -> None:
        self.command: list[str | Path] = []
        self._children: list[subprocess.Popen[bytes]] = []
        self._log = Path()

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        """Write files, start nothing. `slot` exists, so do the topics `{prefix}{aggregate type}`."""
        self._log = world.directory / f"{slot}-{self.name}.log"
        self._log.touch()

    def start(self) -> None:
        """Start `command`, which prepare() made."""
        self.spawn(*self.command)

    def spawn(self, *command: str | Path) -> None:
        """Start a process that writes to the log."""
        self._children.append(process.spawn(command, self._log))

    def pids(self) -> list[int]:
        """All processes."""
        return [child.pid for child in self._children]

    def running(self) -> bool:
        return all(child.poll() is None for child in self._children)

    def succeeded(self) -> bool:
        """Have all processes ended by themselves and without an error?"""
        return all(child.poll() == 0 for child in self._children)

    def serving(self, world: World, slot: str) -> list[int]:
        """The processes of PostgreSQL that work for it now."""
        return [pid for pid in [world.walsender(slot)] if pid]

    def finished(self, world: World) -> bool:
        """Without a slot only: is the backlog published and marked so?"""
        raise NotImplementedError

    def log_text(self) -> str:
        return self._log.read_text(errors="replace")

    def stop(self) -> None:
        for child in self._children:
            process.finish(child, signal.SIGTERM, 30)

    def checker(self, world: World, prefix: str) -> Checker:
        """The judge of what it published."""
        return world.checker(prefix)


class Limit(Contender):
    """pg_recvlogical into /dev/null: what the server can deliver."""

    name = "limit"
    publishes = False

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        super().prepare(world, slot, prefix)
        self.command = [*receive(world, slot), f"--endpos={world.end}", "-f", "/dev/null"]


class Floor(Contender):
    """floor.c with a linger of so many milliseconds."""

    linger_ms: ClassVar[int]

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        super().prepare(world, slot, prefix)
        dsn = world.postgres.dsn(world.db, replication="database")
        self.command = [
            PROGRAMS / "floor", dsn, slot, ",".join(world.tables), prefix, world.kafka.bootstrap,
            str(self.linger_ms),
        ]  # fmt: skip


class Floor0(Floor):
    name = "floor-0"
    linger_ms = 0


class Floor50(Floor):
    name = "floor-50"
    linger_ms = 50


class Walrelay(Contender):
    """walrelay as it is configured by nobody: slot, table, topic, Kafka's address."""

    name = "walrelay"

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        topic = {"topic": prefix + "{aggregate_type}"}
        self.relay = Relay(
            world.directory,
            {
                "postgres": {"dsn": world.dsn, "slot": slot},
                **{f"table {table}": topic for table in world.tables},
                "kafka": {"bootstrap.servers": world.kafka.bootstrap},
                # so many in so short a time are taken for a fault of the cluster by default
                **({"dead_letters": {"limit": "0"}} if world.load.poison else {}),
            },
            name=f"{slot}-{self.name}",
        )

    def start(self) -> None:
        self.relay.start()

    def pids(self) -> list[int]:
        return [self.relay.pid]

    def running(self) -> bool:
        return self.relay.running

    def log_text(self) -> str:
        return self.relay.log_text()

    def stop(self) -> None:
        self.relay.stop()


class Kcat(Contender):
    """pg_recvlogical piped into kcat: no key, no headers, no routing, one partition for the order.

    It confirms what was written to the pipe, so it can lose what Kafka does not have yet.
    """

    name = "kcat"
    confirms_late = True

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        super().prepare(world, slot, prefix)
        source = shlex.join([*receive(world, slot), "-f", "-"])
        sink = ["kcat", "-P", "-p", "0", "-z", "lz4", "-b", world.kafka.bootstrap, "-t", f"{prefix}order"]
        self.command = ["bash", "-c", f"{source} | exec {shlex.join(sink)}"]

    def pids(self) -> list[int]:
        return [pid for child in self._children for pid in [child.pid, *process.children(child.pid)]]

    def stop(self) -> None:
        for pid in self.pids()[1:]:
            signal_quietly(pid)
        super().stop()

    def checker(self, world: World, prefix: str) -> Checker:
        checker = LineChecker(world.kafka.bootstrap, prefix, light=True)
        checker.commit(*world.ids())
        return checker


class LineChecker(Checker):
    """Reads wal2json's lines as they are: the id is a column, other lines than rows do not count."""

    ID = re.compile(rb'"name":"id","value":"([^"]+)"')

    def _take(self, message: Message) -> None:
        value = message.value()
        if message.error() is None and not (value and value.startswith(b'{"action":"I"')):
            self._position[(message.topic(), message.partition())] = message.offset() + 1
            return
        super()._take(message)

    def _record(self, message: Message) -> Record:
        found = self.ID.search(message.value())
        assert found is not None
        headers = ((self.id_header, found.group(1)),)
        return Record(message.topic(), message.partition(), message.offset(), None, b"", headers)


def receive(world: World, slot: str) -> list[str]:
    """The command line of pg_recvlogical, but for where to."""
    options = [part for name, value in plugin_options(world).items() for part in ("-o", f"{name}={value}")]
    return [
        str(world.postgres.bin / "pg_recvlogical"), "-d", world.dsn, "-S", slot, "--start", "--no-loop",
        "-s", "1", *options,
    ]  # fmt: skip


def signal_quietly(pid: int) -> None:
    """SIGTERM; a process that is gone is fine."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)


def all_contenders() -> dict[str, type[Contender]]:
    """Every contender by its name."""
    from bench.debezium import Debezium, DebeziumTuned
    from bench.poller import Poller1, Poller4

    classes = (Limit, Floor0, Floor50, Walrelay, Kcat, Debezium, DebeziumTuned, Poller1, Poller4)
    return {contender.name: contender for contender in classes}
