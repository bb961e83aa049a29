"""InsertHeader, DropHeaders, HeaderFrom, ValueToKey: the columnar form equals the record form."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.columns import NO_PARTITION, ValueColumns
from airflow_connect.api.record import Header, SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.converters.header_columns import TEXTS
from airflow_connect.formats.key_and_header_values import stored_header_text
from airflow_connect.transforms.fields.value_to_key import ValueToKey
from airflow_connect.transforms.headers.drop_headers import DropHeaders
from airflow_connect.transforms.headers.header_from import HeaderFrom
from airflow_connect.transforms.headers.insert_header import InsertHeader
from airflow_connect.transforms.topics.timestamp_router import TimestampRouter
from tests.support.values.columns import records_of, struct_records, struct_schemas, to_columns, to_records
from tests.support.values.connect_values import same

FIELDS = st.lists(st.sampled_from(["a", "b", "c", "absent"]), min_size=1, max_size=3)
BOOLEANS = st.sampled_from(["true", "false"])
PAIR = struct(("a", schemas.INT64), ("b", Schema(schemas.Type.STRING, optional=True, default="d")))
ROWS = [{"a": 1, "b": "x"}, {"a": 2, "b": None}]


def configured(kind: type, **config: str) -> Any:
    transformation = kind()
    transformation.configure({key.replace("_", "."): value for key, value in config.items()})
    return transformation


OLD = [("h", "1"), ("h0", None), ("h", "2")]


def assert_same(transformation: Any, records: list[SinkRecord], *, with_key: bool = False) -> bool:
    """Compare; returns whether there were columns of a sink that does not need headers."""
    _assert_same_headers(transformation, records, with_key=with_key)
    batch = transformation.apply_columns(to_columns(records, with_key=with_key))
    if batch is None:
        return False
    assert batch.headers is None
    expected = [transformation.apply(record).changed(headers=()) for record in records]
    if not with_key and not isinstance(transformation, ValueToKey):
        expected = [record.changed(key=None, key_schema=None) for record in expected]
    assert same(to_records(batch), expected)
    return True


def _assert_same_headers(transformation: Any, records: list[SinkRecord], *, with_key: bool) -> None:
    """The same with headers: each record has one more than the one before, and the column begins elsewhere."""
    own = [OLD[: n % (len(OLD) + 1)] for n in range(len(records))]
    column = pa.array([OLD, *own, OLD], TEXTS)
    batch = transformation.apply_columns(
        to_columns(records, with_key=with_key).changed(headers=column.slice(1, len(own)))
    )
    if batch is None:
        return
    batch.headers.validate(full=True)
    expected = []
    for record, headers in zip(records, own, strict=True):
        before = tuple(Header(name, schemas.STRING, value) for name, value in headers)
        after = transformation.apply(record.changed(headers=before)).headers
        expected.append([(h.key, stored_header_text(h.schema, h.value)) for h in after])
    assert [[(h["key"], h["value"]) for h in headers] for headers in batch.headers.to_pylist()] == expected


@settings(deadline=None)
@given(struct_records(struct_schemas(depth=2)), FIELDS, st.sampled_from(["move", "copy"]), BOOLEANS)
def test_header_from_any_struct_equals_records(
    records: list[SinkRecord], fields: list[str], operation: str, replace_null: str
) -> None:
    names = {"fields": ",".join(fields), "headers": ",".join(f"h{n}" for n in range(len(fields)))}
    config = {**names, "operation": operation, "replace_null_with_default": replace_null}
    assert_same(configured(HeaderFrom.Value, **config), records)
    keyed = [record.changed(key=record.value, key_schema=record.value_schema) for record in records]
    assert_same(configured(HeaderFrom.Key, **config), keyed, with_key=True)


@settings(deadline=None)
@given(struct_records(struct_schemas(depth=2)), FIELDS, BOOLEANS)
def test_value_to_key_any_struct_equals_records(
    records: list[SinkRecord], fields: list[str], replace_null: str
) -> None:
    assert_same(configured(ValueToKey, fields=",".join(fields), replace_null_with_default=replace_null), records)


@pytest.mark.parametrize("replace_null", ["true", "false"])
def test_usual_structs_are_columns(replace_null: str) -> None:
    records = records_of(PAIR, ROWS)
    null = {"replace_null_with_default": replace_null}
    assert assert_same(configured(ValueToKey, fields="b,a,b", **null), records)
    for operation in ("move", "copy"):
        for field in ("a", "b"):
            config = {"fields": field, "headers": "h", "operation": operation, **null}
            assert assert_same(configured(HeaderFrom.Value, **config), records)
    assert assert_same(configured(InsertHeader, header="h", value_literal="1"), records)
    assert assert_same(configured(DropHeaders, headers="h"), records)


def test_key_replaces_the_one_before() -> None:
    records = [record.changed(key="k", key_schema=schemas.STRING) for record in records_of(PAIR, ROWS)]
    assert assert_same(configured(ValueToKey, fields="a"), records, with_key=True)


def test_absent_fields_and_values_that_are_no_structs_have_no_columns() -> None:
    move = {"fields": "absent", "headers": "h", "operation": "copy"}
    texts = pa.array([b'{"a":1}\n', b'{"a":2}\n'], pa.binary())
    lines = to_columns(records_of(PAIR, ROWS)).changed(value=ValueColumns(None, texts))
    for transformation in (configured(ValueToKey, fields="absent"), configured(HeaderFrom.Value, **move)):
        assert transformation.apply_columns(to_columns(records_of(PAIR, ROWS))) is None
        assert transformation.apply_columns(to_columns(records_of(schemas.INT64, [1]))) is None
        assert transformation.apply_columns(lines) is None
    assert configured(HeaderFrom.Key, **move).apply_columns(to_columns(records_of(PAIR, ROWS))) is None


def test_columns_of_a_source_keep_their_headers_by_going_record_by_record() -> None:
    batch = to_columns(records_of(PAIR, ROWS)).changed(original_partition=NO_PARTITION)
    move = {"fields": "a", "headers": "h", "operation": "copy"}
    for transformation in (
        configured(InsertHeader, header="h", value_literal="1"),
        configured(DropHeaders, headers="h"),
        configured(HeaderFrom.Value, **move),
        configured(TimestampRouter),
    ):
        assert transformation.columns_of_sinks_only
        assert transformation.apply_columns(batch) is None
    assert configured(ValueToKey, fields="a").apply_columns(batch) is not None
