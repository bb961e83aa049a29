"""The columnar path of the storage sinks: converted columns to encoded rows, without a Python object per record.

It is used if the formats of values, keys and headers, partitioner and extractor are supported here. Any other
configuration is processed record by record, and so is every batch that is not vectorizable (a null value, a value that
the format refuses): nothing here reports errors. A property test compares the files of both paths.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.schema import Type
from airflow_connect.connectors.files.shared.writing.column_directories import (
    ColumnDirectories,
    has_columnar_directories,
)
from airflow_connect.errors import DataError
from airflow_connect.formats.avro import AvroFormat
from airflow_connect.formats.columnar.arrow_columns import file_columns
from airflow_connect.formats.columnar.avro_columns import record_writer
from airflow_connect.formats.columnar.json_columns import JsonColumnWriter
from airflow_connect.formats.json_lines import JsonFormat
from airflow_connect.formats.key_and_header_values import headers_schema_for, key_schema_for, wants_struct
from airflow_connect.formats.orc import OrcFormat
from airflow_connect.formats.parquet import ArrowFormat, ParquetFormat
from airflow_connect.formats.raw_bytes import ByteArrayFormat
from airflow_connect.formats.string_lines import StringFormat
from airflow_connect.layout.names.object_names import under_renamed_topic
from airflow_connect.layout.partitioners import innermost
from airflow_connect.layout.rotation_batches import PlacedColumns

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.files.shared.writing.open_file import FileStream
    from airflow_connect.connectors.files.shared.writing.task_plan import StorageTaskPlan
    from airflow_connect.formats.format import Format

_FORMATS = (AvroFormat, ByteArrayFormat, JsonFormat, OrcFormat, ParquetFormat, StringFormat)
_SCHEMAS_KEPT = 100


class Rows(Protocol):
    """Encoded records of a batch."""

    def take(self, order: NDArray[np.intp]) -> Rows:
        """The records in another order, or some of them."""

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append records `[start, stop)` to a file."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Records as bytes of the file, including separators."""

    lines: Any

    def take(self, order: NDArray[np.intp]) -> Lines:
        """In another order."""
        return Lines(self.lines.take(order))

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append bytes."""
        ends = np.frombuffer(self.lines.buffers()[1], dtype=np.int32)
        first = self.lines.offset + start
        low, high = int(ends[first]), int(ends[first + stop - start])
        stream.write_encoded(memoryview(self.lines.buffers()[2])[low:high])


@dataclass(frozen=True, slots=True)
class Columns:
    """Records as columns of a Parquet or ORC file."""

    batch: pa.RecordBatch

    def take(self, order: NDArray[np.intp]) -> Columns:
        """In another order."""
        indexes: Any = order
        return Columns(self.batch.take(indexes))

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append columns."""
        stream.append_arrow(self.batch.slice(start, stop - start))


@dataclass(frozen=True, slots=True)
class Records:
    """Records in the form of the blocks of an Avro file."""

    encoded: Any

    def take(self, order: NDArray[np.intp]) -> Records:
        """In another order."""
        return Records(self.encoded.take(order))

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append records."""
        first = self.encoded.offset + start
        bounds = np.frombuffer(self.encoded.buffers()[1], dtype=np.int32)[first : first + stop - start + 1]
        stream.append_encoded(memoryview(self.encoded.buffers()[2]), bounds)


@dataclass(frozen=True, slots=True)
class Encoded:
    """A batch in the form of its files.

    Attributes:
        values: encoded values.
        keys, headers: the same of each record; None: they are not stored.
    """

    values: Rows
    keys: Rows | None = None
    headers: Rows | None = None

    def take(self, order: NDArray[np.intp]) -> Encoded:
        """In another order, or some of them."""
        keys = None if self.keys is None else self.keys.take(order)
        headers = None if self.headers is None else self.headers.take(order)
        return Encoded(self.values.take(order), keys, headers)


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A batch, ready to be written.

    Attributes:
        topic: of all records, after transformations.
        placed: directories, timestamps and schema, for rotation.
        offsets: int64[n], n > 0.
        encoded: values, and what is stored beside them.
        key_schema, stored_key_schema: of the keys, and as their files have it.
    """

    topic: str
    placed: PlacedColumns
    offsets: NDArray[np.int64]
    encoded: Encoded
    key_schema: Schema | None = None
    stored_key_schema: Schema | None = None

    def under_renamed_topic(self) -> LaidOut:
        """The same batch, with its topic in the directory names."""
        names = [under_renamed_topic(self.topic, name) for name in self.placed.names]
        return replace(self, placed=replace(self.placed, names=names))


RowEncoder = Callable[[Any], "Rows | None"]
"""Values of one schema (n, not null) to rows; None if one of them needs the reference path."""


class _Encoders:
    """Those of the schemas of one kind of file."""

    def __init__(self, file_format: Any) -> None:
        self._format = file_format
        self._known: dict[Schema | None, RowEncoder | None] = {}

    def rows(self, schema: Schema | None, values: Any) -> Rows | None:
        """Encoded values; None if one of them is null or needs the reference path."""
        if values.null_count:
            return None
        if schema not in self._known:
            if len(self._known) >= _SCHEMAS_KEPT:
                self._known.clear()
            self._known[schema] = row_encoder(self._format, schema)
        encode = self._known[schema]
        return None if encode is None else encode(values)


