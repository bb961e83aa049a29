"""Something other than the registry answers, and records are tolerated: no valid record is skipped or a dead letter."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.record import KafkaRecord
from tests.unit.connectors.files.shared.staging import Outcome, copy
from tests.unit.registry.registry_double import RegistryDouble

AVRO = "io.confluent.connect.avro.AvroConverter"
JSON_SCHEMA = "io.confluent.connect.json.JsonSchemaConverter"
PROTOBUF = "io.confluent.connect.protobuf.ProtobufConverter"


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("converter", [AVRO, JSON_SCHEMA, PROTOBUF])
@pytest.mark.parametrize("role", ["key", "value"])
def test_404_of_an_ingress_fails_the_run_although_errors_are_tolerated(
    role: str, converter: str, columnar: bool
) -> None:
    outcome = _copied((404, b"default backend - 404"), role, converter, columnar)
    assert outcome.error.startswith("UnavailableError") and "Registry's answer about the schema 7" in outcome.error
    assert (outcome.files, outcome.dead_letters) == ([], [])


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize(
    "document",
    [
        {"schema": None}, {"schema": {"type": "long"}}, {"schema": 5}, {"schema": ""},
        {"schema": '"long"', "schemaType": ["AVRO"]},
    ],
)  # fmt: skip
def test_json_of_another_service_fails_the_run_although_errors_are_tolerated(document: Any, columnar: bool) -> None:
    outcome = _copied((200, document), "value", AVRO, columnar)
    assert outcome.error.startswith("UnavailableError") and "Registry's answer about the schema 7" in outcome.error
    assert (outcome.files, outcome.dead_letters) == ([], [])


def _copied(answer: tuple[int, Any], role: str, converter: str, columnar: bool) -> Outcome:
    message = b"\0\0\0\0\x07\x02"
    with RegistryDouble(answer) as ingress:
        config = {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": "dlq",
            f"{role}.converter": converter,
            f"{role}.converter.schema.registry.url": ingress.url,
            "flush.size": "10",
            "errors.retry.timeout": "0",
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        }
        key, value = (message, b"{}") if role == "key" else (None, message)
        records = [KafkaRecord("t", 0, n, key, value, 0) for n in range(5)]
        outcome, _ = copy(config, [records], columnar=columnar)
    return outcome
