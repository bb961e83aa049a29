"""InsertField: the columnar form equals the record form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE, SinkRecord
from airflow_connect.api.schema import struct
from airflow_connect.transforms.fields.insert_field import InsertField
from tests.support.values.columns import assert_same_both_ways, struct_records, to_columns, to_records

EVERY_FIELD = {
    "topic.field": "t!",
    "partition.field": "p?",
    "offset.field": "o",
    "timestamp.field": "ts",
    "static.field": "s",
    "static.value": "fixed",
}


def insert(config: dict[str, str]) -> InsertField.Value:
    transformation = InsertField.Value()
    transformation.configure(config)
    return transformation


@settings(deadline=None)
@given(struct_records(), st.sampled_from(["true", "false"]))
def test_columns_any_struct_equal_records(records: list[SinkRecord], replace_null: str) -> None:
    assert_same_both_ways(insert(EVERY_FIELD | {"replace.null.with.default": replace_null}), records)


@pytest.mark.parametrize("key", ["topic.field", "partition.field", "offset.field", "timestamp.field"])
def test_columns_each_coordinate_is_inserted_as_a_column(key: str) -> None:
    expected = {"topic.field": "orders", "partition.field": 3, "offset.field": 9, "timestamp.field": 17}[key]
    record = SinkRecord(
        topic="orders",
        partition=3,
        offset=9,
        timestamp=17,
        value_schema=struct(("a", schemas.INT32)),
        value={"a": 1},
    )
    batch = insert({key: "new"}).apply_columns(to_columns([record]))
    assert batch is not None
    assert [found.value for found in to_records(batch)] == [{"a": 1, "new": expected}]


def test_columns_without_timestamps_insert_nulls() -> None:
    record = SinkRecord(
        topic="orders",
        partition=3,
        offset=9,
        timestamp_type=TIMESTAMP_NOT_AVAILABLE,
        value_schema=struct(("a", schemas.INT32)),
        value={"a": 1},
    )
    assert assert_same_both_ways(insert({"timestamp.field": "ts"}), [record])


def test_columns_field_that_is_there_already_goes_record_by_record() -> None:
    record = SinkRecord(topic="t", partition=0, offset=1, value_schema=struct(("a", schemas.INT32)), value={"a": 1})
    assert insert({"topic.field": "a"}).apply_columns(to_columns([record])) is None
