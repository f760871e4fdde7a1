"""TLS to PostgreSQL, with authorities of our own."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Iterator

import pytest

from kit import process
from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.tls import make_authority, make_certificate

CONFIG_EXIT = 78


@pytest.fixture
def folder() -> Iterator[Path]:
    place = process.make_directory("tls")
    yield place
    process.remove_directory(place)


def server(folder: Path, name: str) -> Postgres:
    """A PostgreSQL with the certificate NAME.crt of `folder`."""
    postgres = Postgres(
        ssl="on", ssl_cert_file=str(folder / f"{name}.crt"), ssl_key_file=str(folder / f"{name}.key")
    )
    if postgres.user:
        shutil.chown(folder / f"{name}.key", postgres.user)
    return postgres


def refused(lab: Lab, words: str, **parameters: str) -> None:
    """Expect that a relay which connects like that ends with a line that says so."""
    relay = lab.relay({"postgres": {"dsn": lab.postgres.dsn(lab.db, **parameters)}})
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    errors = re.findall(r"^\S+ error .*$", relay.log_text(), re.MULTILINE)
    assert len(errors) == 1 and words in errors[0]
    assert lab.postgres.password not in relay.log_text()


def test_only_a_server_whose_certificate_is_trusted_and_has_its_name_is_read_A13(folder: Path, kafka: Kafka) -> None:
    ours, other = make_authority(folder, "ours"), make_authority(folder, "other")
    make_certificate(folder, "server", ours)
    with server(folder, "server") as postgres, Lab(postgres, kafka, "tls") as lab:
        lab.topic("order")
        lab.make_slot()
        refused(lab, "certificate verify failed", sslmode="verify-full", sslrootcert=str(other))
        refused(
            lab, '(and 1 other name) does not match host name "localhost"',
            sslmode="verify-full", sslrootcert=str(ours), host="localhost", hostaddr="127.0.0.1",
        )  # fmt: skip
        dsn = postgres.dsn(lab.db, sslmode="verify-full", sslrootcert=str(ours))
        lab.running_relay({"postgres": {"dsn": dsn}})
        encrypted = lab.postgres.execute(
            "SELECT ssl FROM pg_stat_ssl JOIN pg_replication_slots ON pid = active_pid WHERE slot_name = %s", lab.slot
        )
        assert encrypted == [(True,)]
        lab.writer.number("k", 1, 2, 3)
        lab.verify(duplicates=0)


def test_a_server_without_tls_is_refused_where_it_is_required_A13(lab: Lab) -> None:
    lab.make_slot()
    refused(lab, "server does not support SSL", sslmode="require")
