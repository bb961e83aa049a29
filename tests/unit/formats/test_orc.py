"""OrcFormat: types as Hive has them, values read back, spilling, refusals."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.orc as orc
import pytest
from hypothesis import given, settings

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.formats.columnar.arrow_columns import file_columns
from airflow_connect.formats.format import Format, check_value
from airflow_connect.formats.orc import OrcFormat
from tests.support.session.searching import examples
from tests.unit.formats.connect_values import Sink, schema_and_values, struct_schemas

EVENT = s.struct(
    ("i8", s.INT8), ("i16", s.INT16), ("i32", s.INT32), ("i64", s.INT64), ("f32", s.FLOAT32), ("f64", s.FLOAT64),
    ("flag", s.BOOLEAN), ("text", s.STRING), ("data", s.BYTES), ("maybe", s.OPTIONAL_STRING),
    ("amount", s.decimal(2)), ("day", s.date()), ("clock", s.time()), ("at", s.timestamp()),
    ("list", s.array(s.INT32)), ("by_number", s.map_of(s.INT32, s.STRING)), ("inner", s.struct(("n", s.INT32))),
)  # fmt: skip
VALUE = {
    "i8": -128, "i16": 32767, "i32": -5, "i64": 1 << 62, "f32": 1.5, "f64": 0.1, "flag": True, "text": "zürich",
    "data": b"\0\xff", "maybe": None, "amount": Decimal("123.45"), "day": 19675, "clock": 3_600_001,
    "at": 1_700_000_000_123, "list": [3, 1], "by_number": {7: "x"}, "inner": {"n": 1},
}  # fmt: skip


def written(schema: Schema, values: list[Any], **options: Any) -> bytes:
    sink = Sink()
    encoder = OrcFormat(**options).open(sink, schema)
    encoder.append(values)
    encoder.finish()
    return sink.getvalue()


def read(data: bytes) -> pa.Table:
    return orc.ORCFile(pa.BufferReader(data)).read()


def test_it_is_a_format():
    file_format: Format = OrcFormat()
    assert file_format.extension == ".orc"


def test_every_type_is_read_back_as_hive_would_see_it():
    data = written(EVENT, [VALUE])
    table = read(data)
    assert [str(field.type) for field in table.schema] == [
        "int8", "int16", "int32", "int64", "float", "double", "bool", "string", "binary", "string",
        "decimal128(38, 2)", "date32[day]", "timestamp[ns]", "timestamp[ns]",
        "list<item: int32>", "map<int32, string>", "struct<n: int32>",
    ]  # fmt: skip
    [row] = table.cast(
        pa.schema([f.with_type(pa.timestamp("ms")) if pa.types.is_timestamp(f.type) else f for f in table.schema])
    ).to_pylist()
    assert row == {
        **VALUE,
        "day": dt.date(2023, 11, 14),
        "clock": dt.datetime(1970, 1, 1, 1, 0, 0, 1000),  # noqa: DTZ001 (a wall clock)
        "at": dt.datetime(2023, 11, 14, 22, 13, 20, 123000),  # noqa: DTZ001
        "by_number": [(7, "x")],
    }
    assert orc.ORCFile(pa.BufferReader(data)).compression == "ZLIB"


@settings(max_examples=examples(30))
@given(schema_and_values(struct_schemas))
def test_any_values_make_as_many_rows(case):
    schema, values = case
    try:
        data = written(schema, values)
    except DataError:
        with pytest.raises(DataError, match=r"time before 1970 with a fraction|day before 1582-10-15"):
            written(schema, values)
        return
    # Not read as a whole: pyarrow's reader knows no instants after 2262.
    assert orc.ORCFile(pa.BufferReader(data)).nrows == len(values)


INSTANTS = s.struct(("at", s.timestamp(optional=True)))


@pytest.mark.parametrize("time_ms", [-1, -999, -1001, -2_208_988_800_001])
@pytest.mark.parametrize("nest", ["alone", "struct", "array", "map"])
def test_time_before_1970_with_a_fraction_is_refused_because_spark_and_hive_refuse_the_file(nest, time_ms):
    schema, value = {
        "alone": (INSTANTS, {"at": time_ms}),
        "struct": (s.struct(("in", INSTANTS)), {"in": {"at": time_ms}}),
        "array": (s.struct(("in", s.array(INSTANTS))), {"in": [{"at": 5}, {"at": time_ms}]}),
        "map": (s.struct(("in", s.map_of(s.STRING, INSTANTS))), {"in": {"a": {"at": time_ms}}}),
    }[nest]
    with pytest.raises(DataError, match=r"cannot write the field (in\.)?at: it is a time before 1970") as caught:
        written(schema, [value])
    assert caught.value.code == "data.orc_time"


def test_other_times_before_1970_are_read_back():
    times = [-1000, None, -2_208_988_800_000, 1, 0]
    table = read(written(INSTANTS, [{"at": time_ms} for time_ms in times]))
    assert table["at"].cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() == times


def test_time_before_1970_with_a_fraction_takes_the_reference_path():
    columns = OrcFormat().arrow_schema(INSTANTS)
    whole, fraction = (pa.StructArray.from_arrays([pa.array([n], pa.int64())], ["at"]) for n in (-1000, -1001))
    assert file_columns(whole, INSTANTS, columns, OrcFormat().find_refused) is not None
    assert file_columns(fraction, INSTANTS, columns, OrcFormat().find_refused) is None


FIRST_DAY, FIRST_MS = -141_427, -12_219_292_800_000


@pytest.mark.parametrize("days", [FIRST_DAY - 1, -719_162, -(1 << 31)])
def test_day_before_the_gregorian_calendar_is_refused_because_spark_reads_another_one(days):
    dates = s.struct(("on", s.date(optional=True)), ("in", s.array(s.timestamp())))
    columns, find = OrcFormat().arrow_schema(dates), OrcFormat().find_refused
    good, old_day, old_time = ([{"on": FIRST_DAY, "in": [FIRST_MS]}], [{"on": days, "in": []}],
                               [{"on": None, "in": [0, FIRST_MS - 1000]}])  # fmt: skip
    data = written(dates, [*good, {"on": None, "in": []}])
    # pyarrow's reader knows no instants before 1677.
    found = orc.ORCFile(pa.BufferReader(data)).read(columns=["on"])
    assert found["on"].to_pylist() == [dt.date(1582, 10, 15), None]
    for value, name in ((old_day, "on"), (old_time, "in")):
        with pytest.raises(DataError, match=f"the field {name}: it is a day before 1582-10-15. Spark and Hive read"):
            written(dates, value)
        kind = pa.struct([("on", pa.int32()), ("in", pa.list_(pa.int64()))])
        assert file_columns(pa.array(value, kind), dates, columns, find) is None
        assert file_columns(pa.array(good, kind), dates, columns, find) is not None


def test_a_file_without_rows_has_its_columns():
    table = read(written(EVENT, []))
    assert (table.num_rows, table.schema.names) == (0, [field.name for field in EVENT.fields])


def test_many_stripes_and_spilling_keep_the_order():
    schema = s.struct(("n", s.INT64), ("text", s.STRING))
    sink = Sink()
    encoder = OrcFormat(stripe_bytes=100_000).open(sink, schema)
    for start in range(0, 30_000, 5_000):
        encoder.append([{"n": n, "text": f"text {n * 7919}"} for n in range(start, start + 5_000)])
        encoder.spill()
        assert encoder.buffered_bytes == 0
    encoder.finish()
    table = read(sink.getvalue())
    assert table["n"].to_pylist() == list(range(30_000))
    assert orc.ORCFile(pa.BufferReader(sink.getvalue())).nstripes > 1


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "OrcFormat needs values with a schema"),
        (s.STRING, "OrcFormat needs a STRUCT at the top"),
        (s.struct(("empty", s.struct())), "Orc has no empty groups"),
        (s.struct(("d", s.decimal(40))), "OrcFormat cannot write d, a Decimal of more than 38 digits"),
    ],
)
def test_schemas_that_orc_cannot_hold_are_refused(schema, message):
    with pytest.raises(SchemaError, match=message):
        OrcFormat().open(Sink(), schema)


def test_a_value_that_does_not_fit_is_named():
    with pytest.raises(DataError, match="OrcFormat cannot write a value: field text should be STRING, but is null"):
        check_value(OrcFormat(), EVENT, {**VALUE, "text": None})


def test_after_an_error_no_footer_is_written():
    sink = Sink()
    encoder = OrcFormat().open(sink, EVENT)
    encoder.append([{**VALUE, "i8": "no number"}])
    with pytest.raises(DataError):
        encoder.finish()
    del encoder
    assert sink.getvalue() == b""
