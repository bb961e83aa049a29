"""Numbers and booleans in fixed width: by record, in columns, and as header converters."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.config.plugins import PluginKind, load_class
from airflow_connect.api.converter import ColumnarConverter, SchemaAndValue
from airflow_connect.api.schema import FLOAT32, INT16, INT32, Schema
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.primitive_converters import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import DataError

NUMBERS = (ShortConverter, IntegerConverter, LongConverter, FloatConverter, DoubleConverter, BooleanConverter)
VALUES: dict[type, st.SearchStrategy[Any]] = {
    ShortConverter: st.integers(-(1 << 15), (1 << 15) - 1),
    IntegerConverter: st.integers(-(1 << 31), (1 << 31) - 1),
    LongConverter: st.integers(-(1 << 63), (1 << 63) - 1),
    FloatConverter: st.floats(width=32),
    DoubleConverter: st.floats(),
    BooleanConverter: st.booleans(),
}
ALL = (*NUMBERS, StringConverter, ByteArrayConverter)


@pytest.mark.parametrize("converter", NUMBERS, ids=lambda c: c.__name__)
@settings(deadline=None)
@given(data=st.data())
def test_value_written_and_read_is_the_same(converter: type, data: st.DataObject) -> None:
    value = data.draw(VALUES[converter])
    message = converter().from_connect("t", converter.schema, value)
    assert len(message) == converter.width
    schema, read = converter().to_connect("t", message)
    assert schema is converter.schema and schema.optional
    assert read == value or (math.isnan(read) and math.isnan(value))
    assert math.copysign(1, read) == math.copysign(1, value) or math.isnan(value)


@pytest.mark.parametrize("converter", ALL, ids=lambda c: c.__name__)
@settings(deadline=None)
@given(
    messages=st.lists(st.one_of(*(st.binary(min_size=n, max_size=n) for n in (1, 2, 4, 8)))), skipped=st.integers(0, 3)
)
def test_columns_of_any_messages_equal_the_records(converter: type, messages: list[bytes], skipped: int) -> None:
    one_by_one = converter()
    columns = one_by_one.to_columns("t", pa.array(messages, pa.binary())[skipped:])
    messages = messages[skipped:]
    expected: list[SchemaAndValue] | None
    try:
        expected = [one_by_one.to_connect("t", message) for message in messages]
    except DataError:
        expected = None
    if columns is None:
        assert expected is None or any("\ufffd" in str(item.value) for item in expected)
        return
    (piece,) = columns
    assert expected is not None
    assert len(piece) == len(messages)
    assert all(item.schema is piece.schema for item in expected)
    assert repr(piece.values.to_pylist()) == repr([item.value for item in expected])


@pytest.mark.parametrize("converter", ALL, ids=lambda c: c.__name__)
def test_every_converter_of_plain_values_has_a_columnar_form(converter: type) -> None:
    assert isinstance(converter(), ColumnarConverter)


@pytest.mark.parametrize("converter", [IntegerConverter, LongConverter], ids=lambda c: c.__name__)
def test_columns_where_wrong_widths_add_up_gives_none(converter: type) -> None:
    width = converter.width
    column = pa.array([b"\0" * (width - 1), b"\0" * (width + 1)], pa.binary())
    assert converter().to_columns("t", column) is None


def test_columns_of_a_byte_that_is_no_boolean_gives_none() -> None:
    assert BooleanConverter().to_columns("t", pa.array([b"\0", b"\x02"], pa.binary())) is None


def test_string_columns_of_another_encoding_gives_none() -> None:
    converter = StringConverter()
    converter.configure({"converter.encoding": "ISO-8859-1"})
    assert converter.to_columns("t", pa.array([b"a"], pa.binary())) is None


@pytest.mark.parametrize(
    ("converter", "schema", "value"),
    [
        (ShortConverter, None, 1 << 15),
        (ShortConverter, INT16, 1 << 15),
        (ShortConverter, INT32, 1),
        (IntegerConverter, None, True),
        (LongConverter, None, 1 << 63),
        (FloatConverter, None, 0.1),
        (FloatConverter, None, 1e300),
        (FloatConverter, FLOAT32, 1),
        (DoubleConverter, None, "1.0"),
        (BooleanConverter, None, 1),
    ],
)
def test_writing_a_value_of_another_type_is_refused(converter: type, schema: Schema | None, value: Any) -> None:
    with pytest.raises(DataError, match=r"serialize|not compatible") as caught:
        converter().from_connect("t", schema, value)
    assert "JsonConverter" in caught.value.suggestion


def test_schemaless_numbers_that_fit_without_loss_are_written() -> None:
    assert FloatConverter().from_connect("t", None, 1.5) == b"\x3f\xc0\0\0"
    assert FloatConverter().from_connect("t", None, math.nan) == b"\x7f\xc0\0\0"
    assert ShortConverter().from_connect("t", None, -2) == b"\xff\xfe"


@pytest.mark.parametrize("name", ["Short", "Integer", "Long", "Float", "Double", "Boolean"])
@pytest.mark.parametrize("kind", [PluginKind.CONVERTER, PluginKind.HEADER_CONVERTER])
def test_java_name_as_converter_or_header_converter_is_found(kind: PluginKind, name: str) -> None:
    converter = load_class(kind, f"org.apache.kafka.connect.converters.{name}Converter")()
    converter.configure({})
    zeros = bytes(converter.width)
    assert converter.to_connect_header("t", "h", zeros) == converter.to_connect("t", zeros)
    value = converter.to_connect("t", zeros).value
    assert converter.from_connect_header("t", "h", None, value) == zeros
