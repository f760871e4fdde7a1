"""Kafka does not let the relay in, or sends it astray: it says why, keeps the events and tries again."""

from __future__ import annotations

from pathlib import Path
from typing import Iterator

import pytest

from kit import process
from kit.dead_letters import (
    command,
    in_order,
    make_letters,
    row,
    settings,
    small,
    states,
    wait_resolved,
    wait_states,
)
from kit.kafka import Kafka
from kit.lab import Lab
from kit.postgres import Postgres
from kit.relay import Relay
from kit.tls import make_authority, make_certificate

PASSWORD = "open-sesame"
WRONG = "close-sesame"
LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Holds ours.crt, the authority of the broker's certificate, and other.crt."""
    place = process.make_directory("access")
    make_authority(place, "other")
    make_certificate(place, "broker", make_authority(place, "ours"))
    yield place
    process.remove_directory(place)


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Kafka]:
    """A broker with a listener GATE for users with a password and rights, TLS, and LOST, which sends its
    clients to a host that there is not."""
    store = folder / "broker.pem"
    store.write_text((folder / "broker.key").read_text() + (folder / "broker.crt").read_text())
    properties = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.gate.plain.sasl.jaas.config": f'{LOGIN} required user_relay="{PASSWORD}";',
        "listener.name.tls.ssl.keystore.type": "PEM",
        "listener.name.tls.ssl.keystore.location": str(store),
    }
    listeners = {"GATE": "SASL_PLAINTEXT", "TLS": "SSL", "LOST": "PLAINTEXT"}
    with Kafka(properties, listeners, {"LOST": "astray.invalid:9092"}) as kafka:
        yield kafka


@pytest.fixture
def gate_lab(postgres: Postgres, broker: Kafka) -> Iterator[Lab]:
    with Lab(postgres, broker, "gate") as lab:
        yield lab


def at_the_gate(lab: Lab, password: str = PASSWORD) -> dict[str, dict[str, str]]:
    return {
        "kafka": {
            "bootstrap.servers": lab.kafka.address("GATE"),
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": "relay",
            "sasl.password": password,
        }
    }


def by_tls(lab: Lab, authority: Path) -> dict[str, dict[str, str]]:
    servers = lab.kafka.address("TLS")
    return {
        "kafka": {"bootstrap.servers": servers, "security.protocol": "SSL", "ssl.ca.location": str(authority)}
    }


def rights(lab: Lab, *change: str) -> None:
    """Change the rights of the user relay on topics."""
    lab.kafka.tool(
        "org.apache.kafka.tools.AclCommand", "--bootstrap-server", lab.kafka.bootstrap, "--force", *change
    )


def wait_refused(lab: Lab, changes: dict[str, dict[str, str]], reason: str) -> Relay:
    """Expect that a relay goes on and says the reason, and that an event of before stays unconfirmed."""
    lab.topic("order")
    lab.make_slot()
    lab.writer.number("k", 1)
    end = lab.end_of_wal()
    relay = lab.running_relay(changes)
    relay.wait_for_log(f"warning .*{reason}")
    lab.wait_received()
    assert relay.running and not lab.confirmed_at_least(end)
    return relay


def then_arrives(lab: Lab, refused: Relay, mended: dict[str, dict[str, str]]) -> None:
    """Expect that the event arrives by a relay whose settings are right."""
    refused.kill()
    lab.running_relay(mended)
    lab.verify(duplicates=0)


