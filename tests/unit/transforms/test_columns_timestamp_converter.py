"""TimestampConverter: the columnar form equals the record form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Schema, struct
from airflow_connect.transforms.fields.timestamp_converter import TimestampConverter
from airflow_connect.transforms.simple_date_format import SimpleDateFormat
from tests.support.values.columns import assert_same_both_ways, records_of, struct_records, to_columns, to_records

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


PATTERNS = st.sampled_from(
    [
        "yyyy-MM-dd'T'HH:mm:ss.SSS'Z'",
        "yyyyMMddHHmmssSSS",
        "dd/MM/yyyy",
        "SSS% '%Y' ss.HH yyyy(MM)dd",
        "HH:mm",
        "yyyy MM",
        "yyyy-MM-dd yyyy",
        "yyyy'5'MM-dd",
        "y-M-d",
        "EEE, d MMM yyyy",
    ]
)
MOMENTS = st.one_of(
    st.integers(-12_219_292_800_000 - 10**12, 253_402_300_800_000 + 10**12), st.integers(-100_000, 100_000)
)


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), MOMENTS), min_size=1, max_size=4), PATTERNS)
def test_columns_written_as_text_equal_records(members: list[int | None], pattern: str) -> None:
    schema = struct(("a", schemas.timestamp(optional=True)))
    records = records_of(schema, [{"a": member} for member in members])
    in_columns = assert_same_both_ways(convert("string", format=pattern), records)
    within = all(member is None or 0 <= member < 253_402_300_800_000 for member in members)
    assert in_columns or not within or "'5'" in pattern or pattern in ("y-M-d", "EEE, d MMM yyyy", "yyyy-MM-dd yyyy")


@settings(deadline=None)
@given(st.lists(st.one_of(st.none(), MOMENTS), min_size=1, max_size=3), PATTERNS, st.text("0123456789- :", max_size=3))
def test_columns_read_from_text_equal_records(members: list[int | None], pattern: str, tail: str) -> None:
    written = SimpleDateFormat(pattern)
    texts = [None if member is None else written.format(member) + tail for member in members]
    records = records_of(struct(("a", schemas.OPTIONAL_STRING)), [{"a": text} for text in texts])
    assert_same_both_ways(convert("Timestamp", format=pattern), records)


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["2023-11-14 22:13", None], [1_700_000_000_000 - 20_000, None]),
        (["2023-02-28 00:00"], [1_677_542_400_000]),
        (["2023-02-29 00:00"], None),  # rolls over
        (["2023-11-14 24:00"], None),
        (["2023-11-14 22:13 CET"], None),
        (["2023-1-14 22:13"], None),
        (["0044-11-14 22:13"], None),  # of the Julian calendar
        (["x"], None),
    ],
)
def test_columns_of_text_are_read_when_every_text_is_vectorizable(
    texts: list[str | None], expected: list[int | None] | None
) -> None:
    records = records_of(struct(("a", schemas.OPTIONAL_STRING)), [{"a": text} for text in texts])
    batch = convert("Timestamp", format="yyyy-MM-dd HH:mm").apply_columns(to_columns(records))
    found = None if batch is None else [record.value["a"] for record in to_records(batch)]
    assert found == expected


@pytest.mark.parametrize("source", [schemas.STRING, schemas.INT32, schemas.BOOLEAN])
def test_columns_of_what_is_no_point_in_time_go_record_by_record(source: Schema) -> None:
    member = {"string": "1", "int32": 1, "boolean": True}[source.type.value]
    assert convert("unix").apply_columns(to_columns(records_of(struct(("a", source)), [{"a": member}]))) is None


def test_columns_number_beyond_64_bits_goes_record_by_record_and_ends_at_the_largest() -> None:
    records = records_of(struct(("a", schemas.INT64)), [{"a": 1 << 62}])
    assert convert("Timestamp", "seconds").apply_columns(to_columns(records)) is None
    assert convert("Timestamp", "seconds").apply(records[0]).value == {"a": (1 << 63) - 1}
