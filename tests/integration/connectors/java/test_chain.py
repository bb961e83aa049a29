"""Chains of Java connectors that have Python classes are checked."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from tests.integration.connectors.java.conftest import MakeConnector

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]


def errors(spec: RunSpec) -> list[tuple[str, str]]:
    return [(found["key"], found["message"]) for found in validate_connector(spec) if found["level"] == "error"]


def test_java_connector_with_a_python_converter_is_valid_and_its_keys_are_checked(
    make_connector: MakeConnector,
) -> None:
    connector = make_connector("OddSources$Varied")
    connector.config |= {"value.converter": "io.confluent.connect.avro.AvroConverter"}
    ((key, message),) = errors(connector.spec())
    assert key == "value.converter.schema.registry.url"
    assert "no default" in message

    assert errors(connector.spec(value_converter_schema_registry_url="http://localhost:1")) == []
