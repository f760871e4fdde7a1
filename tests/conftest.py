"""Fixtures: one PostgreSQL and one Kafka for the whole run, a lab of its own for each test."""

from __future__ import annotations

import itertools
import os
import re
from typing import Iterator

import pytest

from kit import process
from kit.dead_letters import make_letters
from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.proxy import Proxy

_numbers = itertools.count(1)


def pytest_configure(config: pytest.Config) -> None:
    process.raise_on_termination()
    process.forget_libpq_environment()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """`./dev test PATTERN`: keep what the regular expression in $WALRELAY_TEST_PATTERN matches."""
    pattern = os.environ.get("WALRELAY_TEST_PATTERN")
    if pattern:
        kept = [item for item in items if re.search(pattern, item.nodeid, re.IGNORECASE)]
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = kept


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Iterator[None]:
    """Show the ends of the logs beside a failure."""
    outcome = yield
    report = outcome.get_result()  # type: ignore[attr-defined]
    if report.failed and report.when == "call":  # later the logs are gone
        for value in getattr(item, "funcargs", {}).values():
            if isinstance(value, Lab):
                report.sections.extend(value.logs())


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The PostgreSQL of this run. A test that changes its settings puts them back."""
    with Postgres() as server:
        yield server


@pytest.fixture(scope="session")
def network() -> Iterator[Proxy]:
    """What stands before the listener PROXY of this run's Kafka."""
    with Proxy() as proxy:
        yield proxy


@pytest.fixture(scope="session")
def kafka(network: Proxy) -> Iterator[Kafka]:
    """The Kafka of this run. A test that stops or freezes it brings it back."""
    with Kafka(listeners={"PROXY": "PLAINTEXT"}, advertised={"PROXY": network.address}) as broker:
        network.target = broker.address("PROXY")
        yield broker


@pytest.fixture
def proxy(network: Proxy, kafka: Kafka) -> Iterator[Proxy]:
    """A way to that Kafka which can fail, for a client with bootstrap.servers = proxy.address."""
    yield network
    network.heal()


@pytest.fixture
def lab(postgres: Postgres, kafka: Kafka) -> Iterator[Lab]:
    """A database with an outbox table, a slot's name and a topic prefix for this test alone."""
    if not postgres.running:
        postgres.start()
    if not kafka.running:
        kafka.start()
    with Lab(postgres, kafka, f"t{next(_numbers):04}") as place:
        yield place


@pytest.fixture
def letters(lab: Lab) -> Lab:
    """A lab with the table of dead letters, and a topic that takes no large record."""
    make_letters(lab)
    lab.topic("order", 1, {"max.message.bytes": "100000"})
    return lab


@pytest.fixture
def role(lab: Lab) -> Iterator[str]:
    """A role with the least rights, as the relay's; with a password."""
    name = f"relay_{lab.db}"
    lab.conn.execute(f"CREATE ROLE {name} LOGIN REPLICATION PASSWORD 'pw'")
    yield name
    lab.conn.execute(f"DROP OWNED BY {name}; DROP ROLE {name}")


@pytest.fixture
def big_lab(postgres: Postgres, kafka: Kafka) -> Iterator[Lab]:
    """A lab whose checker keeps little of each record."""
    with Lab(postgres, kafka, "big", light=True) as place:
        yield place


@pytest.fixture
def server(request: pytest.FixtureRequest) -> Iterator[Postgres]:
    """A PostgreSQL of the test's own, with settings of parametrize("server", ..., indirect=True)."""
    with Postgres(**getattr(request, "param", {})) as postgres:
        yield postgres


@pytest.fixture
def own_lab(server: Postgres, kafka: Kafka) -> Iterator[Lab]:
    """A lab on that server."""
    with Lab(server, kafka, "own") as place:
        yield place


@pytest.fixture(scope="session")
def full() -> bool:
    """Was the long form asked for (`./dev test --full`)?"""
    return os.environ.get("WALRELAY_FULL") == "1"
