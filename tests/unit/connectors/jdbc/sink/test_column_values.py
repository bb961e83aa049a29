"""Columns are bound and written as values of rows are."""

from __future__ import annotations

import math
import struct
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pymysql.converters import escape_string

from airflow_connect.api import schema as s
from airflow_connect.connectors.jdbc.sink.batches import RowPlan
from airflow_connect.connectors.jdbc.sink.columns import mysql_values, pgcopy
from airflow_connect.connectors.jdbc.sink.columns.binding import moments_for_column
from airflow_connect.connectors.jdbc.sink.columns.chunk import column_chunk, last_of_each
from airflow_connect.connectors.jdbc.sink.config import MappingConfig
from airflow_connect.connectors.jdbc.sink.fields import fields_of
from airflow_connect.connectors.jdbc.sink.values import Binding
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import DataError
from tests.support.values.columns import records_of, struct_records, struct_schemas, to_columns

ZONES = [UTC, ZoneInfo("America/New_York"), ZoneInfo("Asia/Kathmandu"), ZoneInfo("UTC")]


def mapping(**changes: Any) -> MappingConfig:
    plain = {
        "table_format": "t", "pk_mode": "none", "pk_fields": (), "whitelist": frozenset(), "string_column": "value",
        "replaces_null": True, "dates_in_utc": False, "timestamp_fields": frozenset(), "per_second": 1_000_000,
    }  # fmt: skip
    return MappingConfig(**{**plain, **changes})


def binding(database: str = "postgresql", **changes: Any) -> Binding:
    plain = {
        "zone": UTC, "date_zone": UTC, "replaces_null": True, "timestamp_fields": frozenset(), "per_second": 1_000_000,
    }  # fmt: skip
    return Binding(database=database, **{**plain, **changes})


def plan_of(schema: s.Schema, how: Binding, where: MappingConfig | None = None) -> RowPlan:
    return RowPlan(TableId("", "", "t"), fields_of("t", where or mapping(), None, schema), how)


def same_rows(plan: RowPlan, records: list[Any]) -> bool:
    """Hold bound columns equal to bound rows; False if the columns leave it to the rows."""
    chunk = column_chunk(plan, to_columns(records))
    if chunk is None:
        return False
    for is_instant in (False, True):  # whether the columns of the table hold points in time
        columns = [_for_column(plan, place, column, is_instant) for place, column in enumerate(chunk.columns)]
        if any(column is None for column in columns):
            return False
        found = list(zip(*(column.to_pylist() for column in columns), strict=True))
        rows = [_row_for_columns(plan, record, is_instant) for record in records]
        assert [list(map(_comparable, row)) for row in found] == [list(map(_comparable, row)) for row in rows]
    return True


def _for_column(plan: RowPlan, place: int, column: Any, is_instant: bool) -> Any:
    if not plan.binding.is_moment(plan.fields[place]):
        return column
    return moments_for_column(column, plan.binding, is_instant=is_instant)


def _row_for_columns(plan: RowPlan, record: Any, is_instant: bool) -> list[Any]:
    return [plan.binding.for_column(value, is_instant=is_instant) for value in plan.row(record)]


def _comparable(value: Any) -> Any:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value
    return str(value) if isinstance(value, Decimal) else value


@pytest.mark.parametrize("database", ["postgresql", "mysql"])
@given(
    records=struct_records(struct_schemas(depth=0)),
    zone=st.sampled_from(ZONES),
    date_zone=st.sampled_from(ZONES),
    replaces=st.booleans(),
)
def test_columns_are_bound_as_rows_are(database, records, zone, date_zone, replaces):
    how = binding(database, zone=zone, date_zone=date_zone, replaces_null=replaces)
    try:
        plan = plan_of(records[0].value_schema, how)
    except DataError:  # an array, which MySQL does not have
        return
    same_rows(plan, records)