def test_a_topic_that_may_not_be_written_waits_for_the_right_while_others_go_on_A59(gate_lab: Lab) -> None:
    lab = gate_lab
    lab.topic("order")
    closed = lab.topic("closed")
    allow = ["--allow-principal", "User:relay", "--operation", "Write", "--operation", "Describe"]
    deny = ["--deny-principal", "User:relay", "--operation", "Write", "--topic", closed]
    rights(lab, "--add", *allow, "--topic", lab.prefix, "--resource-pattern-type", "prefixed")
    rights(lab, "--add", *deny)
    relay = lab.running_relay(at_the_gate(lab))
    lab.writer.number("c", *range(10), kind="closed")
    end = lab.end_of_wal()
    lab.writer.number("k", *range(100))
    lab.checker.wait_records(100)
    line = relay.wait_for_log("warning .*TOPIC_AUTHORIZATION_FAILED.*").group()
    assert closed in line and "the relay's principal" in line
    lab.wait_received()
    assert relay.running and not lab.confirmed_at_least(end)
    rights(lab, "--remove", *deny)
    lab.verify()
    assert PASSWORD not in relay.log_text()


def test_a_right_that_expires_makes_dead_letters_only_with_topic_wait(gate_lab: Lab) -> None:
    lab = gate_lab
    make_letters(lab)
    lab.topic("order", 1)
    closed = lab.topic("closed", 1)
    allow = ["--allow-principal", "User:relay", "--operation", "Write", "--operation", "Describe"]
    deny = ["--deny-principal", "User:relay", "--operation", "Write", "--topic", closed]
    rights(lab, "--add", *allow, "--topic", lab.prefix, "--resource-pattern-type", "prefixed")
    relay = lab.running_relay({**at_the_gate(lab), **settings()})
    first = lab.writer.number("c", 1, 2, kind="closed")
    lab.verify()
    rights(lab, "--add", *deny)
    waiting = lab.writer.number("c", 3, 4, kind="closed")
    end = lab.end_of_wal()
    relay.wait_for_log("warning .*TOPIC_AUTHORIZATION_FAILED.*")
    lab.writer.number("k", 1, 2)
    lab.checker.wait_records(len(first) + 2)
    assert states(lab) == {} and not lab.confirmed_at_least(end)
    rights(lab, "--remove", *deny)
    in_order(lab, *first, *waiting)
    lab.verify()
    assert states(lab) == {}

    assert relay.stop() == 0
    rights(lab, "--add", *deny)
    relay = lab.running_relay({**at_the_gate(lab), **settings(topic_wait="1s")})
    letters = [small(lab, "c", n, "closed") for n in (5, 6)]
    wait_states(lab, *zip(letters, ("waiting", "held")))
    lab.wait_confirmed()
    found = row(lab, letters[0])
    assert (found["reason"], found["error_code"]) == ("not authorized", "TOPIC_AUTHORIZATION_FAILED")
    rights(lab, "--remove", *deny)
    command(relay, "retry", "--all")
    wait_resolved(lab)
    in_order(lab, *first, *waiting, *letters)


def test_a_wrong_password_is_told_and_not_shown_A60(gate_lab: Lab) -> None:
    lab = gate_lab
    relay = wait_refused(lab, at_the_gate(lab, WRONG), "SASL authentication error")
    assert "check sasl.mechanism, sasl.username and sasl.password" in relay.log_text()
    assert WRONG not in relay.log_text()
    rights(
        lab, "--add", "--allow-principal", "User:relay", "--operation", "Write", "--topic", f"{lab.prefix}order"
    )
    then_arrives(lab, relay, at_the_gate(lab))


def test_a_certificate_that_is_not_trusted_is_told_A60(gate_lab: Lab, folder: Path) -> None:
    lab = gate_lab
    relay = wait_refused(lab, by_tls(lab, folder / "other.crt"), "certificate verify failed")
    then_arrives(lab, relay, by_tls(lab, folder / "ours.crt"))


def test_a_broker_that_sends_its_clients_astray_is_told_by_the_name_it_gives_A65(gate_lab: Lab) -> None:
    lab = gate_lab
    astray = {"kafka": {"bootstrap.servers": lab.kafka.address("LOST")}}
    relay = wait_refused(lab, astray, "astray.invalid.*advertised.listeners")
    then_arrives(lab, relay, {})
