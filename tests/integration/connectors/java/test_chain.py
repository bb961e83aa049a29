"""Chains are Java's or Python's, and never mixed."""

from __future__ import annotations

import pytest

from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from tests.integration.connectors.java.conftest import MakeConnector
from tests.support.copies.java_plugin import JavaConnector, locked_plugin

pytestmark = [pytest.mark.integration, pytest.mark.budget(20)]

PATTERN_RENAME = "com.github.jcustenborder.kafka.connect.transform.common.PatternRename$Value"


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


def test_python_connector_refuses_java_transformations(make_connector: MakeConnector, tmp_path) -> None:
    worker = make_connector("OddSources$Varied")
    path = locked_plugin(tmp_path / "plugins", "kafka-connect-transform-common-0.1.0.14")
    config = {
        "connector.class": "FileStreamSink",
        "topics": "t",
        "file": str(tmp_path / "out"),
        "transforms": "rename",
        "transforms.rename.type": PATTERN_RENAME,
        "transforms.rename.field.pattern": "a",
        "transforms.rename.field.replacement": "b",
    }
    sink = JavaConnector(worker.bootstrap, "python-sink", path, config, worker.worker_config)
    ((_, message),) = errors(sink.spec())
    assert f"{PATTERN_RENAME} is a Java class, which only Java connectors can use" in message
