"""Slices of columns of every type, nested twice, through every format: a file may begin anywhere in a batch.

What is read back is compared with the values, not only with what the other path writes: Arrow's writers serve both.
"""

from __future__ import annotations

import io
import itertools
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Schema
from airflow_connect.connectors.files.shared.writing.columns import row_encoder
from airflow_connect.errors import SchemaError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.json_lines import JsonFormat
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ParquetFormat
from airflow_connect.formats.raw_bytes import ByteArrayFormat
from airflow_connect.formats.string_lines import StringFormat
from tests.support.session.searching import examples
from tests.unit.formats.connect_columns import column
from tests.unit.formats.connect_values import Sink, schema_and_values, struct_schemas

ROWS = 40
SLICES = ((0, 3), (1, ROWS - 1), (13, 9))
_NUMBERS = itertools.count()
MakeValue = Callable[[int], Any]
Made = tuple[Schema, MakeValue]
"""A schema, and its value of row n."""


def _optional(schema: Schema, make: MakeValue, every: int) -> Made:
    return replace(schema, optional=True), lambda n: None if n % every == 1 else make(n)


LEAVES: list[Made] = [
    (s.INT8, lambda n: n - 20),
    (s.INT16, lambda n: n * 300),
    (s.INT32, lambda n: n * 70_000),
    (s.INT64, lambda n: n << 40),
    (s.FLOAT32, lambda n: n / 2),
    (s.FLOAT64, lambda n: n / 8),
    (s.BOOLEAN, lambda n: n % 3 == 0),
    (s.STRING, lambda n: f"text {n}" * (n % 4)),
    (s.BYTES, lambda n: b"%d" % n * (n % 3)),
    (s.decimal(2), lambda n: Decimal(n * 7918 - 100_000).scaleb(-2)),
    (s.date(), lambda n: n * 500),
    (s.time(), lambda n: n * 1_000_001),
    (s.timestamp(), lambda n: n * 10**10 + n),
]


def _in_struct(inner: Made, every: int) -> Made:
    schema, make = inner
    name = f"Struct{next(_NUMBERS)}"  # Avro refuses two of the same name.
    made = s.struct(("a", schema), ("b", s.OPTIONAL_STRING), name=name)
    return made, lambda n: {"a": make(n), "b": None if n % (every + 1) == 1 else f"b{n}"}


def _in_list(inner: Made, every: int) -> Made:
    schema, make = _optional(*inner, every)
    return s.array(schema), lambda n: [make(n + k) for k in range(n % 4)]


def _in_map(inner: Made, every: int) -> Made:
    schema, make = _optional(*inner, every)
    return s.map_of(s.STRING, schema), lambda n: {f"k{k}": make(n + k) for k in range(n % 3)}


NESTS = {"struct": _in_struct, "list": _in_list, "map": _in_map}
SHAPES = [shape for depth in range(3) for shape in itertools.product(NESTS, repeat=depth)]


def _rows(shape: tuple[str, ...], *, optional: bool) -> tuple[Schema, list[Any]]:
    """A struct with every leaf in containers of this shape, outermost first; and its values."""
    fields: list[tuple[str, Schema]] = []
    makers: list[MakeValue] = []
    for number, made in enumerate(LEAVES):
        made = _optional(*made, 5) if optional else made
        for level, name in enumerate(reversed(shape), 3):
            made = _optional(*NESTS[name](made, level), level + 1) if optional else NESTS[name](made, level)
        fields.append((f"c{number}", made[0]))
        makers.append(made[1])
    values = [{f"c{k}": make(n) for k, make in enumerate(makers)} for n in range(ROWS)]
    return s.struct(*fields), values


class Stream:
    """What rows in columns are written to, over one encoder."""

    def __init__(self, file_format: Any, schema: Schema) -> None:
        self.sink = Sink()
        self.encoder = file_format.open(self.sink, schema)
        self.append_arrow = getattr(self.encoder, "append_arrow", None)
        self.append_encoded = getattr(self.encoder, "append_encoded", None)

    def write_encoded(self, data: memoryview) -> None:
        self.sink.write(data)

    def content(self) -> bytes:
        self.encoder.finish()
        return self.sink.getvalue()


def _parquet(data: bytes) -> Any:
    return [c.to_pylist() for c in pq.read_table(io.BytesIO(data)).columns]


def _orc(data: bytes) -> Any:
    return [c.to_pylist() for c in orc.ORCFile(pa.BufferReader(data)).read().columns]


def _avro(data: bytes) -> Any:
    blocks = fastavro.block_reader(io.BytesIO(data))
    return blocks.metadata["avro.schema"], b"".join(block.bytes_.getvalue() for block in blocks)


FORMATS: dict[str, tuple[Any, Callable[[bytes], Any]]] = {
    "orc": (OrcFormat(), _orc),
    "parquet": (ParquetFormat(), _parquet),
    "avro": (AvroFormat(), _avro),
    "json": (JsonFormat(), bytes),
}


def _by_records(file_format: Any, schema: Schema, values: list[Any]) -> bytes:
    stream = Stream(file_format, schema)
    stream.encoder.append(values)
    return stream.content()


