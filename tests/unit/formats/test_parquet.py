"""ParquetFormat: files that others read back, row groups, spilling, and no file after an error."""

from __future__ import annotations

import gc
import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema, Type
from airflow_connect.errors import ConfigError, DataError, SchemaError, UnavailableError
from airflow_connect.formats.format import Format
from airflow_connect.formats.parquet import ParquetFormat
from tests.support.session.searching import examples
from tests.unit.formats.connect_values import Sink, schema_and_values, struct_schemas

EVENT = s.struct(("id", s.INT64), ("city", s.OPTIONAL_STRING), ("at", s.timestamp()), ("ok", s.BOOLEAN))


def _rows(count: int) -> list[dict[str, Any]]:
    return [{"id": n, "city": f"city {n % 7}", "at": 1_000 * n, "ok": n % 2 == 0} for n in range(count)]


def _written(schema: Schema, values: list[Any], **options: Any) -> bytes:
    sink = Sink()
    encoder = ParquetFormat(**options).open(sink, schema)
    encoder.append(values)
    encoder.finish()
    return sink.getvalue()


def _as_numbers(table: pa.Table) -> list[Any]:
    """Rows with dates and times as the integers that are in the file."""
    return table.cast(pa.schema([f.with_type(_number_type(f.type)) for f in table.schema])).to_pylist()


def _number_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_date32(kind) or pa.types.is_time32(kind):
        return pa.int32()
    if pa.types.is_timestamp(kind):
        return pa.int64()
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_number_type(f.type)) for f in kind])
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, kind.item_field.with_type(_number_type(kind.item_type)))
    if pa.types.is_list(kind):
        return pa.list_(kind.value_field.with_type(_number_type(kind.value_type)))
    return kind


def _expected(schema: Schema, value: Any) -> Any:
    """What pyarrow must read for a Connect value: maps are lists of pairs, or of {key, value} structs."""
    if value is None:
        return None
    if schema.type is Type.STRUCT:
        return {f.name: _expected(f.schema, value.get(f.name)) for f in schema.fields}
    if schema.type is Type.ARRAY:
        assert schema.value_schema
        return [_expected(schema.value_schema, v) for v in value]
    if schema.type is Type.MAP:
        assert schema.value_schema and schema.key_schema
        pairs = [(k, _expected(schema.value_schema, v)) for k, v in value.items()]
        if schema.key_schema.type is Type.STRING and not schema.key_schema.optional:
            return pairs
        return [{"key": k, "value": v} for k, v in pairs]
    return value


@settings(deadline=None, max_examples=examples(150))
@given(schema_and_values(struct_schemas))
def test_parquet_file_of_any_struct_reads_back_equal(made: tuple[Schema, list[Any]]) -> None:
    schema, values = made
    table = pq.read_table(io.BytesIO(_written(schema, values)))
    assert _as_numbers(table) == [_expected(schema, v) for v in values]


@pytest.mark.parametrize(
    ("codec", "extension", "in_file"),
    [
        ("none", ".parquet", "UNCOMPRESSED"),
        ("uncompressed", ".parquet", "UNCOMPRESSED"),
        ("snappy", ".snappy.parquet", "SNAPPY"),
        ("gzip", ".gz.parquet", "GZIP"),
        ("brotli", ".br.parquet", "BROTLI"),
        ("zstd", ".zstd.parquet", "ZSTD"),
        ("lz4", ".lz4hadoop.parquet", "LZ4"),
        ("lz4_raw", ".lz4raw.parquet", "LZ4"),
    ],
)
def test_parquet_codec_is_in_name_and_file_and_polars_reads_it(codec: str, extension: str, in_file: str) -> None:
    made: Format = ParquetFormat(codec=codec)
    assert (made.extension, made.content_encoding) == (extension, "")
    data = _written(EVENT, _rows(3000), codec=codec)
    column = pq.ParquetFile(io.BytesIO(data)).metadata.row_group(0).column(1)
    assert column.compression == in_file
    assert polars.read_parquet(io.BytesIO(data))["city"].to_list() == [r["city"] for r in _rows(3000)]


def test_parquet_types_are_those_of_the_schema() -> None:
    schema = s.struct(
        ("i8", s.INT8),
        ("d", s.date()),
        ("t", s.time()),
        ("ts", s.timestamp(optional=True)),
        ("dec", s.decimal(2)),
        ("wide", s.decimal(50)),
        ("m", s.map_of(s.STRING, s.OPTIONAL_INT32)),
    )
    read = pq.read_schema(io.BytesIO(_written(schema, [])))
    assert [str(read.field(n).type) for n in range(6)] == [
        "int32",
        "date32[day]",
        "time32[ms]",
        "timestamp[ms, tz=UTC]",
        "decimal128(38, 2)",
        "decimal256(76, 50)",
    ]
    assert [f.nullable for f in read] == [False, False, False, True, False, False, False]
    assert pa.types.is_map(read.field("m").type)


