"""Debezium's PostgreSQL connector with its outbox event router, on a real Kafka Connect.

Kafka Connect runs standalone: one JVM, the stored position in a file, started without a call of its
REST API.
"""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import ClassVar, Mapping

from psycopg.conninfo import conninfo_to_dict

from bench.contenders import Contender
from bench.world import PUBLICATION, World
from kit.jars import LOGGING, Jars, java

HERE = Path(__file__).parent / "debezium"
JARS = Jars(HERE / "pom.xml", "debezium", "Debezium and Kafka Connect (41 MB)")
FAILED = "threw an uncaught and unrecoverable exception"
WORKER = "worker."
TOPIC_PREFIX = "debezium"
HEARTBEATS = f"__debezium-heartbeat.{TOPIC_PREFIX}"


class Debezium(Contender):
    """Debezium at its defaults: see defaults.properties.

    It confirms a transaction when a later one has brought an event.
    """

    name = "debezium"
    plugin = "pgoutput"
    confirms_late = True
    confirms_last = False
    files: ClassVar[tuple[str, ...]] = ("defaults.properties",)

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        super().prepare(world, slot, prefix)
        directory = world.directory / f"{slot}-{self.name}"
        directory.mkdir()
        settings = read_settings(*self.files)
        jvm = shlex.split(settings.pop("jvm"))
        worker = {
            key.removeprefix(WORKER): settings.pop(key) for key in tuple(settings) if key.startswith(WORKER)
        }
        files = directory / "worker.properties", directory / "connector.properties"
        write_settings(files[0], {**worker, **worker_settings(world, directory)})
        write_settings(files[1], {**settings, **connector_settings(world, slot, prefix)})
        self.command = [
            java(), *jvm, f"-Dlog4j2.configurationFile={LOGGING}", f"-Djava.io.tmpdir={directory}",
            "-cp", f"{JARS.directory()}/*", "org.apache.kafka.connect.cli.ConnectStandalone", *files,
        ]  # fmt: skip

    def running(self) -> bool:
        """Is it at work? Kafka Connect lives on when its connector has failed."""
        return super().running() and FAILED not in self.log_text()


class DebeziumTuned(Debezium):
    """Debezium as somebody sets it who wants it fast: see tuned.properties.

    Its heartbeats, records of a topic of their own, confirm the last transaction too.
    """

    name = "debezium-tuned"
    confirms_last = True
    files = ("defaults.properties", "tuned.properties")

    def prepare(self, world: World, slot: str, prefix: str) -> None:
        if HEARTBEATS not in world.kafka.topics(HEARTBEATS):
            world.kafka.create_topic(HEARTBEATS)
        super().prepare(world, slot, prefix)


def read_settings(*names: str) -> dict[str, str]:
    """The settings of these files of debezium/, later ones over earlier ones."""
    text = "\n".join((HERE / name).read_text() for name in names).replace("\\\n", "")
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def write_settings(file: Path, settings: Mapping[str, str]) -> None:
    """Write a properties file, readable by its owner only, as it holds a password."""
    file.touch(mode=0o600)
    lines = [f"{key}={value}\n" for key, value in settings.items()]
    file.write_text("".join(lines).replace("\\", "\\\\"))


def worker_settings(world: World, directory: Path) -> dict[str, str]:
    """What Kafka Connect needs to know of this run."""
    return {
        "bootstrap.servers": world.kafka.bootstrap,
        "offset.storage.file.filename": str(directory / "offsets"),
        "listeners": "http://127.0.0.1:0",  # its REST API, on any free port
    }


def connector_settings(world: World, slot: str, prefix: str) -> dict[str, str]:
    """What the connector needs to know of this run."""
    server = conninfo_to_dict(world.dsn)
    return {
        "name": slot,
        "topic.prefix": TOPIC_PREFIX,  # of topics that are not the router's
        "database.hostname": str(server["host"]),
        "database.port": str(server["port"]),
        "database.user": str(server["user"]),
        "database.password": str(server["password"]),
        "database.dbname": str(server["dbname"]),
        "slot.name": slot,
        "publication.name": PUBLICATION,
        "table.include.list": ",".join(map(re.escape, world.tables)),
        "transforms.outbox.route.topic.replacement": prefix + "${routedByValue}",
    }
