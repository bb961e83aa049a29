"""What JsonSchemaConverter and ProtobufConverter share: configuration, failures that repeat, schemas that differ."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.schema import INT32, INT64, OPTIONAL_STRING, STRING, Schema, array, map_of, struct
from airflow_connect.errors import ConfigError, DataError, UnavailableError
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from airflow_connect.registry.converters.registry_converter import find_connect_mismatch
from tests.unit.registry.registry_double import RegistryDouble

CONVERTERS = (JsonSchemaConverter, ProtobufConverter)
URL = {"schema.registry.url": "http://127.0.0.1:1"}
PERSON = {"schemaType": "JSON", "schema": '{"type":"object","properties":{"a":{"type":"integer"}}}'}
ORDER = {"schemaType": "PROTOBUF", "schema": 'syntax = "proto3"; message M { int32 a = 1; }'}
NOT_FOUND = (404, {"error_code": 40401, "message": "Subject not found."})


@pytest.mark.parametrize(
    "name",
    [
        "io.confluent.connect.json.JsonSchemaConverter",
        "JsonSchemaConverter",
        "JsonSchema",
        "io.confluent.connect.protobuf.ProtobufConverter",
        "ProtobufConverter",
        "Protobuf",
    ],
)
def test_names_of_confluent_and_aliases_are_found(name: str) -> None:
    assert load_class(PluginKind.CONVERTER, name) in CONVERTERS


@pytest.mark.parametrize("converter", CONVERTERS, ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({}, "schema.registry.url"),
        ({**URL, "value.subject.name.strategy": "NoStrategy"}, "value.subject.name.strategy"),
        ({**URL, "auto.register.schemas": "perhaps"}, "auto.register.schemas"),
        ({**URL, "generalized.sum.type.support": "perhaps"}, "generalized.sum.type.support"),
        ({**URL, "schemas.cache.config": "many"}, "schemas.cache.config"),
    ],
)
def test_wrong_configuration_is_refused(converter: type, config: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        converter().configure(config)
    assert said in caught.value.message
    assert caught.value.config_path == said


def test_validation_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema", None)
    with pytest.raises(ConfigError, match="needs the Python package jsonschema") as caught:
        JsonSchemaConverter().configure({**URL, "json.fail.invalid.schema": "true"})
    assert "airflow-connect[json-schema]" in caught.value.suggestion


@pytest.mark.parametrize("converter", CONVERTERS, ids=lambda c: c.__name__)
def test_every_key_has_documentation(converter: Any) -> None:
    assert all(key.documentation.endswith(".") for key in converter.config_def.keys.values())


@pytest.mark.parametrize(
    ("kind", "schema", "data"), [(JsonSchemaConverter, PERSON, b"{}"), (ProtobufConverter, ORDER, b"\0")]
)
def test_schema_that_cannot_be_used_is_asked_for_once(kind: type, schema: Any, data: bytes) -> None:
    with RegistryDouble((200, schema), NOT_FOUND) as registry:
        converter = kind()
        converter.configure({"schema.registry.url": registry.url})
        for _ in range(3):
            with pytest.raises(DataError, match="the subject t-value does not have it") as caught:
                converter.to_connect("t", b"\0\0\0\0\x01" + data)
            assert caught.value.code == "data.subject"
            assert "in value.converter.value.subject.name.strategy." in caught.value.suggestion
        assert len(registry.requests) == 2


def test_registry_that_is_away_is_asked_again() -> None:
    answers = [(200, PERSON), (503, {}), (200, {"subject": "t-value", "version": 4, "id": 1, **PERSON})]
    with RegistryDouble(*answers) as registry:
        converter = JsonSchemaConverter()
        converter.configure({"schema.registry.url": registry.url, "max.retries": "0"})
        with pytest.raises(UnavailableError):
            converter.to_connect("t", b"\0\0\0\0\x01{}")
        found = converter.to_connect("t", b'\0\0\0\0\x01{"a":1}')
        assert found.schema is not None and found.schema.version == 4


@pytest.mark.parametrize(
    ("target", "value", "said"),
    [
        (struct(("a", INT64)), struct(("a", INT64)), ""),
        (struct(("a", INT64)), struct(("a", INT32)), "a is INT64 there and INT32 in the value"),
        (struct(("a", INT64)), struct(), "a is required there and missing in the value"),
        (struct(("a", OPTIONAL_STRING)), struct(("b", INT32)), ""),
        (struct(("a", struct(("b", INT64)))), struct(("a", struct(("b", STRING)))), "a.b is INT64"),
        (array(INT64), array(STRING), "[] is INT64"),
        (map_of(STRING, INT64), map_of(STRING, STRING), "[] is INT64"),
        (INT64, STRING, "the value is INT64 there and STRING"),
    ],
)
def test_mismatch_names_the_field(target: Schema, value: Schema, said: str) -> None:
    found = find_connect_mismatch(target, value)
    assert found.startswith(said) and bool(found) == bool(said)


@pytest.mark.parametrize("module", ["json_schema_converter", "protobuf_converter"])
def test_converter_loads_nothing_that_it_does_not_need(module: str) -> None:
    program = (
        f"import sys, airflow_connect.registry.converters.{module}; "
        "print([m for m in ('pyarrow', 'numpy', 'jsonschema', 'fastavro', 'airflow', 'pyspark') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