class ColumnLayout:
    """Lays out batches for one configuration."""

    def __init__(self, plan: StorageTaskPlan) -> None:
        """Use `column_layout`."""
        self._directories = ColumnDirectories(plan.layout.partitioner, plan.now_ms)
        self._values = _Encoders(plan.value.format)
        self._key_format = None if plan.key is None else plan.key.format
        self._keys = _Encoders(self._key_format)
        self._header_format = None if plan.headers is None else plan.headers.format
        self._headers = _Encoders(self._header_format)

    def lay_out(self, pieces: Sequence[RecordColumns]) -> list[LaidOut] | None:
        """Directories and encoded values of the pieces of a batch; None if it must be processed record by record.

        Has no side effects. Pieces without records are omitted.
        """
        laid_out: list[LaidOut] = []
        for piece in pieces:
            if not len(piece):
                continue
            placed, rows = self._directories.place(piece), self._values.rows(piece.value.schema, piece.value.values)
            if placed is None or rows is None:
                return None
            encoded, key_schema, stored_schema = Encoded(rows), None, None
            if self._key_format is not None:
                keys = None if piece.key is None else _as_stored(piece.key, self._key_format)
                key_rows = None if keys is None else self._keys.rows(keys.schema, keys.values)
                if piece.key is None or keys is None or key_rows is None:
                    return None  # A null key is an error of its record, for example.
                encoded = replace(encoded, keys=key_rows)
                key_schema, stored_schema = piece.key.schema, keys.schema
            if self._header_format is not None:
                header_rows = self._header_rows(piece.headers, self._header_format)
                if header_rows is None:
                    return None
                encoded = replace(encoded, headers=header_rows)
            laid_out.append(LaidOut(piece.topic, placed, piece.offsets, encoded, key_schema, stored_schema))
        return laid_out

    def _header_rows(self, headers: Any, header_format: Format) -> Rows | None:
        """Encoded headers; None if a record has none, which is its error, or needs the reference path."""
        if headers is None or not pc.list_value_length(headers).to_numpy().all():
            return None
        wrapped = pa.StructArray.from_arrays([headers], names=["headers"]) if wants_struct(header_format) else headers
        return self._headers.rows(headers_schema_for(header_format), wrapped)


def _as_stored(keys: ValueColumns, key_format: Format) -> ValueColumns:
    """As `wrap_key_for` of each."""
    if keys.schema is None or not wants_struct(key_format):
        return keys
    struct = pa.StructArray.from_arrays([keys.values], names=["key"])
    # A null key stays null: it is an error, and not a key that is null.
    return ValueColumns(key_schema_for(key_format, keys.schema), pc.if_else(keys.values.is_valid(), struct, None))


def column_layout(plan: StorageTaskPlan) -> ColumnLayout | None:
    """The columnar path of a configuration, or None if one of its stages only works record by record."""
    return None if stage_without_columns(plan) else ColumnLayout(plan)


def stage_without_columns(plan: StorageTaskPlan) -> str:
    """What of a configuration only works record by record, as a noun; "": nothing does."""
    if not has_columnar_directories(plan.layout.partitioner):
        return f"the partitioner or its timestamps ({type(innermost(plan.layout.partitioner)).__name__})"
    if plan.key is not None and type(plan.key.format) not in _FORMATS:
        return f"the format of keys ({type(plan.key.format).__name__})"
    if plan.headers is not None and not _holds_headers(plan.headers.format):
        return f"the format of headers ({type(plan.headers.format).__name__})"
    return "" if type(plan.value.format) in _FORMATS else f"the format ({type(plan.value.format).__name__})"


def _holds_headers(file_format: Format) -> bool:
    return type(file_format) in _FORMATS and row_encoder(file_format, headers_schema_for(file_format)) is not None


def row_encoder(file_format: Any, schema: Schema | None) -> RowEncoder | None:
    """The columnar form of a format for one schema; None if there is none, or if the format refuses the schema."""
    if isinstance(file_format, JsonFormat):
        return Lines if schema is None else _json_encoder(JsonColumnWriter(schema, file_format.options))
    if schema is None:
        return None
    if isinstance(file_format, ByteArrayFormat):
        is_bytes = schema.type is Type.BYTES and schema.name is None
        return _raw_encoder(file_format.separator) if is_bytes else None
    if isinstance(file_format, StringFormat):
        return _text_encode if schema.type is Type.STRING and schema.name is None else None
    try:
        if isinstance(file_format, AvroFormat):
            return _avro_encoder(record_writer(file_format, schema))
        return _arrow_encoder(schema, file_format)
    except DataError:
        return None


def _json_encoder(writer: JsonColumnWriter) -> RowEncoder:
    def encode(values: Any) -> Rows | None:
        lines = writer.lines(values)
        return None if lines is None else Lines(lines)

    return encode


def _raw_encoder(separator: bytes) -> RowEncoder:
    def encode(values: Any) -> Rows | None:
        return Lines(pc.binary_join_element_wise(values, b"", separator))

    return encode


def _text_encode(values: Any) -> Rows | None:
    return Lines(pc.binary_join_element_wise(values, "", "\n"))


def _avro_encoder(write: Callable[[Any], Any | None] | None) -> RowEncoder | None:
    if write is None:
        return None

    def encode(values: Any) -> Rows | None:
        encoded = write(values)
        return None if encoded is None else Records(encoded)

    return encode


def _arrow_encoder(schema: Schema, file_format: ArrowFormat) -> RowEncoder:
    columns, find_refused = file_format.arrow_schema(schema), file_format.find_refused

    def encode(values: Any) -> Rows | None:
        batch = file_columns(values, schema, columns, find_refused)
        return None if batch is None else Columns(batch)

    return encode