MOMENTS = s.struct(("at", s.timestamp(optional=True)), ("day", s.date(optional=True)), ("t", s.time(optional=True)))
MILLISECONDS = st.integers(-62_200_000_000_000, 253_500_000_000_000) | st.sampled_from(
    [-62_135_596_800_000, -62_135_596_800_001, 253_402_300_799_999, 253_402_300_800_000, 1_699_164_000_000, 1 << 62]
)
"""Around the first and the last instant of datetime, and when a clock was set back."""


@given(st.lists(MILLISECONDS | st.none(), min_size=1, max_size=4), st.sampled_from(ZONES))
def test_times_that_no_row_can_hold_are_left_to_rows(moments, zone):
    plan = plan_of(MOMENTS, binding(zone=zone, date_zone=zone))
    values = [
        {
            "at": ms,
            "day": None if ms is None else max(min(ms // 86_400_000, 2**31 - 1), -(2**31)),
            "t": ms and ms % 86_400_001,
        }
        for ms in moments
    ]
    records = records_of(MOMENTS, values)
    if not same_rows(plan, records):
        with pytest.raises(DataError):
            [plan.row(record) for record in records]


@pytest.mark.parametrize("database", ["postgresql", "mysql"])
@pytest.mark.parametrize(
    ("ms", "zone"), [(253_402_300_799_001, "Asia/Kathmandu"), (-62_135_596_799_999, "America/New_York")]
)
def test_instants_at_the_ends_of_the_calendar_are_left_to_rows_which_need_them_in_the_zone(database, ms, zone):
    plan = plan_of(MOMENTS, binding(database, zone=ZoneInfo(zone), date_zone=UTC))
    records = records_of(MOMENTS, [{"at": at, "day": 1, "t": 0} for at in (0, ms)])
    assert same_rows(plan, records[:1])
    assert not same_rows(plan, records)
    with pytest.raises(DataError, match="outside the range"):
        plan.row(records[1])


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=4), st.sampled_from([10**6, 10**9]))
def test_numbers_in_timestamp_fields_are_bound_as_in_rows(units, per_second):
    how = binding(timestamp_fields=frozenset({"at"}), per_second=per_second, zone=ZONES[1])
    schema = s.struct(("at", s.INT64))
    records = records_of(schema, [{"at": number} for number in units])
    plan = plan_of(schema, how)
    if not same_rows(plan, records):
        with pytest.raises(DataError):
            [plan.row(record) for record in records]


@given(st.lists(st.integers(-(10**27), 10**27), min_size=1, max_size=4), st.integers(0, 20))
def test_decimals_are_bound_as_in_rows(unscaled, scale):
    schema = s.struct(("d", s.decimal(scale, optional=True)))
    values = [{"d": Decimal(number).scaleb(-scale)} for number in unscaled]
    assert same_rows(plan_of(schema, binding()), records_of(schema, [*values, {"d": None}]))


# --- PostgreSQL -------------------------------------------------------------------------------------------------------


def fields_of_rows(rows: Any) -> list[list[bytes | None]]:
    """The values of binary rows, read by the letter of the documentation."""
    found = []
    for row in rows.to_pylist():
        (count,), at, fields = struct.unpack_from(">h", row), 2, []
        for _ in range(count):
            (length,) = struct.unpack_from(">i", row, at)
            fields.append(None if length < 0 else row[at + 4 : at + 4 + length])
            at += 4 + max(length, 0)
        assert at == len(row)
        found.append(fields)
    return found


def test_binary_rows_have_the_form_of_copy():
    columns = [
        pa.array([1, None, -2], pa.int64()), pa.array(["a", "", None]), pa.array([True, False, None]),
        pa.array([1, 2, 3], pa.int16()),
    ]  # fmt: skip
    rows = pgcopy.copy_rows(columns, [pgcopy.INT4, pgcopy.TEXT, pgcopy.BOOL, pgcopy.INT8])
    assert fields_of_rows(rows) == [
        [b"\0\0\0\1", b"a", b"\1", bytes(7) + b"\1"],
        [None, b"", b"\0", bytes(7) + b"\2"],
        [b"\xff\xff\xff\xfe", None, None, bytes(7) + b"\3"],
    ]


