"""Cast: the columnar form equals the record form."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type, struct
from airflow_connect.transforms.fields.cast import Cast
from tests.support.values.columns import assert_same_both_ways, records_of, struct_records, to_columns, to_records

TYPES = ("int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string")


def cast(spec: str, **settings: str) -> Cast.Value:
    transformation = Cast.Value()
    transformation.configure({"spec": spec, **settings})
    return transformation


@settings(deadline=None)
@given(struct_records(), st.sampled_from(TYPES), st.sampled_from(TYPES), st.sampled_from(["true", "false"]))
def test_columns_any_struct_equal_records(records, first: str, second: str, replace_null: str) -> None:
    transformation = cast(f"a:{first},c:{second}", **{"replace.null.with.default": replace_null})
    assert_same_both_ways(transformation, records)


NUMBERS = (
    schemas.INT8,
    schemas.OPTIONAL_INT16,
    schemas.INT32,
    schemas.INT64,
    schemas.FLOAT32,
    schemas.OPTIONAL_FLOAT64,
)


@settings(deadline=None)
@given(st.data(), st.sampled_from(NUMBERS), st.sampled_from(TYPES))
def test_columns_numbers_equal_records(data: st.DataObject, source: Schema, target: str) -> None:
    records = data.draw(struct_records(st.just(struct(("a", source)))))
    is_vectorizable = assert_same_both_ways(cast(f"a:{target}"), records)
    # Records with numbers that become others are counted, which columns are not.
    counting = cast(f"a:{target}")
    for record in records:
        counting.apply(record)
    has_others = bool(counting.unread.found)
    assert not (is_vectorizable and has_others)
    assert is_vectorizable or has_others or source in (schemas.FLOAT32, schemas.OPTIONAL_FLOAT64)


@pytest.mark.parametrize(
    ("source", "texts", "target", "expected"),
    [
        (schemas.STRING, ["1", "-22"], "int8", [1, -22]),
        (schemas.STRING, ["1.5", "-2e3"], "float32", [1.5, -2000.0]),
        (schemas.STRING, ["true", "TrUe", "yes"], "boolean", [True, True, False]),
        (schemas.OPTIONAL_FLOAT64, [1.9, None, -128.5], "int8", [1, None, -128]),
        (schemas.BOOLEAN, [True, False], "string", ["true", "false"]),
        (schemas.INT64, [(1 << 15) - 1, -(1 << 15)], "int16", [32767, -32768]),
    ],
)
def test_columns_plain_values_are_cast_as_columns(source: Schema, texts: list, target: str, expected: list) -> None:
    records = records_of(struct(("a", source)), [{"a": text} for text in texts])
    batch = cast(f"a:{target}").apply_columns(to_columns(records))
    assert batch is not None
    assert [record.value["a"] for record in to_records(batch)] == expected


@pytest.mark.parametrize(
    ("source", "value", "target"),
    [
        (schemas.INT64, 1 << 40, "int16"),
        (schemas.INT16, 128, "int8"),
        (schemas.FLOAT64, -300.5, "int8"),
        (schemas.FLOAT64, 1e39, "float32"),
    ],
)
def test_columns_numbers_that_become_others_go_record_by_record(source: Schema, value: float, target: str) -> None:
    batch = to_columns(records_of(struct(("a", source)), [{"a": value}]))
    assert cast(f"a:{target}").apply_columns(batch) is None


@pytest.mark.parametrize("text", ["+1", "0x1F", "1f", " 1", "inf", "999999999999999999999"])
def test_columns_text_that_arrow_reads_otherwise_goes_record_by_record(text: str) -> None:
    batch = to_columns(records_of(struct(("a", schemas.STRING)), [{"a": "1"}, {"a": text}]))
    assert cast("a:int64").apply_columns(batch) is None


def test_columns_default_that_cannot_be_cast_goes_record_by_record() -> None:
    schema = struct(("a", Schema(Type.STRING, default="x")))
    assert cast("a:int64").apply_columns(to_columns(records_of(schema, [{"a": "1"}]))) is None


def test_columns_null_value_goes_record_by_record() -> None:
    schema = struct(("a", schemas.INT32), optional=True)
    assert cast("a:int64").apply_columns(to_columns(records_of(schema, [{"a": 1}, None]))) is None


@pytest.mark.parametrize(
    ("text", "target", "is_another"),
    [
        ("1e40", "float32", True),
        ("1e40", "float64", False),
        ("1e400", "float64", True),
        ("-1e-60", "float32", True),
        ("1e-400", "float64", True),
        ("0.0e99", "float32", False),
        ("-0", "float64", False),
        (" 0e1", "float64", False),
        ("0x0p5", "float64", False),
        ("0xap-9999", "float64", True),
        ("Infinity", "float32", False),
        ("-Infinity", "float64", False),
        ("NaN", "float64", False),
        ("0.1", "float32", False),
    ],
)
def test_text_of_a_number_that_becomes_infinite_or_zero_is_counted(text, target, is_another):
    """A text of 1e400 became infinity, and one of 1e-400 became 0, in no count."""
    transformation = cast(f"a:{target}")
    records = records_of(struct(("a", schemas.STRING)), [{"a": "1.5"}, {"a": text}])
    for one in records:
        transformation.apply(one)
    assert bool(transformation.unread.found) == is_another
    if is_another:
        assert not assert_same_both_ways(transformation, records)
