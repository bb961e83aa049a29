"""Old records without a key or headers in a connector that stores them: dead letters, and the rest is written."""

from __future__ import annotations

import pytest

from airflow_connect.api.record import KafkaRecord
from tests.unit.connectors.files.shared.staging import copy


@pytest.mark.parametrize("stored", ["keys", "headers"])
def test_records_without_what_is_stored_are_dead_letters_and_the_others_arrive(stored: str) -> None:
    connector = {
        "flush.size": "10",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        f"store.kafka.{stored}": "true",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": "dlq",
    }
    headers = (("h", b"1"),)
    records = [KafkaRecord("t", 0, offset, b"k", b"{}", 0, headers=headers) for offset in range(3)]
    records[1] = KafkaRecord("t", 0, 1, None, b"{}", 0)

    outcome, _ = copy(connector, [records], columnar=True)

    assert outcome.error == ""
    assert sum(report.written for report in outcome.reports) == 2
    assert [letter["origin"] for letter in outcome.dead_letters] == [["t", 0, 1]]
