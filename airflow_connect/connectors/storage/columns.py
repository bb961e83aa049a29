"""The columnar path of the storage sinks: a batch of raw messages to encoded rows, without a Python object per record.

A configuration has it when converter, value format, partitioner and extractor are ones that are known here; the rest
goes record by record, and so does every batch that is not plain (a null value, broken JSON, a value that does not fit
its schema): nothing here reports errors. A property test holds both paths equal, file by file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from airflow_connect.api.errors import DataError
from airflow_connect.api.record import TIMESTAMP_NOT_AVAILABLE
from airflow_connect.api.schema import OPTIONAL_BYTES, Schema
from airflow_connect.connectors.storage.columns_json import JsonColumns, json_columns
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.json_converter import JsonConverter
from airflow_connect.formats.json_lines import JsonFormat, to_json_lines
from airflow_connect.formats.parquet import ParquetFormat
from airflow_connect.formats.raw_bytes import ByteArrayFormat
from airflow_connect.layout.partitioners import DefaultPartitioner, TimeBasedPartitioner
from airflow_connect.layout.rotation_batches import RecordColumns
from airflow_connect.layout.timestamp_extractors import RecordTimestampExtractor, WallclockTimestampExtractor

if TYPE_CHECKING:
    from airflow_connect.connectors.storage.open_file import FileStream
    from airflow_connect.connectors.storage.task_plan import StorageTaskPlan
    from airflow_connect.kafka.column_batch import ColumnBatch

_LINE_FEED = 10
_NULL_LINE = b"null\n"


class Rows(Protocol):
    """Encoded records of a batch."""

    def take(self, order: NDArray[np.intp]) -> Rows:
        """The records in another order, or some of them."""

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append the records `[start, stop)` to a file."""


@dataclass(frozen=True, slots=True)
class Lines:
    """Records as bytes of the file, separators included."""

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
    """Records as columns of a Parquet file."""

    batch: pa.RecordBatch

    def take(self, order: NDArray[np.intp]) -> Columns:
        """In another order."""
        indexes: Any = order
        return Columns(self.batch.take(indexes))

    def write(self, stream: FileStream, start: int, stop: int) -> None:
        """Append columns."""
        stream.append_arrow(self.batch.slice(start, stop - start))


class ValueForm(Protocol):
    """Converter and format in one step."""

    @property
    def schema(self) -> Schema | None:
        """Schema of all values."""

    def rows(self, values: Any) -> Rows | None:
        """Encode messages (binary[n] without nulls), or None when one of them is not plain."""


class RawForm:
    """ByteArrayConverter, ByteArrayFormat."""

    schema: Schema | None = OPTIONAL_BYTES

    def __init__(self, separator: bytes) -> None:
        """`separator`: follows every value."""
        self._separator = separator

    def rows(self, values: Any) -> Rows | None:
        """Any bytes will do."""
        return Lines(_ended(values, self._separator))


class JsonLinesForm:
    """JsonConverter without schemas, JsonFormat."""

    schema: Schema | None = None

    def rows(self, values: Any) -> Rows | None:
        """Messages must be JSON, and none of them `null`."""
        try:
            text = to_json_lines(values.to_pylist())
        except DataError:
            return None
        # JSON escapes line feeds inside text, so each one ends a record.
        ends = np.flatnonzero(np.frombuffer(text, np.uint8) == _LINE_FEED) + 1
        if len(ends) != len(values):
            return None
        offsets = np.zeros(len(ends) + 1, dtype=np.int32)
        offsets[1:] = ends
        if any(text[e - len(_NULL_LINE) : e] == _NULL_LINE for e in ends[np.diff(offsets) == len(_NULL_LINE)].tolist()):
            return None
        starts: Any = offsets
        buffers: Any = [None, pa.py_buffer(starts), pa.py_buffer(text)]
        return Lines(pa.Array.from_buffers(pa.binary(), len(ends), buffers))


class ParquetForm:
    """JsonConverter with `schema.content`, ParquetFormat."""

    def __init__(self, schema: Schema, reader: JsonColumns) -> None:
        """`reader`: for messages of `schema`."""
        self.schema: Schema | None = schema
        self._reader = reader

    def rows(self, values: Any) -> Rows | None:
        """Messages must be objects with members of the schema's types."""
        batch = self._reader.read(_ended(values, b"\n"))
        return None if batch is None else Columns(batch)


@dataclass(frozen=True, slots=True)
class LaidOut:
    """A batch that is ready to be written.

    Attributes:
        records: directories, timestamps and schema, for rotation.
        offsets: int64[n].
        rows: encoded values.
    """

    records: RecordColumns
    offsets: NDArray[np.int64]
    rows: Rows


class ColumnPath:
    """Lays out batches for one configuration."""

    def __init__(self, form: ValueForm, plan: StorageTaskPlan) -> None:
        """Use `column_path`."""
        self._form = form
        self._partitioner = plan.layout.partitioner
        self._now_ms = plan.now_ms

    def lay_out(self, batch: ColumnBatch) -> LaidOut | None:
        """Directories and encoded values of a batch; None when it has to go record by record. Changes nothing."""
        if batch.values.null_count:
            return None
        timestamps = self._timestamps(batch)
        try:
            if isinstance(self._partitioner, TimeBasedPartitioner):
                if timestamps is None:
                    return None
                codes, names = self._partitioner.directories_of_timestamps(timestamps)
            else:
                codes, names = np.zeros(len(batch), dtype=np.int32), [f"partition={batch.partition}"]
        except (DataError, ValueError, OverflowError):
            return None
        rows = self._form.rows(batch.values)
        if rows is None:
            return None
        return LaidOut(RecordColumns(codes, names, timestamps, self._form.schema), batch.offsets, rows)

    def _timestamps(self, batch: ColumnBatch) -> NDArray[np.int64] | None:
        if not isinstance(self._partitioner, TimeBasedPartitioner):
            return None
        if isinstance(self._partitioner.extractor, WallclockTimestampExtractor):
            return np.full(len(batch), self._now_ms, dtype=np.int64)
        return None if batch.timestamp_type == TIMESTAMP_NOT_AVAILABLE else batch.timestamps


def column_path(plan: StorageTaskPlan, converter: Any) -> ColumnPath | None:
    """The columnar path of a configuration, or None when a stage of it works record by record only."""
    if plan.key is not None or plan.headers is not None or not _has_columnar_directories(plan.layout.partitioner):
        return None
    form = _value_form(plan.value.format, converter)
    return None if form is None else ColumnPath(form, plan)


def _has_columnar_directories(partitioner: Any) -> bool:
    if type(partitioner) is TimeBasedPartitioner:
        return type(partitioner.extractor) in (WallclockTimestampExtractor, RecordTimestampExtractor)
    return type(partitioner) is DefaultPartitioner


def _value_form(file_format: Any, converter: Any) -> ValueForm | None:
    if type(converter) is ByteArrayConverter and type(file_format) is ByteArrayFormat:
        return RawForm(file_format.separator)
    if type(converter) is not JsonConverter:
        return None
    if converter.is_plain and type(file_format) is JsonFormat:
        return JsonLinesForm()
    if converter.fixed_schema is not None and type(file_format) is ParquetFormat:
        schema = converter.fixed_schema
        reader = json_columns(schema, file_format.arrow_schema(schema))
        return None if reader is None else ParquetForm(schema, reader)
    return None


def _ended(values: Any, separator: bytes) -> Any:
    """Each value with the separator behind it."""
    return pc.binary_join_element_wise(values, b"", separator)