def test_parquet_decimal_precision_parameter_and_negative_scale_are_kept() -> None:
    precise = Schema(
        Type.BYTES, name=s.DECIMAL, version=1, parameters={"scale": "2", "connect.decimal.precision": "10"}
    )
    schema = s.struct(("p", precise), ("n", s.decimal(-3)))
    table = pq.read_table(io.BytesIO(_written(schema, [{"p": Decimal("1.20"), "n": Decimal("12E+3")}])))
    assert [str(f.type) for f in table.schema] == ["decimal128(10, 2)", "decimal128(38, 0)"]
    assert table.to_pylist() == [{"p": Decimal("1.20"), "n": Decimal("12000")}]


def test_parquet_null_gets_the_default() -> None:
    schema = s.struct(("limit", Schema(Type.INT32, optional=True, default=7)), ("id", s.INT8))
    table = pq.read_table(io.BytesIO(_written(schema, [{"limit": None, "id": 1}, {"limit": 1, "id": 2}, {"id": 3}])))
    assert table["limit"].to_pylist() == [7, 1, 7]


def test_parquet_full_row_groups_are_written_while_the_file_grows() -> None:
    sink = Sink()
    encoder = ParquetFormat(row_group_bytes=200_000).open(sink, EVENT)
    rows = _rows(30_000)
    for start in range(0, len(rows), 1000):
        encoder.append(rows[start : start + 1000])
    assert len(sink.getvalue()) > 0
    encoder.finish()
    read = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    assert read.metadata.num_row_groups > 2
    assert read.read()["id"].to_pylist() == list(range(30_000))


def test_parquet_spilled_rows_leave_memory_and_come_back_in_order() -> None:
    sink = Sink()
    encoder = ParquetFormat().open(sink, EVENT)
    rows = _rows(30_000)
    for start in range(0, len(rows), 5000):
        encoder.append(rows[start : start + 5000])
        assert encoder.buffered_bytes > 5000 * 20
        if start != 25_000:
            encoder.spill()
            assert encoder.buffered_bytes == 0
    encoder.finish()
    read = pq.ParquetFile(io.BytesIO(sink.getvalue()))
    assert read.metadata.num_row_groups == 1
    assert read.read()["id"].to_pylist() == list(range(30_000))


def test_parquet_spilling_many_files_bounds_memory() -> None:
    before = pa.total_allocated_bytes()
    made = ParquetFormat()
    encoders = [made.open(Sink(), EVENT) for _ in range(200)]
    for encoder in encoders:
        encoder.append(_rows(4096))
        encoder.spill()
    assert pa.total_allocated_bytes() - before < 1_000_000
    assert sum(e.buffered_bytes for e in encoders) == 0


def test_parquet_arrow_and_rows_mix_in_order() -> None:
    sink = Sink()
    made = ParquetFormat()
    encoder = made.open(sink, EVENT)
    columns = made.arrow_schema(EVENT)
    rows = _rows(30)
    encoder.append(rows[:10])
    encoder.append_arrow(pa.RecordBatch.from_pylist(rows[10:20], schema=columns))
    encoder.append(rows[20:])
    encoder.finish()
    read = pq.read_table(io.BytesIO(sink.getvalue()))
    assert read["id"].to_pylist() == list(range(30))
    assert read.schema.equals(columns)


def test_parquet_arrow_and_row_paths_make_the_same_file() -> None:
    sink = Sink()
    made = ParquetFormat(codec="zstd")
    encoder = made.open(sink, EVENT)
    encoder.append_arrow(pa.RecordBatch.from_pylist(_rows(5000), schema=made.arrow_schema(EVENT)))
    encoder.finish()
    assert sink.getvalue() == _written(EVENT, _rows(5000), codec="zstd")


def test_parquet_arrow_with_other_columns_is_a_schema_error() -> None:
    encoder = ParquetFormat().open(Sink(), s.struct(("id", s.INT64)))
    with pytest.raises(SchemaError, match="id string do not fit the file's columns id int64"):
        encoder.append_arrow(pa.RecordBatch.from_pydict({"id": ["x"]}))
    with pytest.raises(DataError, match="field id is required"):
        encoder.append_arrow(pa.RecordBatch.from_pydict({"id": pa.array([None], pa.int64())}))


