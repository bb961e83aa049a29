"""Parquet files: Confluent's ParquetFormat.

Values are buffered as Arrow batches until they fill a row group; buffered batches can be spilled to disk. Bytes are
written only to the sink that `open` was given, and only within `append`, `append_arrow` and `finish`: pyarrow's own
writers write a footer when they are garbage-collected, which would complete a partial file after an error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa
import pyarrow.parquet as pq

from airflow_connect.errors import ConfigError, DataError, SchemaError
from airflow_connect.formats.columnar.arrow_schema import ArrowMapping
from airflow_connect.formats.columnar.arrow_spill import ArrowSpill
from airflow_connect.formats.columnar.dictionary_choice import DICTIONARY_BYTES, choose_dictionary_columns
from airflow_connect.formats.value_check import cannot_write, find_mismatch, no_schema

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.value_transform import Transform
    from airflow_connect.formats.columnar.orc_times import RefusedTime
    from airflow_connect.formats.format import ByteSink

ROW_GROUP_BYTES = 128 * 1024 * 1024
"""Arrow bytes of a row group, before encoding; as Parquet's own `parquet.block.size`."""
ROW_GROUP_ROWS = 1024 * 1024

_ROWS_AT_ONCE = 4096
_ROW_BYTES_GUESS = 1000
_SCHEMAS_KEPT = 1000


@dataclass(frozen=True, slots=True)
class Codec:
    """pyarrow's name, level (None: the codec has none) and Parquet's extension (CompressionCodecName)."""

    name: str
    level: int | None
    extension: str


# Levels are always given: pyarrow's default for gzip (9) is 40 times slower than zstd.
CODECS = {
    "none": Codec("none", None, ""),
    "uncompressed": Codec("none", None, ""),
    "snappy": Codec("snappy", None, ".snappy"),
    "gzip": Codec("gzip", 4, ".gz"),
    "brotli": Codec("brotli", 4, ".br"),
    "zstd": Codec("zstd", 1, ".zstd"),
    # Both write LZ4_RAW: Hadoop's older LZ4 is deprecated by the Parquet specification.
    "lz4": Codec("lz4", None, ".lz4hadoop"),
    "lz4_raw": Codec("lz4", None, ".lz4raw"),
}


class ArrowFormat:
    """What formats with Arrow columns have in common: they write structs with a schema."""

    content_encoding = ""

    def __init__(
        self, name: str, mapping: ArrowMapping, find_refused: Callable[[Any], RefusedTime | None] | None = None
    ) -> None:
        """Configure.

        Args:
            name: of the format, for messages.
            mapping: Connect schemas to Arrow types.
            find_refused: finds a value in an array that readers of the format would not read as it was written.
        """
        self._name = name
        self._mapping = mapping
        self.find_refused = find_refused
        self._values: dict[Schema, ValueColumns] = {}

    def arrow_schema(self, schema: Schema) -> pa.Schema:
        """The columns that the encoder's `append_arrow` accepts for values of `schema`.

        Raises:
            SchemaError: not a STRUCT, or one that the format cannot express.
        """
        return self._mapping.arrow_schema(schema)

    def check(self, schema: Schema | None, value: Any) -> None:
        """Check whether a value can be written, without writing a file.

        Raises:
            DataError: it cannot.
        """
        self._columns_of(schema).batch([value])

    def _columns_of(self, schema: Schema | None) -> ValueColumns:
        if schema is None:
            raise no_schema(self._name)
        values = self._values.get(schema)
        if values is None:
            if len(self._values) >= _SCHEMAS_KEPT:
                self._values.clear()
            columns = self._mapping.arrow_schema(schema)
            values = ValueColumns(schema, columns, self._mapping.transform(schema), self._name, self.find_refused)
            self._values[schema] = values
        return values


class ParquetFormat(ArrowFormat):
    """Structs with a schema."""

    content_type = "application/vnd.apache.parquet"

    def __init__(
        self,
        codec: str = "snappy",
        allow_optional_map_keys: bool = False,
        row_group_bytes: int = ROW_GROUP_BYTES,
        *,
        codec_in_extension: bool = True,
    ) -> None:
        """Configure.

        Args:
            codec: `parquet.codec`.
            allow_optional_map_keys: `allow.optional.map.keys`.
            row_group_bytes: Arrow bytes after which a row group ends.
            codec_in_extension: whether the extension names the codec, as in Confluent's S3 sink; its HDFS sink writes
                `.parquet` always (ParquetRecordWriterProvider).

        Raises:
            ConfigError: the codec does not exist, or no free library can write it (lzo).
        """
        if codec not in CODECS:
            raise ConfigError(
                f"The Parquet codec {codec!r} cannot be written.",
                code="config.value",
                suggestion=f"Use one of {', '.join(CODECS)}.",
                config_path="parquet.codec",
            )
        self._codec = CODECS[codec]
        self._codec_in_extension = codec_in_extension
        super().__init__("ParquetFormat", ArrowMapping(allow_optional_map_keys))
        self._row_group_bytes = row_group_bytes

    @property
    def extension(self) -> str:
        """`.parquet`, preceded by the codec if it is configured, as in Confluent's S3 sink."""
        return f"{self._codec.extension}.parquet" if self._codec_in_extension else ".parquet"

    def open(self, sink: ByteSink, schema: Schema | None) -> ParquetEncoder:
        """Start a file.

        Raises:
            SchemaError: no schema, not a STRUCT, or one that Parquet cannot express.
        """
        values = self._columns_of(schema)
        writer = RowGroupWriter(sink, values.columns, self._codec)
        return ParquetEncoder(writer, values, self._row_group_bytes)