def _expected(file_format: Any, schema: Schema, values: list[Any]) -> Any:
    """What Arrow holds of the values, before a file is made of them."""
    columns = file_format._columns_of(schema).batch(values).columns
    return [column.to_pylist() for column in columns]


@pytest.mark.parametrize("optional", [True, False], ids=["optional", "required"])
@pytest.mark.parametrize("shape", SHAPES, ids=["-in-".join(reversed(shape)) or "plain" for shape in SHAPES])
@pytest.mark.parametrize("name", FORMATS)
def test_slices_of_every_type_are_read_back(name: str, shape: tuple[str, ...], optional: bool) -> None:
    file_format, read = FORMATS[name]
    schema, values = _rows(shape, optional=optional)
    encode = row_encoder(file_format, schema)
    whole = None if encode is None else encode(column(schema, values))
    assert whole is not None or _has_no_columns(name, shape)
    for start, count in SLICES:
        wanted = values[start : start + count]
        expected = read(_by_records(file_format, schema, wanted))
        if name in ("orc", "parquet"):
            assert expected == _expected(file_format, schema, wanted)
            stream = Stream(file_format, schema)
            stream.append_arrow(file_format._columns_of(schema).batch(values).slice(start, count))
            assert read(stream.content()) == expected
        if whole is None or encode is None:
            continue
        stream = Stream(file_format, schema)
        whole.write(stream, start, start + count)
        assert read(stream.content()) == expected
        # The batch itself may be a slice, and be put into another order.
        part = encode(column(schema, values).slice(start, count))
        assert part is not None
        stream = Stream(file_format, schema)
        part.take(np.arange(count)).write(stream, 0, count)
        assert read(stream.content()) == expected


def _has_no_columns(name: str, shape: tuple[str, ...]) -> bool:
    """Where a batch goes record by record: maps, and lists in Avro."""
    return "map" in shape or (name == "avro" and "list" in shape)


@pytest.mark.parametrize(
    ("file_format", "schema", "values"),
    [
        (ByteArrayFormat(), s.BYTES, [b"", b"a", b"", b"bc", b""]),
        (ByteArrayFormat(separator=b""), s.BYTES, [b"", b"", b"", b"a", b""]),
        (StringFormat(), s.STRING, ["", "é", "", "bc", ""]),
    ],
    ids=["lines", "bytes", "text"],
)
def test_slices_of_bytes_and_text_are_read_back(file_format: Any, schema: Schema, values: list[Any]) -> None:
    encode = row_encoder(file_format, schema)
    assert encode is not None
    for start, stop in itertools.combinations(range(len(values) + 1), 2):
        expected = _by_records(file_format, schema, values[start:stop])
        whole, part = encode(column(schema, values)), encode(column(schema, values).slice(start, stop - start))
        assert whole is not None and part is not None
        stream = Stream(file_format, schema)
        whole.write(stream, start, stop)
        assert stream.content() == expected
        stream = Stream(file_format, schema)
        part.write(stream, 0, stop - start)
        assert stream.content() == expected


@pytest.mark.parametrize("file_format", [OrcFormat(), ParquetFormat()], ids=["orc", "parquet"])
def test_columns_of_other_types_are_refused(file_format: Any) -> None:
    schema = s.struct(("c", s.STRING))
    for values in (pa.array(["a"]).dictionary_encode(), pa.nulls(1), pa.array(["a"], pa.large_string())):
        with pytest.raises(SchemaError, match="do not fit the file's columns"):
            Stream(file_format, schema).append_arrow(pa.record_batch([values], names=["c"]))


@pytest.mark.parametrize("name", ["orc", "parquet"])
@settings(max_examples=examples(100), deadline=None)
@given(drawn=schema_and_values(struct_schemas), data=st.data())
def test_slices_of_any_schema_are_read_back(name: str, drawn: tuple[Schema, list[Any]], data: st.DataObject) -> None:
    file_format, read = FORMATS[name]
    schema, values = drawn[0], [_within_python(drawn[0], value) for value in drawn[1]]
    start = data.draw(st.integers(0, len(values)))
    stop = data.draw(st.integers(start, len(values)))
    stream = Stream(file_format, schema)
    if values:
        stream.append_arrow(file_format._columns_of(schema).batch(values).slice(start, stop - start))
    assert read(stream.content()) == _expected(file_format, schema, values[start:stop])


def _within_python(schema: Schema, value: Any) -> Any:
    """The same value with instants that Python's dates and pyarrow's ORC reader know."""
    if value is None:
        return None
    if schema.name in (s.DATE, s.TIMESTAMP):
        return value % (60_000 if schema.name == s.DATE else 2**42)
    if schema.type is s.Type.STRUCT:
        return {f.name: _within_python(f.schema, value[f.name]) for f in schema.fields}
    if schema.value_schema is not None and isinstance(value, dict):
        return {key: _within_python(schema.value_schema, item) for key, item in value.items()}
    if schema.value_schema is not None:
        return [_within_python(schema.value_schema, item) for item in value]
    return value
