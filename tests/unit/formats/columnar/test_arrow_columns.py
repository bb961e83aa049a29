"""Converted columns become the columns of a Parquet file that the values themselves would have become."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.formats.columnar.arrow_columns import file_columns
from airflow_connect.formats.columnar.arrow_schema import ArrowMapping
from airflow_connect.formats.parquet import ValueColumns
from tests.support.session.searching import examples
from tests.unit.formats.connect_columns import column
from tests.unit.formats.connect_values import schema_and_values, struct_schemas

MAPPING = ArrowMapping()


def _columns(schema: Schema, values: list[Any]) -> pa.RecordBatch | None:
    return file_columns(column(schema, values), schema, MAPPING.arrow_schema(schema))


def _expected(schema: Schema, values: list[Any]) -> pa.RecordBatch:
    columns = MAPPING.arrow_schema(schema)
    return ValueColumns(schema, columns, MAPPING.transform(schema), "ParquetFormat").batch(values)


@settings(max_examples=examples(300), deadline=None)
@given(schema_and_values(struct_schemas))
def test_columns_of_any_schema_equal_those_of_values(drawn: tuple[Schema, list[Any]]) -> None:
    schema, values = drawn
    if not values:
        return
    found = _columns(schema, values)
    if found is None:
        assert _may_be_null_around_a_struct(schema)
        return
    found.validate(full=True)
    assert found.equals(_expected(schema, values))


def _may_be_null_around_a_struct(schema: Schema) -> bool:
    """Whether a struct that may be null has a required member that is nested: Arrow has no cheap value for it."""
    parts = [field.schema for field in schema.fields] + ([schema.value_schema] if schema.value_schema else [])
    is_nested = any(f.schema.fields or f.schema.value_schema for f in schema.fields if not f.schema.optional)
    return (schema.optional and is_nested) or any(map(_may_be_null_around_a_struct, parts))


@pytest.mark.parametrize("text", ["0", "-1", "1", "127", "-128", "128", "9" * 38, "-" + "9" * 38, "255", "-32769"])
def test_decimals_of_every_width_are_read(text: str) -> None:
    schema = s.struct(("d", s.decimal(0)), ("e", s.decimal(0, optional=True)))
    values = [{"d": Decimal(text), "e": None}, {"d": Decimal(1), "e": Decimal(text)}]
    found = _columns(schema, values)
    assert found is not None and found.equals(_expected(schema, values))


def test_decimals_with_too_many_digits_are_left_to_the_reference() -> None:
    schema = s.struct(("d", s.decimal(0)))
    columns = MAPPING.arrow_schema(schema)
    for raw in ((10**38).to_bytes(16, "big"), bytes(17), b""):
        values = pa.array([{"d": raw}], pa.struct([("d", pa.binary())]))
        assert file_columns(values, schema, columns) is None


def test_null_that_has_a_default_or_is_refused_is_left_to_the_reference() -> None:
    for member in (s.INT32, Schema(Type.INT32, optional=True, default=7)):
        schema = Schema(Type.STRUCT, fields=(Field("n", 0, member),))
        values = pa.array([{"n": 1}, {"n": None}], pa.struct([("n", pa.int32())]))
        assert file_columns(values, schema, MAPPING.arrow_schema(schema)) is None
