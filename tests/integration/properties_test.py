"""Properties of librdkafka: some would break the promise and are refused, others must have their effect."""

from __future__ import annotations

import re

import pytest

from kit.lab import Lab

CONFIG_EXIT = 78
CODECS = ["gzip", "lz4", "snappy", "zstd"]


def refused(lab: Lab, name: str, value: str, reason: str) -> None:
    """Expect that a relay with this property ends with one line that says why, and reads nothing."""
    lab.make_slot()
    before = lab.slot_row()["confirmed_flush_lsn"]
    lab.writer.number("k", 1)
    relay = lab.relay({"kafka": {name: value}})
    relay.start()
    assert relay.wait_exit() == CONFIG_EXIT
    errors = re.findall(r"^\S+ error .*$", relay.log_text(), re.MULTILINE)
    assert len(errors) == 1 and name in errors[0] and reason in errors[0], errors
    assert lab.slot_row()["confirmed_flush_lsn"] == before


@pytest.mark.parametrize("name", ["acks", "request.required.acks"])
@pytest.mark.parametrize("acks", ["0", "1"])
def test_acknowledgements_of_less_than_all_replicas_are_refused_A61(lab: Lab, name: str, acks: str) -> None:
    refused(lab, name, acks, "an event counts as published when all in-sync replicas have it")


@pytest.mark.parametrize("name", ["message.timeout.ms", "delivery.timeout.ms"])
def test_a_time_after_which_events_would_be_dropped_is_refused_A53(lab: Lab, name: str) -> None:
    refused(lab, name, "10000", "an event that times out is lost")


def test_an_id_for_transactions_of_kafka_is_refused_A72(lab: Lab) -> None:
    refused(lab, "transactional.id", "shop", "the relay does not write in Kafka's transactions")


def test_batches_are_really_compressed_whatever_the_codec_A62(lab: Lab) -> None:
    topics = {codec: lab.topic(codec, partitions=1) for codec in CODECS}
    for codec in CODECS:
        relay = lab.running_relay({"kafka": {"compression.codec": codec}})
        with lab.writer.transaction():
            for n in range(100):
                lab.writer.insert("k", f'"{n} {"x" * 1000}"', kind=codec)
        lab.verify(duplicates=0)
        assert relay.stop() == 0
        assert not relay.warnings(), relay.log_text()
    files = [lab.kafka.segment(topic) for topic in topics.values()]
    told = lab.kafka.tool("kafka.tools.DumpLogSegments", "--files", ",".join(map(str, files)))
    for codec, part in zip(CODECS, told.split("Dumping ")[1:], strict=True):
        # a first record that travels alone may not be worth compressing
        assert re.findall(r"compresscodec: (\w+)", part)[-1].lower() == codec, part
