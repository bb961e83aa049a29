"""MaskField: the columnar form equals the record form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.transforms.fields.mask_field import MaskField
from tests.support.values.columns import assert_same_both_ways, records_of, struct_records, to_columns, to_records


def mask(**settings: str) -> MaskField.Value:
    transformation = MaskField.Value()
    transformation.configure({"fields": "a,c", **settings})
    return transformation


@settings(deadline=None)
@given(struct_records(), st.sampled_from(["true", "false"]), st.sampled_from(["", "1.75", "x", "400", "-1e300"]))
def test_columns_any_struct_equal_records(records: list[SinkRecord], replace_null: str, replacement: str) -> None:
    config = {"replace.null.with.default": replace_null} | ({"replacement": replacement} if replacement else {})
    assert_same_both_ways(mask(**config), records)


@pytest.mark.parametrize(
    ("schema", "config", "members", "expected"),
    [
        (schemas.INT32, {}, [5, -1], [0, 0]),
        (schemas.OPTIONAL_STRING, {}, ["secret", None], ["", None]),
        (schemas.BOOLEAN, {}, [True, False], [False, False]),
        (schemas.FLOAT32, {"replacement": "1.5"}, [0.25, 2.0], [1.5, 1.5]),
        (schemas.INT8, {"replacement": "300.9"}, [1, 2], [44, 44]),
        (schemas.timestamp(), {}, [1, 2], [0, 0]),
    ],
)
def test_columns_plain_types_are_masked_as_columns(
    schema: Schema, config: dict[str, str], members: list, expected: list
) -> None:
    records = records_of(struct(("a", schema)), [{"a": member} for member in members])
    batch = mask(**config).apply_columns(to_columns(records))
    assert batch is not None
    assert [record.value["a"] for record in to_records(batch)] == expected
    assert assert_same_both_ways(mask(**config), records)


@pytest.mark.parametrize("schema", [schemas.BYTES, schemas.decimal(2), schemas.timestamp(), schemas.BOOLEAN])
def test_columns_field_that_has_no_replacement_goes_record_by_record(schema: Schema) -> None:
    member = {"bytes": b"", "boolean": True, "int64": 1}[schema.type.value]
    records = records_of(struct(("a", schema)), [{"a": member}])
    assert mask(replacement="1").apply_columns(to_columns(records)) is None
