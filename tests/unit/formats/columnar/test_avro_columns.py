"""Avro records out of columns are those out of values, byte for byte."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.formats.avro import BLOCK_BYTES, AvroFormat, RecordWriter
from airflow_connect.formats.columnar.avro_columns import record_writer, varints
from tests.support.session.searching import examples
from tests.unit.formats.connect_columns import column
from tests.unit.formats.connect_values import Sink, schema_and_values

FORMAT = AvroFormat()


def _file(schema: Schema, values: list[Any]) -> Any:
    sink = Sink()
    encoder = FORMAT.open(sink, schema)
    encoder.append(values)
    encoder.finish()
    return fastavro.reader(io.BytesIO(sink.getvalue()))


def _file_of_columns(schema: Schema, encoded: Any) -> Any:
    sink = Sink()
    encoder = FORMAT.open(sink, schema)
    bounds = np.frombuffer(encoded.buffers()[1], np.int32)[encoded.offset : encoded.offset + len(encoded) + 1]
    encoder.append_encoded(memoryview(encoded.buffers()[2] or b""), bounds)
    encoder.finish()
    return fastavro.reader(io.BytesIO(sink.getvalue()))


def _maps_of_entries(schema: Schema) -> int:
    """How many maps are arrays of a type with one name; Avro writes that type once, and then its name."""
    parts = [field.schema for field in schema.fields] + ([schema.value_schema] if schema.value_schema else [])
    key = schema.key_schema
    is_one = key is not None and (key.type is not Type.STRING or key.optional)
    return is_one + sum(map(_maps_of_entries, parts))


@settings(max_examples=examples(300), deadline=None)
@given(schema_and_values())
def test_records_of_any_schema_are_those_of_values(drawn: tuple[Schema, list[Any]]) -> None:
    schema, values = drawn
    values = [value for value in values if value is not None]
    write = record_writer(FORMAT, schema)
    if write is None:
        assert _maps_of_entries(schema) > 1 or schema.type is Type.STRUCT
        return
    columns = column(schema, values)
    encoded = write(columns)
    if encoded is None:
        assert "Decimal" in repr(schema)
        return
    reference = RecordWriter(AvroMapping(AvroSettings()), schema)
    assert b"".join(encoded.to_pylist()) == b"".join(data for _, data in reference.encode(values))


@settings(max_examples=examples(300), deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1) | st.sampled_from([0, -1, 63, 64, -64, -65, 2**63 - 1, -(2**63)])))
def test_numbers_are_written_as_fastavro_writes_them(numbers: list[int]) -> None:
    expected = []
    for number in numbers:
        made = io.BytesIO()
        fastavro.schemaless_writer(made, "long", number)
        expected.append(made.getvalue())
    assert varints(np.array(numbers, dtype=np.int64)).to_pylist() == expected


def test_blocks_end_where_they_are_full() -> None:
    values = ["x" * (n % 3000) for n in range(3000)] + ["y" * (3 * BLOCK_BYTES)]
    write = record_writer(FORMAT, s.STRING)
    assert write is not None
    found = _file_of_columns(s.STRING, write(column(s.STRING, values)))
    assert list(found) == values
    sink = Sink()
    encoder = FORMAT.open(sink, s.STRING)
    encoded = write(column(s.STRING, values))
    bounds = np.frombuffer(encoded.buffers()[1], np.int32)
    encoder.append_encoded(memoryview(encoded.buffers()[2]), bounds)
    encoder.finish()
    sizes = [block.num_records for block in fastavro.block_reader(io.BytesIO(sink.getvalue()))]
    assert sum(sizes) == len(values) and len(sizes) > 10


@pytest.mark.parametrize(
    ("schema", "values"),
    [
        (s.struct(("n", s.INT32)), pa.array([{"n": None}], pa.struct([("n", pa.int32())]))),
        (s.decimal(2), pa.array([b"\0\1"], pa.binary())),
        (s.decimal(2), pa.array([b"\xff\xff"], pa.binary())),
        (s.decimal(2), pa.array([b""], pa.binary())),
        (
            Schema(Type.STRUCT, fields=(Field("n", 0, Schema(Type.INT32, optional=True, default=1)),)),
            pa.array([{"n": None}], pa.struct([("n", pa.int32())])),
        ),
    ],
    ids=["required", "long-decimal", "long-negative-decimal", "empty-decimal", "default"],
)
def test_values_that_only_the_reference_knows_are_not_written(schema: Schema, values: Any) -> None:
    write = record_writer(FORMAT, schema)
    assert write is not None and write(values) is None


def test_decimals_are_written_as_they_are() -> None:
    numbers = [Decimal("1.27"), Decimal("-1.28"), Decimal("1.28"), Decimal("-0.01"), Decimal("0.00")]
    raw = [b"\x7f", b"\x80", b"\x00\x80", b"\xff", b"\x00"]
    write = record_writer(FORMAT, s.decimal(2))
    assert write is not None
    found = _file_of_columns(s.decimal(2), write(pa.array(raw, pa.binary())))
    assert list(found) == list(_file(s.decimal(2), numbers))


def test_decimal_with_more_digits_than_its_precision_is_left_to_the_reference() -> None:
    price = s.decimal(2)
    schema = s.struct(("price", replace(price, parameters={**price.parameters, "connect.decimal.precision": "5"})))
    write = record_writer(FORMAT, schema)
    assert write is not None
    fits, longer = [b"\x01\x86\x9f", b"\xfe\x79\x61"], b"\x01\x86\xa0"  # 999.99, -999.99, 1000.00
    assert write(pa.StructArray.from_arrays([pa.array(fits)], ["price"])) is not None
    assert write(pa.StructArray.from_arrays([pa.array([*fits, longer])], ["price"])) is None


def test_null_that_a_map_must_not_have_is_left_to_the_reference() -> None:
    schema = s.struct(("m", s.map_of(s.STRING, s.INT32)))
    write = record_writer(FORMAT, schema)
    assert write is not None
    kind = pa.struct([("m", pa.map_(pa.string(), pa.int32()))])
    assert write(pa.array([{"m": [("a", 1)]}, {"m": []}], kind)) is not None
    assert write(pa.array([{"m": [("a", 1)]}, {"m": [("b", None)]}], kind)) is None
