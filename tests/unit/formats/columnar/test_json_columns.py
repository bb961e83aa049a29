"""JSON lines out of columns are those out of values, byte for byte."""

from __future__ import annotations

import math
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.converters.json.writer import WriterOptions, value_writer
from airflow_connect.formats.columnar.json_columns import JsonColumnWriter
from tests.support.session.searching import examples
from tests.unit.formats.connect_columns import column
from tests.unit.formats.connect_values import schema_and_values

BASE64 = WriterOptions()


def _lines(schema: Schema, values: list[Any], options: WriterOptions = BASE64) -> list[bytes]:
    found = JsonColumnWriter(schema, options).lines(column(schema, values))
    assert found is not None
    return list(found.to_pylist())


def _expected(schema: Schema, values: list[Any], options: WriterOptions = BASE64) -> list[bytes]:
    write = value_writer(schema, options)
    return [(write(value) + "\n").encode() for value in values]


@settings(max_examples=examples(300), deadline=None)
@given(schema_and_values(), st.booleans())
def test_lines_of_any_schema_equal_those_of_values(drawn: tuple[Schema, list[Any]], numeric: bool) -> None:
    schema, values = drawn
    options = WriterOptions(numeric_decimals=numeric)
    assert _lines(schema, values, options) == _expected(schema, values, options)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.floats() | st.floats(1e-4, 1e8) | st.integers(-(10**8), 10**8).map(float), max_size=20))
def test_doubles_are_spelled_as_java_spells_them(values: list[float]) -> None:
    assert _lines(s.FLOAT64, values) == _expected(s.FLOAT64, values)


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.floats(width=32) | st.floats(0.0009765625, 2.0**24, width=32), max_size=20))
def test_floats_are_spelled_as_java_spells_them(values: list[float]) -> None:
    assert _lines(s.FLOAT32, values) == _expected(s.FLOAT32, values)


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(st.none() | st.text(st.characters(exclude_categories=("Cs",))) | st.sampled_from(['"', "a\\", "\x7f"])))
def test_texts_with_and_without_escapes_equal_those_of_values(values: list[str | None]) -> None:
    assert _lines(s.OPTIONAL_STRING, values) == _expected(s.OPTIONAL_STRING, values)


def test_null_with_a_default_is_the_default() -> None:
    named = Schema(Type.STRING, default='no "name"')
    schema = Schema(Type.STRUCT, fields=(Field("name", 0, named), Field("n", 1, s.OPTIONAL_INT32)))
    values = [{"name": None, "n": 1}, {"name": "é", "n": None}]
    assert _lines(schema, values) == _expected(schema, values)
    assert _lines(schema, values)[0] == b'{"name":"no \\"name\\"","n":1}\n'


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (s.struct(("n", s.INT32)), pa.array([{"n": None}], pa.struct([("n", pa.int32())]))),
        (s.INT64, pa.array([1, None], pa.int64())),
        (s.time(), pa.array([86_400_001], pa.int32())),
        (s.time(), pa.array([-1], pa.int32())),
    ],
    ids=["required-member", "required-value", "late-time", "negative-time"],
)
def test_values_that_the_reference_refuses_are_not_written(schema: Schema, values: Any) -> None:
    assert JsonColumnWriter(schema, WriterOptions()).lines(values) is None


def test_one_number_among_many_that_is_not_finite_is_text() -> None:
    values = [1.5, math.nan, math.inf, -math.inf, -0.0, 1e7, 123456.0]
    assert [line.strip() for line in _lines(s.FLOAT64, values)] == [
        b"1.5", b'"NaN"', b'"Infinity"', b'"-Infinity"', b"-0.0", b"1.0E7", b"123456.0"
    ]  # fmt: skip
