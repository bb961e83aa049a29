"""Flatten: the columnar form equals the record form."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, Type, map_of, struct
from airflow_connect.transforms.fields.flatten import Flatten
from tests.support.values.columns import (
    assert_same_both_ways,
    records_of,
    struct_records,
    struct_schemas,
    to_columns,
    to_records,
)


def flatten(**settings: str) -> Flatten.Value:
    transformation = Flatten.Value()
    transformation.configure(settings)
    return transformation


@settings(deadline=None)
@given(struct_records(struct_schemas(depth=2)), st.sampled_from([".", "_", ""]))
def test_columns_any_struct_equal_records(records: list[SinkRecord], delimiter: str) -> None:
    assert_same_both_ways(flatten(delimiter=delimiter), records)


def test_columns_null_struct_leaves_its_members_null() -> None:
    inner = struct(("x", schemas.INT32), ("y", schemas.OPTIONAL_STRING), optional=True)
    schema = struct(("a", schemas.INT64), ("in", inner))
    values = [{"a": 1, "in": {"x": 2, "y": "b"}}, {"a": 3, "in": None}]
    records = records_of(schema, values)
    assert assert_same_both_ways(flatten(), records)
    batch = flatten().apply_columns(to_columns(records))
    assert batch is not None
    first, second = to_records(batch)
    assert first.value == {"a": 1, "in.x": 2, "in.y": "b"}
    assert second.value == {"a": 3, "in.x": None, "in.y": None}
    assert second.value_schema == struct(
        ("a", schemas.INT64), ("in.x", schemas.OPTIONAL_INT32), ("in.y", schemas.OPTIONAL_STRING)
    )


def test_columns_map_goes_record_by_record() -> None:
    schema = struct(("m", map_of(Schema(Type.STRING), schemas.INT32)))
    assert flatten().apply_columns(to_columns(records_of(schema, [{"m": {"k": 1}}]))) is None
