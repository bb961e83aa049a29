"""Avro in columns is the reference path in columns: equal where it answers, and it never answers for broken data."""

from __future__ import annotations

import io
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import DECIMAL, Schema, Type
from airflow_connect.converters.avro.columns import column_reader, read_column
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import parsed_for_reading
from airflow_connect.converters.avro.read_changes import change_of_decimal
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.converters.scan import Scan, padded
from tests.unit.converters.avro.avro_schemas import Made, encoded, records

ENTRY = {
    "type": "record",
    "name": "MapEntry",
    "namespace": "io.confluent.connect.avro",
    "fields": [{"name": "key", "type": "int"}, {"name": "value", "type": "int"}],
}
"""Of a map whose keys are not strings."""


def _entry(key: Any) -> dict[str, Any]:
    return {**ENTRY, "fields": [{"name": "key", "type": key}, ENTRY["fields"][1]]}


OTHER = b"\xff" * 7


def _columns(avro_type: Any, messages: list[bytes]) -> list[Any] | None:
    """Values of messages that lie between other bytes, read in columns."""
    schema = read_schema(avro_type, [], AvroSettings()).schema
    assert schema is not None
    reader = column_reader(avro_type, [], schema)
    assert reader is not None
    data = OTHER + OTHER.join(messages) + OTHER
    sizes = np.array([len(message) for message in messages], np.int64)
    starts = np.cumsum(sizes + len(OTHER)) - sizes
    scan = Scan(pa.py_buffer(data), padded(np.frombuffer(data, np.uint8)), starts, starts + sizes)
    column = read_column(reader, scan)
    if column is None:
        return None
    column.validate(full=True)
    return [_with_decimals(schema, value) for value in column.to_pylist()]


def _reference(avro_type: Any, messages: list[bytes]) -> list[Any]:
    """Values read one by one."""
    read, parsed, made = read_schema(avro_type, [], AvroSettings()), parsed_for_reading(avro_type), []
    for message in messages:
        stream = io.BytesIO(message)
        value = fastavro.schemaless_reader(stream, parsed, None)
        if stream.tell() != len(message):
            raise EOFError
        made.append(value if read.change is None else read.change(value))
    return made


def _with_decimals(schema: Schema, value: Any) -> Any:
    """A value of a column with Connect's decimals."""
    if value is None:
        return None
    if schema.name == DECIMAL:
        return change_of_decimal(int(schema.parameters["scale"]))(value)
    if schema.type is Type.ARRAY:
        return [_with_decimals(schema.value_schema, item) for item in value]
    if schema.type is Type.MAP:
        return {key: _with_decimals(schema.value_schema, item) for key, item in value}
    if schema.type is Type.STRUCT:
        return {f.name: _with_decimals(f.schema, value[f.name]) for f in schema.fields}
    return value


@settings(deadline=None)
@given(st.data())
def test_columns_random_schemas_and_values_equal_reference(data: st.DataObject) -> None:
    avro_type, values = data.draw(records(Made(columnar=True)))
    messages = encoded(avro_type, data.draw(st.lists(values, min_size=1, max_size=12)))
    found = _columns(avro_type, messages)
    assert found is not None
    assert found == _reference(avro_type, messages)


@settings(deadline=None)
@given(st.data())
def test_columns_damaged_data_is_none_or_equals_reference(data: st.DataObject) -> None:
    avro_type, values = data.draw(records(Made(columnar=True)))
    messages = encoded(avro_type, data.draw(st.lists(values, min_size=1, max_size=6)))
    victim = data.draw(st.integers(0, len(messages) - 1))
    message = bytearray(messages[victim])
    if data.draw(st.booleans()):
        del message[data.draw(st.integers(0, len(message))) :]
    else:
        for _ in range(data.draw(st.integers(1, 4))):
            message[data.draw(st.integers(0, len(message) - 1))] = data.draw(st.sampled_from([0, 1, 2, 127, 128, 255]))
    messages[victim] = bytes(message)
    found = _columns(avro_type, messages)
    # The reference path raises an error of its own where a number is beyond its type.
    if found is not None:
        # NaN is not equal to itself.
        assert repr(found) == repr(_reference(avro_type, messages))


@pytest.mark.parametrize("number", [0, -1, 63, 64, -64, -65, 2**31, 2**53, 2**55, -(2**55), 2**56, 2**62, -(2**63)])
def test_columns_long_of_every_length_is_read(number: int) -> None:
    assert _columns("long", encoded("long", [number, 1, number])) == [number, 1, number]


@pytest.mark.parametrize(
    ("avro_type", "message"),
    [
        ("long", b"\xff" * 10 + b"\x01"),
        ("long", b"\xff" * 9 + b"\x02"),
        ("int", encoded("long", [2**31])[0]),
        ("boolean", b"\x02"),
        ("string", b"\x04a"),
        ("string", b"\x01"),
        ("string", b"\x04\xff\xfe"),
        ("string", encoded("long", [2**62])[0]),
        (["null", "int"], b"\x04\x02"),
        (["null", "int"], b"\x80\x00"),
        ({"type": "enum", "name": "E", "symbols": ["A"]}, b"\x02"),
        ({"type": "bytes", "logicalType": "decimal", "precision": 4}, b"\x00"),
        ("double", b"\x00" * 7),
        ("double", b"\x00" * 9),
        ("long", b""),
    ],
)
def test_columns_odd_message_is_none(avro_type: Any, message: bytes) -> None:
    good = encoded(avro_type, [None if isinstance(avro_type, list) else _any_value(avro_type)])
    assert _columns(avro_type, [*good, message]) is None


