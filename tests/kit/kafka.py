"""Private Apache Kafka brokers in KRaft mode: one alone, or a cluster."""

from __future__ import annotations

import base64
import os
import signal
import subprocess
import uuid
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Mapping, Sequence

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from kit import process
from kit.jars import KAFKA, LOGGING, java
from kit.scope import Scope
from kit.wait import wait_until

PLAIN = "PLAINTEXT"
CONTROLLER = "CONTROLLER"
JMX = "JMX"
# For controllers that have to wait for a processor: otherwise one election follows the other.
PATIENT = {
    "controller.quorum.election.timeout.ms": "5000",
    "controller.quorum.fetch.timeout.ms": "8000",
    "controller.quorum.request.timeout.ms": "8000",
}
MEMORY = ["-Xms128m", "-Xmx512m"]
# For brokers that are many, are started often and do little.
SMALL = ["-Xms64m", "-Xmx256m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
JVM = [
    "-XX:-UsePerfData",
    "-XX:+ExitOnOutOfMemoryError",
    "-Xshare:auto",
]


class Kafka(Scope):
    """A Kafka broker in a temporary directory on free ports of 127.0.0.1.

    Alone it is broker and controller in one process; for more see Cluster, which gives each a
    `node_id` and all the list of its `members`. Topics are not created by themselves.

    There is always a listener PLAINTEXT, which this class uses itself. `listeners` adds others,
    name to security protocol ({"SECURE": "SASL_PLAINTEXT"}), each on a port of its own; their
    settings go into `properties`, which win over everything here. `advertised` says where
    clients of a listener are sent ({"PROXY": "127.0.0.1:9999"}); the default is its own port.
    With `jmx` the broker's own figures can be read. `java_options` size its JVM.
    """

    def __init__(
        self,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        advertised: Mapping[str, str] | None = None,
        node_id: int = 1,
        members: "Sequence[Kafka]" = (),
        jmx: bool = False,
        java_options: Sequence[str] = MEMORY,
    ) -> None:
        self.properties = dict(properties or {})
        self.protocols = {PLAIN: PLAIN, **(listeners or {})}
        self.advertised = dict(advertised or {})
        self.node_id = node_id
        self.jmx = jmx
        self.java_options = java_options
        self._members = members
        self._own_id = _random_id()
        self.ports: dict[str, int] = {}
        self.directory: Path | None = None
        self._jars = KAFKA.directory()
        self._child: subprocess.Popen[bytes] | None = None
        self._admin: AdminClient | None = None

    def open(self) -> None:
        self.start()

    # ------------------------------------------------------------------ life

    def start(self, tries: int = 5) -> None:
        """Format the storage if there is none yet, start the broker, wait for its metadata.

        The first start chooses the ports and tries others when one was taken meanwhile; later
        starts keep them.
        """
        choose_ports = not self.ports
        for _ in range(tries):
            if choose_ports:
                self.choose_ports()
                self.format()
            logged = len(self.log_text())
            self.launch()
            if self.became_ready():
                return
            if not (choose_ports and process.port_taken(self.log_text()[logged:])):
                break
        raise RuntimeError(f"Kafka did not start:\n{self.log_text()[-4000:]}")

    def choose_ports(self) -> None:
        """The first part of start(): take free ports."""
        names = [*self.protocols, CONTROLLER, *([JMX] if self.jmx else [])]
        ports: set[int] = set()
        while len(ports) < len(names):
            ports.add(process.free_port())
        self.ports = dict(zip(names, ports))
        self._admin = None

    def format(self) -> None:
        """The second part: an empty storage. All members have ports by now."""
        if self.directory is None:
            self.directory = process.make_directory(f"kafka{self.node_id}")
            self.log.touch()
        else:
            process.remove_directory(self.directory / "data")
        lines = [f"{name}={value}" for name, value in self._all_properties().items()]
        self._config.write_text("\n".join(lines) + "\n")
        self.tool("kafka.tools.StorageTool", "format", f"--cluster-id={self.cluster_id}", "-c", self._config)

    def launch(self) -> None:
        """The third part: begin to run."""
        command = self._command("kafka.Kafka", self._config, options=[*self.java_options, *self._jmx_options()])
        self._child = process.spawn(command, self.log, env=self._environment)

    def became_ready(self) -> bool:
        """The last part: wait until the broker answers, or has ended."""
        return wait_until(self._answer, 120, lambda: f"Kafka is ready\n{self.log_text()[-2000:]}") == "ready"

    def stop(self, limit: float = 60) -> None:
        """Stop the broker in an orderly way (SIGTERM); SIGKILL after `limit` seconds."""
        self.thaw()
        process.finish(self._child, signal.SIGTERM, limit)

    def kill(self) -> None:
        """Let the broker die at once (SIGKILL)."""
        process.finish(self._child, signal.SIGKILL, 10)

    def freeze(self) -> None:
        """Stop the broker's process in its tracks: connections stay, answers do not come."""
        self._signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Undo freeze(). Harmless when not frozen."""
        self._signal(signal.SIGCONT)

    def close(self) -> None:
        """Kill the broker and remove its directory. May be called twice."""
        self.kill()
        self._admin = None
        if self.directory is not None:
            process.remove_directory(self.directory)

    @property
    def pid(self) -> int:
        assert self._child is not None
        return self._child.pid

    @property
    def running(self) -> bool:
        return self._child is not None and self._child.poll() is None

    # ------------------------------------------------------------- addresses

    @property
    def members(self) -> "Sequence[Kafka]":
        """All brokers of the cluster."""
        return self._members or [self]

    @property
    def cluster_id(self) -> str:
        return self.members[0]._own_id

    @property
    def bootstrap(self) -> str:
        """The PLAINTEXT listeners of all brokers of the cluster, host:port,host:port."""
        return ",".join(member.address(PLAIN) for member in self.members)

    def address(self, listener: str) -> str:
        """host:port on which the broker itself listens for `listener`."""
        return f"127.0.0.1:{self.ports[listener]}"

    # ---------------------------------------------------------------- topics

    @property
    def admin(self) -> AdminClient:
        """An admin client of the PLAINTEXT listener."""
        if self._admin is None:
            self._admin = _admin_client(self.bootstrap)
        return self._admin

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        replicas: Sequence[Sequence[int]] | None = None,
        replication_factor: int = 1,
    ) -> None:
        """Create a topic and wait until the broker shows it.

        `replicas` places it by hand: for each partition the ids of its brokers, leader first.
        """
        if replicas:
            topic = NewTopic(
                name, len(replicas), replica_assignment=[list(r) for r in replicas], config=dict(config or {})
            )
        else:
            topic = NewTopic(name, partitions, replication_factor, config=dict(config or {}))
        self._wait_for(self.admin.create_topics([topic], operation_timeout=30))
        wait_until(lambda: self._have_leaders(name), 30, f"topic {name} is there")

    def create_topics(self, partitions: Mapping[str, int]) -> None:
        """Create topics, name to number of partitions, and wait until the broker shows them."""
        topics = [NewTopic(name, count, replication_factor=1) for name, count in partitions.items()]
        self._wait_for(self.admin.create_topics(topics, operation_timeout=60))
        wait_until(lambda: self._have_leaders(*partitions), 60, "the topics are there")

    def delete_topics(self, *names: str) -> None:
        """Delete topics; returns when the broker has taken it in."""
        if names:
            self._wait_for(self.admin.delete_topics(list(names), operation_timeout=30))

    def add_partitions(self, name: str, total: int) -> None:
        """Let a topic have `total` partitions."""
        self._wait_for(self.admin.create_partitions([NewPartitions(name, total)]))
        wait_until(lambda: len(self.describe(name)) == total, 30, f"{name} has {total} partitions")

    def alter_topic(self, name: str, **config: str | int) -> None:
        """Set a topic's configuration; underscores stand for dots. Returns when it is in force.

        Settings not named go back to their defaults.
        """
        wanted = {key.replace("_", "."): str(value) for key, value in config.items()}
        resource = ConfigResource(ConfigResource.Type.TOPIC, name, set_config=wanted)
        self._wait_for(self.admin.alter_configs([resource]))
        wait_until(lambda: wanted.items() <= self.topic_config(name).items(), 30, f"{name} has {wanted}")

    def topic_config(self, name: str) -> dict[str, str]:
        """All effective settings of a topic."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        (future,) = self.admin.describe_configs([resource]).values()
        return {key: entry.value for key, entry in future.result(30).items()}

    def describe(self, name: str) -> dict[int, Any]:
        """The topic's partitions: number to metadata (leader, replicas, isrs). Empty: no such topic."""
        return _partitions(self.admin.list_topics(timeout=30).topics.get(name))

    def topics(self, prefix: str = "") -> list[str]:
        """Names of the topics that begin with `prefix`."""
        return sorted(name for name in self.admin.list_topics(timeout=30).topics if name.startswith(prefix))

    def tool(self, main_class: str, *args: str | Path, text: str = "") -> str:
        """Run one of Kafka's own command line programs with `text` on its stdin; return what it prints.

        For example tool("org.apache.kafka.tools.AclCommand", "--bootstrap-server", …).
        """
        done = subprocess.run(
            self._command(main_class, *args, options=MEMORY), input=text, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise RuntimeError(f"{main_class} failed:\n{done.stdout}{done.stderr}")
        return done.stdout

    def produce_requests(self) -> int:
        """How many produce requests the broker has answered; with `jmx` only."""
        url = f"service:jmx:rmi:///jndi/rmi://127.0.0.1:{self.ports[JMX]}/jmxrmi"
        bean = "kafka.server:type=BrokerTopicMetrics,name=TotalProduceRequestsPerSec"
        said = self.tool(
            "org.apache.kafka.tools.JmxTool", "--jmx-url", url, "--object-name", bean,
            "--attributes", "Count", "--one-time", "--report-format", "properties",
        )  # fmt: skip
        return int(said.rsplit("=", 1)[1])

    def segment(self, topic: str, partition: int = 0) -> Path:
        """The file that holds the first records of a partition."""
        assert self.directory is not None
        return self.directory / "data" / f"{topic}-{partition}" / f"{0:020}.log"

    # ------------------------------------------------------------------- log

    @property
    def log(self) -> Path:
        assert self.directory is not None
        return self.directory / "log"

    def log_text(self) -> str:
        """What the broker has logged so far."""
        return self.log.read_text(errors="replace")

    # --------------------------------------------------------------- private

    @property
    def _voters(self) -> "Sequence[Kafka]":
        """Who is a controller too: with three of them one may die, with two none could."""
        return self.members[: 3 if len(self.members) > 2 else 1]

    def _all_properties(self) -> dict[str, str]:
        assert self.directory is not None
        votes = self in self._voters
        skipped = {JMX} if votes else {JMX, CONTROLLER}
        protocols = {**self.protocols, CONTROLLER: PLAIN}
        return {
            "process.roles": "broker,controller" if votes else "broker",
            "node.id": str(self.node_id),
            "controller.quorum.voters": ",".join(f"{v.node_id}@{v.address(CONTROLLER)}" for v in self._voters),
            "controller.listener.names": CONTROLLER,
            "inter.broker.listener.name": PLAIN,
            "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in protocols.items()),
            "listeners": ",".join(f"{n}://127.0.0.1:{p}" for n, p in self.ports.items() if n not in skipped),
            "advertised.listeners": ",".join(
                f"{n}://{self.advertised.get(n, self.address(n))}" for n in self.protocols
            ),
            "log.dirs": str(self.directory / "data"),
            "auto.create.topics.enable": "false",
            "offsets.topic.replication.factor": "1",
            "offsets.topic.num.partitions": "1",
            "transaction.state.log.replication.factor": "1",
            "transaction.state.log.min.isr": "1",
            "transaction.state.log.num.partitions": "1",
            "group.initial.rebalance.delay.ms": "0",
            "log.index.size.max.bytes": str(1 << 20),
            **self.properties,
        }

    @property
    def _config(self) -> Path:
        assert self.directory is not None
        return self.directory / "server.properties"

    @property
    def _environment(self) -> dict[str, str]:
        return {**os.environ, "TZ": "UTC", "LC_ALL": "C.UTF-8"}

    def _jmx_options(self) -> list[str]:
        if not self.jmx:
            return []
        remote = "-Dcom.sun.management.jmxremote"
        return [
            f"{remote}.port={self.ports[JMX]}", f"{remote}.rmi.port={self.ports[JMX]}",
            f"{remote}.host=127.0.0.1", "-Djava.rmi.server.hostname=127.0.0.1",
            f"{remote}.authenticate=false", f"{remote}.ssl=false",
        ]  # fmt: skip

    def _command(self, main_class: str, *args: str | Path, options: Sequence[str] = ()) -> list[str]:
        logging = f"-Dlog4j2.configurationFile={LOGGING}"
        scratch = f"-Djava.io.tmpdir={self.directory}"
        return [java(), *JVM, *options, logging, scratch, "-cp", f"{self._jars}/*", main_class, *map(str, args)]

    def _signal(self, sig: signal.Signals) -> None:
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(sig)

    def _answer(self) -> str | None:
        if not self.running:
            return "gone"
        try:  # this very broker: the others may not know yet that it was away
            cluster = _admin_client(self.address(PLAIN)).list_topics(timeout=1)
        except KafkaException:
            return None
        ours = cluster.cluster_id == self.cluster_id  # else it is somebody else's port
        return "ready" if ours and self.node_id in cluster.brokers else None

    def _have_leaders(self, *names: str) -> bool:
        topics = self.admin.list_topics(timeout=30).topics
        partitions = [_partitions(topics.get(name)) for name in names]
        return all(found and all(p.leader >= 0 for p in found.values()) for found in partitions)

    @staticmethod
    def _wait_for(futures: Mapping[Any, Any]) -> None:
        for future in futures.values():
            future.result(60)


class Cluster(Scope):
    """Several brokers. `properties`, `listeners` and `java_options` are those of each, `advertised` has
    a mapping for each.

    Of three or more the first three are controllers too, so that the others go on when one dies;
    of two only the first is, and must stay. A Lab takes any one of `brokers`.
    """

    def __init__(
        self,
        size: int,
        properties: Mapping[str, str] | None = None,
        listeners: Mapping[str, str] | None = None,
        advertised: Sequence[Mapping[str, str]] = (),
        java_options: Sequence[str] = MEMORY,
    ) -> None:
        self.brokers: list[Kafka] = []
        for node_id, places in zip(range(1, size + 1), advertised or [{}] * size, strict=True):
            self.brokers.append(
                Kafka(
                    {**PATIENT, **(properties or {})}, listeners, places, node_id=node_id, members=self.brokers,
                    java_options=java_options,
                )
            )  # fmt: skip

    def open(self) -> None:
        """Start all at once: none is ready before most of the controllers are."""
        for broker in self.brokers:
            broker.choose_ports()
        with ThreadPoolExecutor(len(self.brokers)) as threads:
            list(threads.map(Kafka.format, self.brokers))
        self.heal()

    def heal(self) -> None:
        """Thaw who is frozen, start who is gone, and wait until all answer."""
        for broker in self.brokers:
            broker.thaw()
            if not broker.running:
                broker.launch()
        for broker in self.brokers:
            if not broker.became_ready():
                raise RuntimeError(f"Kafka did not start:\n{broker.log_text()[-4000:]}")

    def close(self) -> None:
        for broker in self.brokers:
            broker.close()

    def leader(self, topic: str, partition: int = 0) -> Kafka | None:
        """The broker that leads a partition now; None while there is none."""
        running = next(broker for broker in self.brokers if broker.running)
        number = running.describe(topic)[partition].leader
        return self.brokers[number - 1] if number > 0 else None


def _admin_client(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})


def _partitions(topic: Any) -> dict[int, Any]:
    return dict(topic.partitions) if topic is not None and topic.error is None else {}


def _random_id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
