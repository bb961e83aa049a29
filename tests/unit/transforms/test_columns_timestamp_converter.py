"""TimestampConverter: the columnar form equals the record form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.transforms.timestamp_converter import TimestampConverter
from tests.support.columns import assert_same_both_ways, records_of, struct_records, to_columns, to_records

TIMES = (
    schemas.date(),
    schemas.time(optional=True),
    schemas.timestamp(),
    schemas.INT64,
    schemas.OPTIONAL_INT64,
)
TARGETS = st.sampled_from(["unix", "Date", "Time", "Timestamp"])
PRECISIONS = st.sampled_from(["seconds", "milliseconds", "microseconds", "nanoseconds"])


def convert(target: str, precision: str = "milliseconds", **settings: str) -> TimestampConverter.Value:
    transformation = TimestampConverter.Value()
    transformation.configure({"field": "a", "target.type": target, "unix.precision": precision, **settings})
    return transformation


@settings(deadline=None)
@given(struct_records(), TARGETS, PRECISIONS, st.sampled_from(["true", "false"]))
def test_columns_any_struct_equal_records(
    records: list[SinkRecord], target: str, precision: str, replace_null: str
) -> None:
    assert_same_both_ways(convert(target, precision, **{"replace.null.with.default": replace_null}), records)


@settings(deadline=None)
@given(st.data(), st.sampled_from(TIMES), TARGETS, PRECISIONS)
def test_columns_points_in_time_equal_records(data: st.DataObject, source: Schema, target: str, precision: str) -> None:
    assert_same_both_ways(convert(target, precision), data.draw(struct_records(st.just(struct(("a", source))))))


@pytest.mark.parametrize(
    ("source", "target", "precision", "expected"),
    [
        (schemas.INT64, "Timestamp", "microseconds", [-1, 1]),
        (schemas.INT64, "Timestamp", "seconds", [-1_500_000, 1_500_000]),
        (schemas.timestamp(), "Date", "seconds", [-1, 0]),
        (schemas.timestamp(), "Time", "seconds", [86_398_500, 1500]),
        (schemas.timestamp(), "unix", "seconds", [-1, 1]),
        (schemas.timestamp(), "unix", "nanoseconds", [-1_500_000_000, 1_500_000_000]),
        (schemas.date(), "Timestamp", "seconds", [-129_600_000_000, 129_600_000_000]),
        (schemas.time(), "Timestamp", "seconds", [-1500, 1500]),
    ],
)
def test_columns_minus_and_plus_1500_are_converted_as_columns(
    source: Schema, target: str, precision: str, expected: list[int]
) -> None:
    records = records_of(struct(("a", source)), [{"a": member} for member in [-1500, 1500]])
    batch = convert(target, precision).apply_columns(to_columns(records))
    assert batch is not None
    assert [record.value["a"] for record in to_records(batch)] == expected
    assert assert_same_both_ways(convert(target, precision), records)


@pytest.mark.parametrize("source", [schemas.STRING, schemas.INT32, schemas.BOOLEAN])
def test_columns_of_what_is_no_number_of_a_time_go_record_by_record(source: Schema) -> None:
    member = {"string": "1", "int32": 1, "boolean": True}[source.type.value]
    assert convert("unix").apply_columns(to_columns(records_of(struct(("a", source)), [{"a": member}]))) is None


def test_columns_number_beyond_64_bits_goes_record_by_record_and_ends_at_the_largest() -> None:
    records = records_of(struct(("a", schemas.INT64)), [{"a": 1 << 62}])
    assert convert("Timestamp", "seconds").apply_columns(to_columns(records)) is None
    assert convert("Timestamp", "seconds").apply(records[0]).value == {"a": (1 << 63) - 1}
