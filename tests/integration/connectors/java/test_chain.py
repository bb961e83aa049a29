"""The chain of a Java connector is Java's."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from tests.integration.connectors.java.conftest import MakeConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]


def errors(spec: RunSpec) -> list[tuple[str, str]]:
    return [(found["key"], found["message"]) for found in validate_connector(spec) if found["level"] == "error"]


def test_java_connector_refuses_classes_that_are_python_here(make_connector: MakeConnector) -> None:
    connector = make_connector("OddSources$Varied")
    connector.config |= {
        "value.converter": "io.confluent.connect.avro.AvroConverter",
        "value.converter.schema.registry.url": "http://localhost:1",
    }
    ((key, message),) = errors(connector.spec())
    assert key == "value.converter"
    assert "io.confluent.connect.avro.AvroConverter is a Python class here" in message
