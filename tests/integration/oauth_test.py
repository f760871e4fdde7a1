"""OAUTHBEARER: tokens are renewed while the relay runs."""

from __future__ import annotations

from typing import Iterator

import pytest

from kit.kafka import Kafka
from kit.lab import Lab
from kit.load import Load
from kit.postgres import Postgres

LIFE_S = 3
CLAIM = 'unsecuredLoginStringClaim_sub="broker"'
LOGIN = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"


@pytest.fixture
def token_lab(postgres: Postgres) -> Iterator[Lab]:
    """A lab whose broker closes a connection when the token that opened it has expired."""
    listener = "listener.name.token."
    properties = {
        "sasl.enabled.mechanisms": "OAUTHBEARER",
        f"{listener}oauthbearer.sasl.jaas.config": f"{LOGIN} required {CLAIM};",
        f"{listener}oauthbearer.connections.max.reauth.ms": str(LIFE_S * 1000),
    }
    with Kafka(properties, {"TOKEN": "SASL_PLAINTEXT"}) as broker, Lab(postgres, broker, "token") as lab:
        yield lab


def test_events_pass_after_the_first_token_has_expired(token_lab: Lab) -> None:
    lab = token_lab
    lab.topic("order")
    lab.running_relay(
        {
            "kafka": {
                "bootstrap.servers": lab.kafka.address("TOKEN"),
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principal=relay lifeSeconds={LIFE_S}",
            }
        }
    )
    with Load(lab, pause=0.01):
        first = lab.checker.wait_records(1)[0].timestamp_ms
        while lab.checker.collect()[-1].timestamp_ms < first + 3 * LIFE_S * 1000:
            lab.checker.wait_records(len(lab.checker.records) + 1)
    lab.verify()
