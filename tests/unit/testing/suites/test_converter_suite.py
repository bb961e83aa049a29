"""The suite of converters: ours pass it, and it finds what is wrong with bad ones."""

# ruff: noqa: RUF012 (the suite declares its attributes)

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from airflow_connect.api import DataError, Schema, SchemaAndValue, SchemaType, array_schema, struct_schema
from airflow_connect.testing import ConverterConformance

TEXT = Schema(SchemaType.STRING, True)
PLACE = struct_schema(("id", Schema(SchemaType.INT64)), ("tags", array_schema(TEXT)))


class TestJsonWithSchemas(ConverterConformance):
    converter_class = "JsonConverter"
    values = [(Schema(SchemaType.INT32), 7), (PLACE, {"id": 1, "tags": ["a", None]}), (TEXT, None)]
    broken = [b"{", b"7", b'{"schema":{"type":"nonsense"},"payload":1}', b"\xff"]
    wrong_configs = [({"schemas.enable": "perhaps"}, "schemas.enable"), ({"decimal.format": "ROMAN"}, "decimal.format")]


class TestJsonWithoutSchemas(ConverterConformance):
    converter_class = "org.apache.kafka.connect.json.JsonConverter"
    config = {"schemas.enable": "false"}
    values = [(None, {"id": 1, "tags": ["a", None]}), (None, [1.5, True]), (None, "text")]
    broken = [b"{", b"\xff", b"nonsense"]


class TestString(ConverterConformance):
    converter_class = "StringConverter"
    values = [(TEXT, "text"), (TEXT, ""), (TEXT, "\u00e4\U0001f600")]


class TestByteArray(ConverterConformance):
    converter_class = "ByteArrayConverter"
    values = [(Schema(SchemaType.BYTES, True), b"\x00\xff"), (Schema(SchemaType.BYTES, True), b"")]


class TestLong(ConverterConformance):
    converter_class = "LongConverter"
    values = [(Schema(SchemaType.INT64, True), -(2**63)), (Schema(SchemaType.INT64, True), 7)]
    broken = [b"1234567", b"123456789"]


class Bad:
    """Changes its input, counts what it writes, and lets any error out."""

    written = 0

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        pass

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        if value is None:
            return None
        Bad.written += 1
        value["seen"] = True
        return str(Bad.written).encode()

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        return SchemaAndValue(None, data and int(data))


class OfBad(ConverterConformance):
    converter_class = f"{__name__}:Bad"
    broken = [b"no number"]
    wrong_configs = [({"key": "wrong"}, "key")]

    @property
    def values(self) -> Any:
        return self._values

    def __init__(self) -> None:
        self._values = [(None, {"id": 1})]


@pytest.mark.parametrize(
    "name",
    [
        "test_value_comes_back_as_it_went_in",
        "test_input_is_not_changed",
        "test_writing_again_gives_equal_bytes",
        "test_any_bytes_are_a_value_or_a_data_error",
        "test_broken_bytes_are_a_data_error",
    ],
)
def test_suite_finds_what_a_bad_converter_does(name: str):
    suite = OfBad()
    with pytest.raises((AssertionError, ValueError, DataError)):
        getattr(suite, name)(suite.open_converter())


def test_suite_wants_values_and_configurations_that_are_refused():
    with pytest.raises(AssertionError, match="List some values"):
        ConverterConformance().test_there_are_values_to_carry()
    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE"):
        OfBad().test_wrong_configuration_names_the_key()