def test_columns_that_are_all_null_have_rows():
    kinds = [(pa.int32(), pgcopy.INT4), (pa.string(), pgcopy.UUID), (pa.decimal128(38, 2), pgcopy.NUMERIC)]
    for kind, number in kinds:
        assert fields_of_rows(pgcopy.copy_rows([pa.nulls(2, kind)], [number])) == [[None], [None]]


@pytest.mark.parametrize(
    ("column", "number"),
    [
        (pa.array([2**31]), pgcopy.INT4),
        (pa.array([2**53 + 1]), pgcopy.FLOAT8),
        (pa.array([0.5]), pgcopy.FLOAT4),
        (pa.array([0.5]), pgcopy.NUMERIC),
        (pa.array(["a"]), pgcopy.INT4),
        (pa.array(["0" * 32]), pgcopy.UUID),
        (pa.array(["0000000g-0000-0000-0000-000000000000"]), pgcopy.UUID),
        (pa.array([-(2**63)]), pgcopy.NUMERIC),
        (pa.array([Decimal(10**19)], pa.decimal128(38, 0)), pgcopy.NUMERIC),
        (pa.array([Decimal(0)], pa.decimal128(38, 17)), pgcopy.NUMERIC),
        (pa.array([b"a"]), pgcopy.TEXT),
    ],
)  # fmt: skip
def test_what_has_no_binary_form_is_left_to_rows(column, number):
    assert pgcopy.copy_rows([column], [number]) is None


@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_last_row_of_each_key_stays(keys):
    column = pa.array(keys)
    pieces = pgcopy.copy_rows([column], [pgcopy.INT8])
    places = pa.array(np.arange(len(keys)))
    found = last_of_each([column, places], pieces)
    last = {key: place for place, key in enumerate(keys)}
    assert dict(zip(found[0].to_pylist(), found[1].to_pylist(), strict=True)) == last
    assert found[1].to_pylist() == sorted(last.values())


# --- MySQL ------------------------------------------------------------------------------------------------------------


@given(st.lists(st.text() | st.text("\\'\"\0\n\r\x1a%;-é", max_size=6), min_size=1, max_size=5))
def test_texts_of_mysql_are_escaped_as_by_its_driver(texts):
    column = pa.array(["left", *texts]).slice(1)
    rows = mysql_values.insert_rows([column], backslash_escapes=True).to_pylist()
    assert rows == [f"('{escape_string(text)}'),".encode() for text in texts]
    rows = mysql_values.insert_rows([column], backslash_escapes=False).to_pylist()
    assert rows == ["('{}'),".format(text.replace("'", "''")).encode() for text in texts]


def test_statements_of_mysql_keep_within_their_limits():
    rows = mysql_values.insert_rows(
        [pa.array(["a", None, "b" * 50, "c"]), pa.array([1, 2, 3, 4])], backslash_escapes=True
    )
    parts = [("('a',1)", "(NULL,2)"), (f"('{'b' * 50}',3)",), ("('c',4)",)]
    by_bytes = mysql_values.statements_of(rows, 100, 20)
    assert [bytes(part).decode() for part in by_bytes] == [",".join(part) for part in parts]
    by_rows = mysql_values.statements_of(rows, 3, 10_000)
    assert [bytes(part).decode() for part in by_rows] == [f"('a',1),(NULL,2),('{'b' * 50}',3)", "('c',4)"]


@pytest.mark.parametrize(
    "column", [pa.array([math.inf]), pa.array([math.nan]), pa.array([Decimal(0)], pa.decimal128(38, 7))]
)
def test_what_mysql_reads_differently_is_left_to_rows(column):
    assert mysql_values.insert_rows([column], backslash_escapes=True) is None
