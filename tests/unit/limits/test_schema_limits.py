"""Schemas and names that would fill the memory are refused with a sentence."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import pytest

from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import STRING, Schema, Type, decimal, struct
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.references import References
from airflow_connect.converters.json_schema_mapping.to_connect import schema_to_connect
from airflow_connect.errors import ConfigError, DataError, SchemaError
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
from airflow_connect.transforms.fields.flatten import Flatten
from airflow_connect.transforms.fields.mask_field import MaskField
from airflow_connect.transforms.fields.timestamp_converter import TimestampConverter
from airflow_connect.transforms.headers.insert_header import InsertHeader
from tests.unit.limits import cases


@pytest.mark.parametrize("avro_type", cases.AVRO_SCHEMAS[1:3], ids=["record", "fixed"])
def test_avro_array_of_elements_without_bytes_is_refused(avro_type: Any) -> None:
    with pytest.raises(SchemaError, match="elements of an array take no bytes"):
        read_schema(avro_type, [], AvroSettings())


def test_avro_schema_that_doubles_at_each_level_is_refused() -> None:
    with pytest.raises(SchemaError, match="more than 100000 parts"):
        read_schema(cases._doubling(40), [], AvroSettings())


def test_avro_schema_of_a_hundred_levels_is_read_and_no_deeper_one() -> None:
    assert read_schema(cases._deep_avro(99), [], AvroSettings()).schema is not None
    with pytest.raises(SchemaError, match="nested more than 100 levels"):
        read_schema(cases._deep_avro(101), [], AvroSettings())


@pytest.mark.parametrize("word", ["properties", "allOf"])
def test_json_schema_that_doubles_at_each_level_is_refused(word: str) -> None:
    def level(n: int) -> dict[str, Any]:
        before = {"$ref": f"#/definitions/a{n - 1}"}
        return {word: {"x": before, "y": before} if word == "properties" else [before, before]}

    document = {"definitions": {"a0": {"type": "object"}, **{f"a{n}": level(n) for n in range(1, 40)}}, **level(40)}
    with pytest.raises(SchemaError, match="more than 100000 parts"):
        schema_to_connect(References(json.dumps(document), {}), JsonSchemaOptions())


def _record(value: Any, schema: Schema | None = None) -> SinkRecord:
    return SinkRecord(topic="t", partition=0, offset=0, value=value, value_schema=schema)


def test_flatten_long_name_around_many_short_ones_is_refused() -> None:
    flatten = Flatten.Value()
    flatten.configure({})
    names = {str(number): 0 for number in range(1000)}
    assert len(flatten.apply(_record({"n" * 10_000: names})).value) == 1000
    with pytest.raises(DataError, match="more than 16000000 characters"):
        flatten.apply(_record({"n" * 20_000: names}))
    wide = struct(*((name, STRING) for name in names))
    with pytest.raises(DataError, match="more than 16000000 characters"):
        flatten.apply(_record({"n" * 20_000: dict.fromkeys(names, "x")}, struct(("n" * 20_000, wide))))


@pytest.mark.parametrize("replacement", ["1E999999999", "9" * 9_864, "-1e2147483647"])
def test_mask_field_replacement_too_large_for_the_scale_is_a_data_error(replacement: str) -> None:
    mask = MaskField.Value()
    mask.configure({"fields": "a", "replacement": replacement})
    with pytest.raises(DataError, match="at most 9864 are written"):
        mask.apply(_record({"a": cases.DECIMAL_VALUES["amount"]}, struct(("a", decimal(2)))))


def test_insert_header_literal_nested_too_deeply_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="nested more than 100 times") as caught:
        InsertHeader().configure({"header": "h", "value.literal": "[" * 260 + "]" * 260})
    assert caught.value.config_path == "value.literal"


@pytest.mark.parametrize("depth", [260, 100_000])
def test_source_offsets_record_nested_too_deeply_is_left_out(depth: int, caplog: pytest.LogCaptureFixture) -> None:
    offsets, deep = SourceOffsets("c"), b"[" * depth + b"]" * depth
    offsets.take(b'["c",{"file":"a"}]', b'{"position":5}')
    offsets.take(b'["c",{"file":%b}]' % deep, b'{"position":5}')
    offsets.take(b'["c",{"file":"a"}]', b'{"position":%b}' % deep)
    assert offsets.get({"file": "a"}) == {"position": 5}
    assert len(offsets) == 1
    assert "not written by Kafka Connect" in caplog.text


def test_every_family_of_cases_draws_the_same_case_from_the_same_seed() -> None:
    for family in cases.FAMILIES.values():
        assert family(Random("7"))[0] == family(Random("7"))[0]


def test_decimal_schema_with_a_scale_that_is_no_number_is_a_data_error() -> None:
    mask = MaskField.Value()
    mask.configure({"fields": "a"})
    broken = Schema(Type.BYTES, name=decimal(2).name, parameters={"scale": " 2 "})
    with pytest.raises(DataError, match="parameter scale must be an integer of 32 bits"):
        mask.apply(_record({"a": cases.DECIMAL_VALUES["amount"]}, struct(("a", broken))))


@pytest.mark.parametrize("sign", ["", "-"])
def test_timestamp_converter_year_of_thousands_of_digits_is_a_data_error(sign: str) -> None:
    convert = TimestampConverter.Value()
    convert.configure({"field": "a", "target.type": "Timestamp", "format": "yyyy"})
    said = []
    for digits in ("9" * 5000, "9" * 20):
        with pytest.raises(DataError) as caught:
            convert.apply(_record({"a": sign + digits}))
        said.append(caught.value.message)
    assert said[0] == said[1]
    assert convert.apply(_record({"a": "0" * 5000 + "1970"})).value["a"].year == 1970
