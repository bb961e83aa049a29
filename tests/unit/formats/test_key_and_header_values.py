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
from airflow_connect.errors import SchemaError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.format import Format
from airflow_connect.formats.key_and_header_values import header_text, headers_value_for, wrap_key_for
from airflow_connect.formats.parquet import ParquetFormat
from airflow_connect.formats.raw_bytes import ByteArrayFormat
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
    ("value", "text"),
    [
        (None, None),
        ("plain", "plain"),
        (True, "true"),
        (1.5, "1.5"),
        (Decimal("1E+3"), "1000"),
        (b"\x00\xff", "AP8="),
        (["a", 1, None], '["a",1,null]'),
        ({"k": [True, 'quo"te']}, '{"k":[true,"quo\\"te"]}'),
    ],
)
def test_header_text_is_connects_string_form(value: Any, text: str | None) -> None:
    assert header_text(value) == text