def _any_value(avro_type: Any) -> Any:
    simple = {"long": 1, "int": 1, "boolean": True, "string": "x", "double": 1.5}
    return simple[avro_type] if isinstance(avro_type, str) else {"enum": "A", "bytes": b"\x01"}[avro_type["type"]]


@pytest.mark.parametrize(
    "avro_type",
    [
        {"type": "map", "values": ["int", "string"]},
        {"type": "array", "items": _entry(["null", "string"])},
        {"type": "array", "items": _entry("double")},
        {"type": "array", "items": _entry({"type": "bytes", "logicalType": "decimal", "precision": 4})},
        {"type": "array", "items": _entry({"type": "array", "items": "int"})},
        ["int", "string"],
        {"type": "record", "name": "Empty", "fields": []},
    ],
)
def test_column_reader_parts_without_columnar_form_is_none(avro_type: Any) -> None:
    wrapped = {"type": "record", "name": "Whole", "fields": [{"name": "part", "type": avro_type}]}
    schema = read_schema(wrapped, [], AvroSettings()).schema
    assert schema is not None
    assert column_reader(wrapped, [], schema) is None


ARRAY = {"type": "array", "items": "long"}


def test_arrays_of_any_sizes_are_columns() -> None:
    values = [[], [1], list(range(1000)), [], [2, 3], [-(2**63)] * 5]
    assert _columns(ARRAY, encoded(ARRAY, values)) == values
    nested = {"type": "array", "items": {"type": "array", "items": ["null", "string"]}}
    values = [[], [[]], [["a", None], [], ["", "b"]], [[None]]]
    assert _columns(nested, encoded(nested, values)) == values
    assert _columns(ARRAY, encoded(ARRAY, [[], []])) == [[], []]


MAP = {"type": "map", "values": ["null", "long"]}
OF_INTEGERS = {"type": "array", "items": ENTRY}


def test_maps_of_any_sizes_are_columns() -> None:
    values = [{}, {"a": 1}, {str(n): n for n in range(1000)}, {}, {"b": None, "": 3, "a": -1}]
    found = _columns(MAP, encoded(MAP, values))
    assert found == values
    assert [list(value) for value in found or []] == [list(value) for value in values]
    assert _columns(MAP, encoded(MAP, [{}, {}])) == [{}, {}]
    nested = {"type": "map", "values": {"type": "array", "items": {"type": "map", "values": "boolean"}}}
    values = [{"x": [{}, {"y": True}], "z": []}, {}, {"x": [{"x": False, "y": True}]}]
    assert _columns(nested, encoded(nested, values)) == values


def test_arrays_of_entries_are_maps() -> None:
    values = [[{"key": 5, "value": 1}, {"key": -1, "value": 2}], [], [{"key": 5, "value": 0}]]
    assert _columns(OF_INTEGERS, encoded(OF_INTEGERS, values)) == [{5: 1, -1: 2}, {}, {5: 0}]
    backwards = {"type": "array", "items": {**ENTRY, "fields": ENTRY["fields"][::-1]}}
    assert _columns(backwards, encoded(backwards, values)) == [{5: 1, -1: 2}, {}, {5: 0}]
    assert _columns(OF_INTEGERS, encoded(OF_INTEGERS, [*values, [{"key": 5, "value": 1}] * 2])) is None


def test_keys_of_other_maps_are_not_the_same_key() -> None:
    assert _columns(MAP, encoded(MAP, [{"a": 1, "b": 2}, {"b": 3, "a": 4}])) == [{"a": 1, "b": 2}, {"b": 3, "a": 4}]


@pytest.mark.parametrize(
    "message",
    [
        b"\x04" + b"\x02a\x02\x02" + b"\x02a\x02\x04" + b"\x00",  # a key twice: the last value counts
        b"\x02" + b"\x02a\x00" + b"\x02" + b"\x02b\x00" + b"\x00",  # two blocks
        b"\x01\x06" + b"\x02a\x00" + b"\x00",  # a block with its size
        b"\x02" + b"\x02\xff\x00" + b"\x00",  # a key that is not UTF-8
        b"\x02" + b"\x02a",  # truncated
        b"\x02" + b"\x02a\x00",  # without an end
        b"\x00\x00",  # a byte more
    ],
)
def test_odd_maps_are_left_to_the_records(message: bytes) -> None:
    assert _columns(MAP, [encoded(MAP, [{"a": 1}])[0], message]) is None


@pytest.mark.parametrize(
    "message",
    [
        b"\x02\x02" + b"\x02\x06\x00" + b"\x02x",  # two blocks; a length of 6 would fit, too
        b"\x01\x02\x02\x00" + b"\x02x",  # a block with its size
    ],
)
def test_odd_arrays_before_other_fields_are_left_to_the_records(message: bytes) -> None:
    fields = [{"name": "list", "type": ARRAY}, {"name": "data", "type": "bytes"}]
    whole = {"type": "record", "name": "Whole", "fields": fields}
    good = encoded(whole, [{"list": [1], "data": b"y"}])
    assert _reference(whole, [message])[0]["data"] == b"x"
    assert _columns(whole, [*good, message]) is None


@pytest.mark.parametrize(
    "message",
    [
        b"\x02\x02\x02\x04\x00",  # two blocks
        b"\x01\x02\x02\x00",  # a block with its size
        b"\x02\x02",  # without an end
        b"\x04\x02\x00",  # an item less
        b"\x02\x02\x00\x00",  # a byte more
        encoded("long", [2**40])[0],
        encoded(ARRAY, [[1] * 1001])[0],
    ],
)
def test_odd_arrays_are_left_to_the_records(message: bytes) -> None:
    assert _columns(ARRAY, [encoded(ARRAY, [[1, 2]])[0], message]) is None
