"""Keys and headers beside values, in every format that can hold them."""

from __future__ import annotations

import io
from decimal import Decimal
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import Header
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.errors import SchemaError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.format import Format
from airflow_connect.formats.key_and_header_values import headers_value_for, stored_header_text, wrap_key_for
from airflow_connect.formats.parquet import ParquetFormat
from airflow_connect.formats.raw_bytes import ByteArrayFormat
from airflow_connect.java.numbers import to_float32
from tests.unit.formats.connect_values import Sink

HEADERS = (Header("id", s.INT32, 7), Header("id", s.STRING, "seven"), Header("none", None, None))


def _written(made: Format, schema: s.Schema | None, value: Any) -> io.BytesIO:
    sink = Sink()
    encoder = made.open(sink, schema)
    encoder.append([value])
    encoder.finish()
    return io.BytesIO(sink.getvalue())


def test_key_in_parquet_is_a_column_of_a_record_key() -> None:
    schema, value = wrap_key_for(ParquetFormat(), s.STRING, "k1")
    assert schema is not None
    assert schema.name == "RecordKey"
    assert pq.read_table(_written(ParquetFormat(), schema, value)).to_pylist() == [{"key": "k1"}]


def test_key_in_avro_and_raw_bytes_is_as_it_is() -> None:
    avro = _written(AvroFormat(), *wrap_key_for(AvroFormat(), s.INT64, 42))
    assert list(fastavro.reader(avro)) == [42]
    raw = ByteArrayFormat()
    assert _written(raw, *wrap_key_for(raw, s.BYTES, b"k1")).getvalue() == b"k1\n"


def test_key_without_schema_is_refused_by_parquet_itself() -> None:
    schema, value = wrap_key_for(ParquetFormat(), None, "k1")
    with pytest.raises(SchemaError, match="ParquetFormat needs values with a schema"):
        _written(ParquetFormat(), schema, value)


def test_headers_are_an_array_in_avro_and_a_column_in_parquet() -> None:
    expected = [{"key": "id", "value": "7"}, {"key": "id", "value": "seven"}, {"key": "none", "value": None}]
    avro = _written(AvroFormat(), *headers_value_for(AvroFormat(), HEADERS))
    assert list(fastavro.reader(avro)) == [expected]
    parquet = _written(ParquetFormat(), *headers_value_for(ParquetFormat(), HEADERS))
    assert pq.read_table(parquet).to_pylist() == [{"headers": expected}]


@pytest.mark.parametrize(
    ("schema", "value", "text"),
    [
        (None, None, None),
        (s.STRING, "plain", "plain"),
        (s.BOOLEAN, True, "true"),
        (s.FLOAT64, 1.5, "1.5"),
        (s.FLOAT32, to_float32(1.1), "1.1"),
        (s.FLOAT64, 1e20, "1.0E20"),
        (s.date(), 18262, "2020-01-01"),
        (s.time(), 43_200_000, "12:00:00.000Z"),
        (s.timestamp(), 1_577_872_800_000, "2020-01-01T10:00:00.000Z"),
        (s.decimal(-3), Decimal("1E+3"), "1E+3"),
        (s.BYTES, b"\x00\xff", "AP8="),
        (None, ["a", 1, None], '["a",1,null]'),
        (None, {"k": [True, 'quo"te']}, '{"k":[true,"quo\\"te"]}'),
    ],
)
def test_header_text_is_connects_string_form(schema: s.Schema | None, value: Any, text: str | None) -> None:
    assert stored_header_text(schema, value) == text


@pytest.mark.parametrize("text", ["1.1", "2020-01-01", "2020-01-01T10:00:00.000Z", "12:00:00.000Z", "0.1", "1.0E20"])
def test_text_that_a_header_converter_reads_as_a_number_or_a_time_is_stored_as_it_was(text: str) -> None:
    read = SimpleHeaderConverter().to_connect_header("t", "h", text.encode())
    assert read.schema is not None
    assert read.schema.type is not s.Type.STRING
    _, (stored,) = headers_value_for(AvroFormat(), [Header("h", read.schema, read.value)])
    assert stored == {"key": "h", "value": text}
