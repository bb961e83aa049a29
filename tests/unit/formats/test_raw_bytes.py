"""ByteArrayFormat: bytes and separators, nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.formats.format import Format
from airflow_connect.formats.raw_bytes import ByteArrayFormat
from tests.unit.formats.connect_values import Sink


@given(st.lists(st.lists(st.binary(max_size=20))), st.binary(max_size=3))
def test_byte_array_file_is_each_value_followed_by_the_separator(batches: list[list[bytes]], separator: bytes) -> None:
    sink = Sink()
    encoder = ByteArrayFormat(separator=separator).open(sink, s.BYTES)
    for number, batch in enumerate(batches):
        encoder.append(batch)
        if number % 2:
            encoder.spill()
            assert encoder.buffered_bytes == 0
    encoder.finish()
    assert sink.getvalue() == b"".join(value + separator for batch in batches for value in batch)


@pytest.mark.parametrize(
    ("gzip_on", "extension", "encoding"),
    [(False, ".log", ""), (True, ".log.gz", "gzip")],
    ids=["plain", "gzip"],
)
def test_byte_array_names_follow_compression(gzip_on: bool, extension: str, encoding: str) -> None:
    made: Format = ByteArrayFormat(extension=".log", gzip=gzip_on)
    assert (made.extension, made.content_encoding) == (extension, encoding)
    assert made.content_type == "application/octet-stream"


@pytest.mark.parametrize(
    ("schema", "named"),
    [(s.STRING, "STRING"), (s.struct(("a", s.INT8)), "STRUCT"), (s.decimal(2), "data.Decimal")],
)
def test_byte_array_other_schema_says_which_converter_to_use(schema: s.Schema, named: str) -> None:
    with pytest.raises(SchemaError, match=named) as raised:
        ByteArrayFormat().open(Sink(), schema)
    assert "org.apache.kafka.connect.converters.ByteArrayConverter" in raised.value.suggestion


@pytest.mark.parametrize(("value", "named"), [("text", "type str"), (None, "null"), ({"a": 1}, "type dict")])
def test_byte_array_other_value_says_which_converter_to_use(value: Any, named: str) -> None:
    encoder = ByteArrayFormat().open(Sink(), None)
    with pytest.raises(DataError, match=named) as raised:
        encoder.append([b"fine", value])
    assert "ByteArrayConverter" in raised.value.suggestion