def test_parquet_dictionary_only_where_values_repeat() -> None:
    metadata = pq.ParquetFile(io.BytesIO(_written(EVENT, _rows(20_000)))).metadata.row_group(0)
    has_dictionary = {
        metadata.column(n).path_in_schema: metadata.column(n).has_dictionary_page for n in range(metadata.num_columns)
    }
    assert has_dictionary == {"id": False, "city": True, "at": False, "ok": False}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (None, "ParquetFormat needs values with a schema"),
        (s.STRING, "needs a STRUCT at the top, .* STRING"),
        (s.struct(), "the value: it is a STRUCT without fields"),
        (s.struct(("a", s.array(s.struct()))), r"a\[\]: it is a STRUCT without fields"),
        (s.struct(("a", s.decimal(77))), "a, a Decimal of precision 76 and scale 77"),
    ],
    ids=["schemaless", "string", "empty", "empty inside", "decimal"],
)
def test_parquet_schema_that_cannot_be_written_says_why(schema: Schema | None, message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        ParquetFormat().open(Sink(), schema)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": {"b": None}, "c": []}, "field a.b should be INT32, but is null"),
        ({"a": {"b": "secret"}, "c": []}, "field a.b should be INT32, but is of the Python type str"),
        ({"a": None, "c": [1, None]}, r"field c\[1\] should be INT8, but is null"),
        ({"a": {"b": 2**40}, "c": []}, "field a.b should be INT32, but does not fit 32 bits"),
        (None, "the value should be STRUCT, but is null"),
    ],
)
def test_parquet_wrong_value_is_named_without_its_content(value: Any, message: str) -> None:
    schema = s.struct(("a", s.struct(("b", s.INT32), optional=True)), ("c", s.array(s.INT8)))
    encoder = ParquetFormat().open(Sink(), schema)
    encoder.append([{"a": None, "c": [1]}, value])
    with pytest.raises(DataError, match=message) as raised:
        encoder.finish()
    assert "secret" not in str(raised.value)


def test_parquet_dropped_encoder_writes_nothing_more() -> None:
    sink = Sink()
    encoder = ParquetFormat(row_group_bytes=1000).open(sink, EVENT)
    encoder.append(_rows(5000))
    before = sink.getvalue()
    assert before[:4] == b"PAR1"
    del encoder
    gc.collect()
    assert sink.getvalue() == before
    assert before[-4:] != b"PAR1"


def test_parquet_error_of_the_sink_comes_through_and_no_footer_follows() -> None:
    class Failing(Sink):
        broken = False

        def write(self, data: bytes | bytearray | memoryview) -> None:  # type: ignore[override]
            if self.broken:
                raise UnavailableError("The store is away.")
            super().write(data)

    sink = Failing()
    encoder = ParquetFormat(row_group_bytes=1000).open(sink, EVENT)
    encoder.append(_rows(5000))
    sink.broken = True
    with pytest.raises(UnavailableError, match="The store is away"):
        encoder.append(_rows(5000))
    sink.broken = False
    del encoder
    gc.collect()
    assert sink.getvalue()[-4:] != b"PAR1"


def test_parquet_unknown_codec_is_a_config_error() -> None:
    with pytest.raises(ConfigError, match="'lzo' cannot be written") as raised:
        ParquetFormat(codec="lzo")
    assert raised.value.config_path == "parquet.codec"


def test_parquet_spill_on_a_full_disk_keeps_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    sink = Sink()
    encoder = ParquetFormat().open(sink, EVENT)
    encoder.append(_rows(10))
    monkeypatch.setattr("os.pwrite", no_space)
    with pytest.raises(UnavailableError, match="No space left on device"):
        encoder.spill()
    assert encoder.buffered_bytes > 0
    monkeypatch.undo()
    encoder.spill()
    encoder.finish()
    assert pq.read_table(io.BytesIO(sink.getvalue()))["id"].to_pylist() == list(range(10))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ("1.234", "field d has more digits after the decimal point than the scale 2 allows"),
        ("123456.78", "field d has more digits than the precision 5 allows"),
        ("NaN", "field d is not a finite number"),
    ],
)
def test_decimal_that_does_not_fit_names_field_and_limit(value: str, said: str) -> None:
    parameters = {"scale": "2", "connect.decimal.precision": "5"}
    schema = s.struct(("d", replace(s.decimal(2), parameters=parameters)))
    with pytest.raises(DataError, match=said) as caught:
        _written(schema, [{"d": Decimal("1.20")}, {"d": Decimal(value)}])
    assert value == "NaN" or value not in caught.value.message
