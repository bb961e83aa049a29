"""ReplaceField, ExtractField, HoistField: the columnar form equals the record form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.transforms.fields.extract_field import ExtractField
from airflow_connect.transforms.fields.hoist_field import HoistField
from airflow_connect.transforms.fields.replace_field import ReplaceField
from tests.support.values.columns import assert_same_both_ways, records_of, struct_records, struct_schemas, to_columns

WITH_DEFAULT = Schema(schemas.Type.STRING, optional=True, default="d")
REPLACED = [
    {"exclude": "a"},
    {"include": "a,c"},
    {"include": "c", "renames": "c:z"},
    {"renames": "a:c"},
    {"renames": "a:b,b:a"},
    {"exclude": "a,b,c"},
    {},
]
# What makes a step nested: `b` is often a struct with `x` and `y` then.
NESTED = struct_schemas(depth=2)


def configured(kind: type, **config: str) -> Any:
    transformation = kind()
    transformation.configure({key.replace("_", "."): value for key, value in config.items()})
    return transformation


@settings(deadline=None)
@given(struct_records(), st.sampled_from(REPLACED), st.sampled_from(["true", "false"]))
def test_replace_field_any_struct_equals_records(
    records: list[SinkRecord], config: dict[str, str], replace_null: str
) -> None:
    assert_same_both_ways(configured(ReplaceField.Value, **config, replace_null_with_default=replace_null), records)


@settings(deadline=None)
@given(
    struct_records(NESTED), st.sampled_from(["a", "b", "b.x", "c.y", "`b`.x"]), st.sampled_from(["V1", "V2"]),
    st.sampled_from(["true", "false"]),
)  # fmt: skip
def test_extract_field_any_struct_equals_records(
    records: list[SinkRecord], field: str, syntax: str, replace_null: str
) -> None:
    config = {"field": field, "field_syntax_version": syntax, "replace_null_with_default": replace_null}
    assert_same_both_ways(configured(ExtractField.Value, **config), records)


@settings(deadline=None)
@given(struct_records())
def test_hoist_field_any_struct_equals_records(records: list[SinkRecord]) -> None:
    assert assert_same_both_ways(configured(HoistField.Value, field="whole"), records) or any(
        record.value is None for record in records
    )


@pytest.mark.parametrize(
    ("transformation", "schema", "value", "expected"),
    [
        (
            configured(ReplaceField.Value, include="a", renames="a:z"),
            struct(("a", schemas.INT32), ("b", schemas.STRING)), {"a": 1, "b": "x"}, {"z": 1},
        ),
        (configured(ReplaceField.Value), struct(("a", WITH_DEFAULT)), {"a": None}, {"a": "d"}),
        (configured(ReplaceField.Value, exclude="a"), struct(("a", WITH_DEFAULT)), {"a": None}, {}),
        (configured(ExtractField.Value, field="a"), struct(("a", WITH_DEFAULT)), {"a": None}, "d"),
        (
            configured(ExtractField.Value, field="in.x", field_syntax_version="V2"),
            struct(("in", struct(("x", schemas.OPTIONAL_STRING), optional=True))), {"in": {"x": "deep"}}, "deep",
        ),
        (
            configured(ExtractField.Value, field="in.x", field_syntax_version="V2"),
            struct(("in", struct(("x", schemas.STRING), optional=True))), {"in": None}, None,
        ),
        (configured(HoistField.Value, field="f"), struct(("a", schemas.INT8)), {"a": 1}, {"f": {"a": 1}}),
        (configured(HoistField.Value, field="f"), schemas.INT8, 1, {"f": 1}),
    ],
)  # fmt: skip
def test_plain_batches_are_changed_as_columns(transformation: Any, schema: Schema, value: Any, expected: Any) -> None:
    records = records_of(schema, [value, value])
    assert transformation.apply(records[0]).value == expected
    assert assert_same_both_ways(transformation, records)


@pytest.mark.parametrize(
    ("transformation", "schema", "value"),
    [
        (configured(ExtractField.Value, field="nope"), struct(("a", schemas.INT8)), {"a": 1}),
        (configured(ExtractField.Value, field="a"), schemas.INT8, 1),
        (
            configured(ReplaceField.Value, renames="a:b"),
            struct(("a", schemas.INT8), ("b", schemas.INT8)), {"a": 1, "b": 2},
        ),
        (configured(ReplaceField.Value), struct(("a", schemas.INT8), optional=True), None),
        (configured(ReplaceField.Value), None, {"a": 1}),
        (configured(HoistField.Value, field="f"), None, {"a": 1}),
    ],
)  # fmt: skip
def test_batches_that_are_not_plain_go_record_by_record(transformation: Any, schema: Any, value: Any) -> None:
    assert transformation.apply_columns(to_columns(records_of(schema, [value]))) is None


@pytest.mark.parametrize("kind", [ReplaceField.Key, ExtractField.Key, HoistField.Key])
def test_keys_that_were_not_read_go_record_by_record(kind: type) -> None:
    config = {} if kind is ReplaceField.Key else {"field": "a"}
    batch = to_columns(records_of(struct(("a", schemas.INT8)), [{"a": 1}]))
    assert configured(kind, **config).apply_columns(batch) is None
