"""SetSchemaMetadata: the columnar form equals the record form."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import struct
from airflow_connect.transforms.set_schema_metadata import SetSchemaMetadata
from tests.support.values.columns import assert_same_both_ways, struct_records, to_columns, to_records


def rename(config: dict[str, str]) -> SetSchemaMetadata.Value:
    transformation = SetSchemaMetadata.Value()
    transformation.configure(config)
    return transformation


@settings(deadline=None)
@given(struct_records(), st.sampled_from([{"schema.name": "n"}, {"schema.version": "2", "schema.name": ""}]))
def test_columns_any_struct_equal_records(records: list[SinkRecord], config: dict[str, str]) -> None:
    assert_same_both_ways(rename(config), records)


def test_columns_plain_struct_gets_name_and_version() -> None:
    record = SinkRecord(topic="t", partition=0, offset=1, value_schema=struct(("a", schemas.INT32)), value={"a": 1})
    batch = rename({"schema.name": "n", "schema.version": "9"}).apply_columns(to_columns([record]))
    assert batch is not None
    assert batch.value.schema == struct(("a", schemas.INT32), name="n", version=9)
    assert to_records(batch)[0].value == {"a": 1}


def test_columns_of_other_than_structs_go_record_by_record() -> None:
    record = SinkRecord(topic="t", partition=0, offset=1, value_schema=schemas.STRING, value="x")
    assert rename({"schema.name": "n"}).apply_columns(to_columns([record])) is None
    assert rename({"schema.name": "n"}).apply_columns(to_columns([record.changed(value_schema=None)])) is None