class ValueColumns:
    """Converts values of one schema to Arrow columns; shared by the files of a format, keeps no values."""

    def __init__(
        self,
        schema: Schema,
        columns: pa.Schema,
        transform: Transform | None,
        format_name: str,
        find_refused: Callable[[Any], RefusedTime | None] | None = None,
    ) -> None:
        """`columns`: the Arrow form of `schema`; `format_name`: for messages; `find_refused`: as in `ArrowFormat`."""
        self._find_refused = find_refused
        self._format_name = format_name
        self._schema = schema
        self.columns = columns
        self._transform = transform
        self._struct = pa.struct(list(columns))

    def batch(self, values: list[Any]) -> pa.RecordBatch:
        """Columns of `values`.

        Raises:
            DataError: a value does not fit the schema.
        """
        try:
            changed = values if self._transform is None else [self._transform(value) for value in values]
            array: Any = pa.array(changed, self._struct)
        except (pa.ArrowException, ValueError, TypeError, AttributeError, OverflowError) as error:
            wrong = next((v for v in values if find_mismatch(self._schema, v)), values[0])
            raise cannot_write(self._format_name, self._schema, wrong, error) from error
        refused = None if self._find_refused is None else self._find_refused(array)
        if refused is not None:
            raise DataError(
                f"{self._format_name} cannot write the field {refused.field}: it is {refused.problem}."
                f" {refused.readers}",
                code="data.orc_time",
                suggestion="Write such times in another format, such as Parquet, or as text or a number"
                " (TimestampConverter).",
            )
        if array.null_count or any(_has_wrong_null(array.field(n), f) for n, f in enumerate(self.columns)):
            wrong = next((v for v in values if v is None or find_mismatch(self._schema, v)), values)
            if wrong is not values:
                raise cannot_write(self._format_name, self._schema, wrong, ValueError("null"))
        batch = pa.RecordBatch.from_struct_array(array)
        # pyarrow 26 cannot cast lists of nulls, not even to themselves.
        return batch if batch.schema.equals(self.columns) else batch.cast(self.columns)


def _has_wrong_null(array: Any, field: pa.Field[Any]) -> bool:
    """Whether a required column contains a null; true also for a required child of a null struct."""
    if array.null_count and not field.nullable:
        return True
    if pa.types.is_struct(field.type):
        inner = [(array.field(n), field.type.field(n)) for n in range(field.type.num_fields)]
    elif pa.types.is_map(field.type):
        inner = [(array.keys, field.type.key_field), (array.items, field.type.item_field)]
    elif pa.types.is_list(field.type):
        inner = [(array.values, field.type.value_field)]
    else:
        return False
    return any(_has_wrong_null(child, child_field) for child, child_field in inner)


class SinkFile:
    """The file object that pyarrow writes to; it ignores writes while `open` is false."""

    closed = False

    def __init__(self, sink: ByteSink) -> None:
        self._sink = sink
        self._position = 0
        self.open = False

    def write(self, data: bytes | memoryview) -> int:
        """Pass bytes on."""
        if self.open:
            self._sink.write(data)
            self._position += len(data)
        return len(data)

    def tell(self) -> int:
        """Bytes so far."""
        return self._position

    def flush(self) -> None:
        """Nothing is held here."""

    def close(self) -> None:
        """Does nothing: the caller closes the sink."""

    def writable(self) -> bool:
        """As pyarrow asks."""
        return True

    def readable(self) -> bool:
        """As pyarrow asks."""
        return False

    def seekable(self) -> bool:
        """As pyarrow asks."""
        return False


class TableWriter(Protocol):
    """Writes tables to a file."""

    def write(self, table: pa.Table) -> None:
        """Write rows."""

    def finish(self) -> None:
        """Write the footer."""


