"""Values to the columns of a table: exactly, or not at all."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any
from uuid import UUID

import pyarrow as pa
import pytest

from airflow_connect.connectors.iceberg.columns import Projection, UnfitError, check_required
from airflow_connect.connectors.iceberg.field_names import FieldNames
from airflow_connect.errors import DataError
from tests.support.session.many_cases import check_each

INT, LONG, FLOAT, DOUBLE = pa.int32(), pa.int64(), pa.float32(), pa.float64()
TEXT, BYTES, BOOL = pa.string(), pa.binary(), pa.bool_()
DATE, TIME_MS, TIME = pa.date32(), pa.time32("ms"), pa.time64("us")
MS, INSTANT, LOCAL = pa.timestamp("ms", "UTC"), pa.timestamp("us", "UTC"), pa.timestamp("us")
ID = "123e4567-e89b-12d3-a456-426614174000"
REFUSED = object()


def number(precision: int, scale: int) -> Any:
    return pa.decimal128(precision, scale)


def projected(values: list[Any], source: Any, target: Any) -> Any:
    projection = Projection(pa.schema([pa.field("x", source)]), pa.schema([pa.field("x", target)]))
    made = projection(pa.RecordBatch.from_arrays([pa.array(values, source)], names=["x"]))
    made.validate(full=True)
    return made.column(0)


def utc(*parts: int) -> datetime:
    return datetime(*parts, tzinfo=UTC)  # type: ignore[misc,arg-type]


def local(*parts: int) -> datetime:
    return datetime(*parts)  # type: ignore[arg-type]  # noqa: DTZ001


NUMBERS: list[tuple[Any, Any, Any, Any]] = [
    (2**31 - 1, INT, LONG, 2**31 - 1),
    (2**31 - 1, LONG, INT, 2**31 - 1),
    (2**31, LONG, INT, REFUSED),
    (-(2**31) - 1, LONG, INT, REFUSED),
    (2**53, LONG, DOUBLE, 2.0**53),
    (2**53 + 1, LONG, DOUBLE, REFUSED),
    (2**24 + 1, INT, FLOAT, REFUSED),
    (-(2**63), LONG, TEXT, str(-(2**63))),
    (5, LONG, number(5, 2), Decimal("5.00")),
    (999, INT, number(5, 2), Decimal("999.00")),
    (1000, INT, number(5, 2), REFUSED),
    (2**63 - 1, LONG, number(38, 0), Decimal(2**63 - 1)),
    (2**63 - 1, LONG, number(38, 19), Decimal(2**63 - 1)),
    (2**63 - 1, LONG, number(38, 20), REFUSED),
    (2.0**62, DOUBLE, LONG, 2**62),
    (-(2.0**63), DOUBLE, LONG, -(2**63)),
    (2.0**63, DOUBLE, LONG, REFUSED),
    (1.5, DOUBLE, LONG, REFUSED),
    (float("nan"), DOUBLE, LONG, REFUSED),
    (float("inf"), DOUBLE, LONG, REFUSED),
    (0.1, DOUBLE, FLOAT, REFUSED),
    (1e39, DOUBLE, FLOAT, REFUSED),
    (1e-50, DOUBLE, FLOAT, REFUSED),
    (float("inf"), DOUBLE, FLOAT, float("inf")),
    (1.5, FLOAT, DOUBLE, 1.5),
    (1.5, DOUBLE, number(5, 2), REFUSED),
    (1.5, DOUBLE, TEXT, "1.5"),
    (True, BOOL, TEXT, "true"),
    (True, BOOL, INT, REFUSED),
    (Decimal("123.45"), number(38, 2), number(5, 2), Decimal("123.45")),
    (Decimal("123.45"), number(38, 2), number(4, 2), REFUSED),
    (Decimal("123.45"), number(38, 2), number(38, 1), REFUSED),
    (Decimal("123.40"), number(38, 2), number(38, 1), Decimal("123.4")),
    (Decimal("-123.45"), number(5, 2), number(38, 4), Decimal("-123.4500")),
    (Decimal("9" * 38), number(38, 0), number(38, 1), REFUSED),
    (Decimal("1.5"), number(38, 2), DOUBLE, REFUSED),
]
TIMES: list[tuple[Any, Any, Any, Any]] = [
    (-1, LONG, DATE, date(1969, 12, 31)),
    (2**31, LONG, DATE, REFUSED),
    (86_399_999, INT, TIME, time(23, 59, 59, 999000)),
    (86_400_000, INT, TIME, REFUSED),
    (-1, LONG, TIME, REFUSED),
    (2**40, LONG, TIME, REFUSED),
    (-1, LONG, INSTANT, utc(1969, 12, 31, 23, 59, 59, 999000)),
    (-1, LONG, LOCAL, local(1969, 12, 31, 23, 59, 59, 999000)),
    (2**63 - 1, LONG, INSTANT, REFUSED),
    (-1, MS, INSTANT, utc(1969, 12, 31, 23, 59, 59, 999000)),
    (-1, MS, LOCAL, local(1969, 12, 31, 23, 59, 59, 999000)),
    (2**62, MS, INSTANT, REFUSED),
    (time(1, 2, 3, 4000), TIME_MS, TIME, time(1, 2, 3, 4000)),
    (date(2024, 1, 1), DATE, INSTANT, REFUSED),
    (date(1969, 12, 31), DATE, LONG, -1),
    (time(0, 0, 1), TIME_MS, LONG, 1000),
    (utc(1969, 12, 31, 23, 59, 59, 999000), MS, LONG, -1),
    (utc(2024, 1, 1), MS, INT, REFUSED),
    (utc(2024, 1, 1), MS, TEXT, REFUSED),
]
TEXTS: list[tuple[str, Any, Any]] = [
    ("-5", LONG, -5),
    ("9223372036854775807", LONG, 2**63 - 1),
    *[(text, LONG, REFUSED) for text in ("9223372036854775808", "0x1F", " 1", "1 ", "1.0", "1e3", "", "1_000", "+1")],
    ("3000000000", INT, REFUSED),
    ("0.1", DOUBLE, 0.1),
    ("-0", DOUBLE, 0.0),
    ("0e5", DOUBLE, 0.0),
    ("Infinity", DOUBLE, float("inf")),
    *[(text, DOUBLE, REFUSED) for text in ("1e400", "-1e400", "1e-400", "", "1.5f", "0x1p3", "one")],
    *[(text, FLOAT, REFUSED) for text in ("1e39", "1e-50")],
    ("1.230", number(5, 2), Decimal("1.23")),
    ("1e2", number(5, 2), Decimal("100.00")),
    *[(text, number(5, 2), REFUSED) for text in ("1.234", "123456", "", "NaN", "0x10")],
    ("TRUE", BOOL, True),
    ("false", BOOL, False),
    *[(text, BOOL, REFUSED) for text in ("yes", "1", "", "t", " true")],
    (ID, pa.uuid(), UUID(ID)),
    *[(text, pa.uuid(), REFUSED) for text in ("", "x", ID[:-1])],
    ("YWJj", BYTES, b"abc"),
    ("", BYTES, b""),
    ("YWJj", pa.binary(3), b"abc"),
    *[(text, BYTES, REFUSED) for text in ("YWJ", "YW Jj", "-_-_", "YWJj\n")],
    ("YWJj", pa.binary(4), REFUSED),
    ("1969-12-31", DATE, date(1969, 12, 31)),
    *[(text, DATE, REFUSED) for text in ("10000-01-01", "2024-02-30", "2024-1-1", "", "2024-01-01T00:00:00")],
    ("12:34", TIME, time(12, 34)),
    ("12:34:56", TIME, time(12, 34, 56)),
    ("12:34:56.1", TIME, time(12, 34, 56, 100000)),
    ("23:59:59.999999", TIME, time(23, 59, 59, 999999)),
    *[(text, TIME, REFUSED) for text in ("24:00", "12:60", "12:34:60", "12:34:56.1234567", "12:34Z", "", "1:02")],
    ("2024-01-01T00:00:00+02:00", INSTANT, utc(2023, 12, 31, 22)),
    ("2026-03-31T03:17:37.260514+01:00", INSTANT, utc(2026, 3, 31, 2, 17, 37, 260514)),
    ("2024-01-01T00:00:00-0230", INSTANT, utc(2024, 1, 1, 2, 30)),
    ("2024-01-01 00:00:00.000001", INSTANT, utc(2024, 1, 1, 0, 0, 0, 1)),
    ("2024-01-01", INSTANT, utc(2024, 1, 1)),
    ("1969-12-31T23:59:59.999999Z", INSTANT, utc(1969, 12, 31, 23, 59, 59, 999999)),
    ("2024-01-01T00:00:00", LOCAL, local(2024, 1, 1)),
    ("2024-01-01T00:00:00+02:00", LOCAL, REFUSED),
    *[
        (text, INSTANT, REFUSED)
        for text in ("", "2024-01-01T00:00:00.1234567Z", "2024-01-01T00:00:00[Europe/Berlin]", "2024-01-01T24:00:00Z")
    ],
]


def test_value_becomes_itself_or_is_refused() -> None:
    cases = [*NUMBERS, *TIMES, *((text, TEXT, target, wanted) for text, target, wanted in TEXTS)]

    def check(case: tuple[Any, Any, Any, Any]) -> None:
        value, source, target, wanted = case
        if wanted is REFUSED:
            with pytest.raises((pa.ArrowInvalid, UnfitError), match=r"column x"):
                projected([value], source, target)
        else:
            assert projected([value], source, target).to_pylist() == [wanted]
            # One that does not fit refuses the others; nulls do not matter.
            assert projected([None, value, None], source, target).to_pylist() == [None, wanted, None]
            assert projected([None, None], source, target).to_pylist() == [None, None]

    check_each(cases, repr, check)


def test_dates_beyond_9999_keep_their_days() -> None:
    assert projected([10**7], INT, DATE).cast(INT).to_pylist() == [10**7]
    assert projected([10**15], MS, INSTANT).cast(LONG).to_pylist() == [10**18]


def test_nan_stays_nan() -> None:
    for source, target in ((DOUBLE, FLOAT), (FLOAT, DOUBLE), (DOUBLE, DOUBLE)):
        (found,) = projected([float("nan")], source, target).to_pylist()
        assert found != found


def test_texts_with_and_without_a_zone_go_together() -> None:
    found = projected(["2024-01-01T00:00:00+01:00", None, "2024-01-01T00:00:00"], TEXT, INSTANT).to_pylist()
    assert found == [utc(2023, 12, 31, 23), None, utc(2024, 1, 1)]


LEAVES: list[tuple[Any, Any, Any]] = [
    (TEXT, TEXT, "a"), (LONG, LONG, 5), (INT, LONG, 5), (DOUBLE, DOUBLE, 1.5), (FLOAT, DOUBLE, 1.5), (BOOL, BOOL, True),
    (BYTES, BYTES, b"x"), (number(38, 2), number(5, 2), Decimal("1.23")), (DATE, DATE, date(2024, 1, 1)),
    (TIME_MS, TIME, time(1, 2)), (MS, INSTANT, utc(2024, 1, 1)), (MS, LOCAL, local(2024, 1, 1)),
    (TEXT, pa.uuid(), ID), (BYTES, pa.binary(1), b"x"), (pa.list_(INT), pa.list_(LONG), [1]),
    (pa.map_(TEXT, INT), pa.map_(TEXT, LONG), [("a", 1)]),
    (pa.struct([("z", INT)]), pa.struct([("z", LONG)]), {"z": 1}),
]  # fmt: skip


def test_null_struct_with_a_required_member_stays_null() -> None:
    def check(case: tuple[Any, Any, Any]) -> None:
        inner, wanted, value = case
        source = pa.struct([pa.field("q", inner, False)])
        target = pa.struct([pa.field("q", wanted, False)])
        expected = UUID(ID) if value == ID else value
        given = value.replace(tzinfo=UTC) if isinstance(value, datetime) else value
        made = projected([None, {"q": given}, None], source, target)
        assert made.to_pylist() == [None, {"q": expected}, None]
        assert made.field(0).null_count == 0  # Parquet wants a value there.
        made = projected([[None, {"q": given}], None, [], [None]], pa.list_(source), pa.list_(target))
        assert made.to_pylist() == [[None, {"q": expected}], None, [], [None]]

    check_each(LEAVES, repr, check)


def test_sliced_and_empty_batches() -> None:
    kinds = [pa.list_(INT), pa.map_(TEXT, INT), pa.struct([("z", pa.list_(INT))]), pa.list_(pa.struct([("z", INT)]))]
    targets = [
        pa.list_(LONG), pa.map_(TEXT, LONG), pa.struct([("z", pa.list_(LONG))]), pa.list_(pa.struct([("z", LONG)]))
    ]  # fmt: skip
    values = [
        [[1], None, [], [2, 3], [4]],
        [[("a", 1)], None, [], [("b", 2), ("c", None)], [("d", 4)]],
        [{"z": [1]}, None, {"z": None}, {"z": [2, 3]}, {"z": []}],
        [[{"z": 1}], None, [], [{"z": 2}, None], [{"z": None}]],
    ]
    names = ["l", "m", "s", "n"]
    source = pa.schema(list(zip(names, kinds, strict=True)))
    batch = pa.RecordBatch.from_arrays([pa.array(v, k) for v, k in zip(values, kinds, strict=True)], schema=source)
    projection = Projection(source, pa.schema(list(zip(names, targets, strict=True))))
    for start in range(6):
        for length in range(6 - start):
            made = projection(batch.slice(start, length))
            made.validate(full=True)
            assert made.to_pylist() == batch.slice(start, length).to_pylist()


def test_nulls_in_required_places_are_refused() -> None:
    def of(kind: Any, required: Any, value: Any) -> None:
        with pytest.raises(pa.ArrowInvalid, match=r"the column x.* is required, but a value is null"):
            projected([value], kind, required)

    of(pa.struct([("q", INT)]), pa.struct([pa.field("q", LONG, False)]), {"q": None})
    of(pa.list_(INT), pa.list_(pa.field("element", LONG, False)), [None])
    of(pa.map_(TEXT, INT), pa.map_(TEXT, pa.field("value", LONG, False)), [("a", None)])
    schema = pa.schema([pa.field("q", INT, False)])
    with pytest.raises(pa.ArrowInvalid, match="column q is required"):
        check_required(pa.RecordBatch.from_arrays([pa.array([None], INT)], schema=schema))


def test_required_column_without_a_field_is_refused() -> None:
    with pytest.raises(UnfitError, match=r"column s\.b of the table is required"):
        Projection(
            pa.schema([("s", pa.struct([("a", INT)]))]),
            pa.schema([("s", pa.struct([pa.field("a", INT), pa.field("b", INT, False)]))]),
        )


def test_fields_without_a_column_are_named() -> None:
    source = pa.schema(
        [("a", INT), ("s", pa.struct([("a", INT), ("b", INT)])), ("l", pa.list_(pa.struct([("c", INT)])))]
    )
    target = pa.schema([("s", pa.struct([("b", LONG)])), ("l", pa.list_(pa.struct([("d", INT)])))])
    assert sorted(Projection(source, target).dropped) == ["a", "l.element.c", "s.a"]


def test_fields_that_differ_in_case_are_one_column_only_by_themselves() -> None:
    target = pa.schema([("id", LONG)])
    batch = pa.RecordBatch.from_arrays([pa.array([1])], names=["ID"])
    found = Projection(batch.schema, target, FieldNames(ignores_case=True))
    assert (found(batch).to_pylist(), found.dropped) == ([{"id": 1}], [])
    for names in (["ID", "id"], ["id", "ID"], ["ID", "Id"]):
        with pytest.raises(DataError, match="would be the same column"):
            Projection(pa.schema([(name, LONG) for name in names]), target, FieldNames(ignores_case=True))
    with pytest.raises(DataError, match=r"S\.ID"):
        Projection(
            pa.schema([("s", pa.struct([("id", LONG), ("ID", LONG)]))]),
            pa.schema([("S", pa.struct([("id", LONG)]))]),
            FieldNames(ignores_case=True),
        )


def test_table_with_columns_that_differ_in_case_gets_fields_by_their_exact_names() -> None:
    both = pa.schema([("id", LONG), ("ID", LONG)])
    batch = pa.RecordBatch.from_arrays([pa.array([1]), pa.array([2])], names=["ID", "id"])
    assert Projection(batch.schema, both, FieldNames(ignores_case=True))(batch).to_pylist() == [{"id": 2, "ID": 1}]