class RowGroupWriter:
    """Writes row groups to a sink; the first one determines which columns get a dictionary."""

    def __init__(self, sink: ByteSink, columns: pa.Schema, codec: Codec, **options: Any) -> None:
        """Writes nothing before the first row group; `options`: more of pyarrow's writer."""
        self._file = SinkFile(sink)
        self._columns = columns
        self._codec = codec
        self._options = options
        self._writer: pq.ParquetWriter | None = None

    @property
    def size_bytes(self) -> int:
        """Bytes written so far."""
        return self._file.tell()

    @property
    def metadata(self) -> pq.FileMetaData:
        """The footer, once it is written."""
        if self._writer is None:
            raise TypeError("The file is not finished.")
        written: Any = self._writer.writer
        metadata: pq.FileMetaData = written.metadata
        return metadata

    def write(self, table: pa.Table) -> None:
        """Write a row group."""
        self._file.open = True
        try:
            self._opened(table).write_table(table, row_group_size=max(1, table.num_rows))
        finally:
            self._file.open = False

    def finish(self) -> None:
        """Write the footer."""
        self._file.open = True
        try:
            self._opened(pa.Table.from_batches([], self._columns)).close()
        finally:
            self._file.open = False

    def _opened(self, table: pa.Table) -> pq.ParquetWriter:
        if self._writer is None:
            # pyarrow-stubs know neither a file object of this kind nor a list of columns.
            options: dict[str, Any] = {
                "compression": self._codec.name,
                "compression_level": self._codec.level,
                "use_dictionary": choose_dictionary_columns(table),
                "dictionary_pagesize_limit": DICTIONARY_BYTES,
                "store_schema": False,
                **self._options,
            }
            file: Any = self._file
            self._writer = pq.ParquetWriter(file, self._columns, **options)
        return self._writer


class ParquetEncoder:
    """One file. Rows are buffered until they fill a row group: as Python values, as Arrow batches, then on disk."""

    def __init__(self, writer: TableWriter, values: ValueColumns, row_group_bytes: int) -> None:
        """`values`: creates columns; `row_group_bytes`: Arrow bytes after which a row group ends."""
        self._writer = writer
        self._values = values
        self._row_group_bytes = row_group_bytes
        self._rows: list[Any] = []
        self._row_bytes = _ROW_BYTES_GUESS
        self._waiting = ArrowSpill(values.columns)

    @property
    def buffered_bytes(self) -> int:
        """Arrow bytes in memory, and an estimate for rows that are still Python values."""
        return self._waiting.buffered_bytes + len(self._rows) * self._row_bytes

    def append(self, values: Sequence[Any]) -> None:
        """Take values.

        Raises:
            DataError: one of them, or of an earlier call, does not fit the schema.
        """
        self._rows.extend(values)
        if len(self._rows) >= _ROWS_AT_ONCE:
            self._convert_rows()
            self._end_full_row_group()

    def append_arrow(self, batch: pa.RecordBatch) -> None:
        """Columnar path: append columns of the schema that `ParquetFormat.arrow_schema` returns.

        Raises:
            SchemaError: the columns are different.
            DataError: a required column contains a null.
        """
        columns = self._values.columns
        if not batch.schema.equals(columns):
            if batch.schema.names != columns.names or batch.schema.types != columns.types:
                raise SchemaError(
                    f"The columns {_listed(batch.schema)} do not fit the file's columns {_listed(columns)}.",
                    suggestion="Create the batch with the schema that ParquetFormat.arrow_schema returns.",
                )
            batch = pa.RecordBatch.from_arrays(batch.columns, schema=columns)
        for column, field in zip(batch.columns, columns, strict=True):
            if column.null_count and not field.nullable:
                raise DataError(
                    f"ParquetFormat cannot write a value: field {field.name} is required, but is null.",
                    code="data.mismatch",
                    suggestion="Make the field optional in the schema.",
                )
        self._convert_rows()
        self._waiting.append(batch)
        self._end_full_row_group()

    def spill(self) -> None:
        """Move buffered batches to the executor's disk as Arrow IPC.

        Raises:
            UnavailableError: the disk is full.
            DataError: a waiting value does not fit the schema.
        """
        self._convert_rows()
        self._waiting.spill()

    def finish(self) -> None:
        """Write the last row group and the footer; a file without rows has only columns.

        Raises:
            DataError: a waiting value does not fit the schema.
        """
        self._convert_rows()
        if self._waiting.rows:
            self._writer.write(self._waiting.take())
        self._writer.finish()

    def _convert_rows(self) -> None:
        if not self._rows:
            return
        batch = self._values.batch(self._rows)
        # A Python row takes about three times the memory of its columns plus a dict.
        self._row_bytes = 250 + 3 * batch.nbytes // batch.num_rows
        self._rows = []
        self._waiting.append(batch)

    def _end_full_row_group(self) -> None:
        if self._waiting.total_bytes >= self._row_group_bytes or self._waiting.rows >= ROW_GROUP_ROWS:
            self._writer.write(self._waiting.take())


def _listed(columns: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in columns)
