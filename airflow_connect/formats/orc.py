"""ORC files: OrcFormat of Confluent's HDFS sink.

Types are Hive's, through which Confluent's sink converts: INT8 is tinyint, INT16 smallint, and a map may have keys of
any type. Time and Timestamp are `timestamp`, a wall clock without a time zone: here that of UTC, in Confluent's sink
that of its JVM. Files are compressed with zlib, Hive's default; there is no configuration key for it.
Source: io.confluent.connect.hdfs.orc.OrcRecordWriterProvider, OrcUtil; storage-common's HiveSchemaConverter.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.orc as orc

from airflow_connect.api.schema import TIME, TIMESTAMP, Type
from airflow_connect.errors import SchemaError
from airflow_connect.formats.columnar.arrow_schema import ArrowMapping
from airflow_connect.formats.columnar.orc_times import find_refused_time
from airflow_connect.formats.parquet import ArrowFormat, ParquetEncoder, SinkFile

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.formats.format import ByteSink

STRIPE_BYTES = 64 * 1024 * 1024
"""Arrow bytes that are written at a time, and the size of a stripe; Hive's default."""

_NAME = "OrcFormat"
_WALL_CLOCK = pa.timestamp("ms")
_SMALL = {Type.INT8: pa.int8(), Type.INT16: pa.int16()}


class OrcMapping(ArrowMapping):
    """Maps Connect schemas to the Arrow types that ORC supports."""

    __slots__ = ()

    def _stays_map(self, schema: Schema) -> bool:
        return True

    def _type(self, schema: Schema, path: str) -> pa.DataType:
        if schema.name in (TIME, TIMESTAMP):
            return _WALL_CLOCK
        if schema.type in _SMALL:
            return _SMALL[schema.type]
        if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
            key: Any = pa.field("key", self._type(schema.key_schema, f"{path} (a map key)"), nullable=False)
            item: Any = self._field("value", schema.value_schema, f"{path}{{}}")
            return pa.map_(key, item)
        found = super()._type(schema, path)
        if pa.types.is_decimal256(found):
            raise SchemaError(
                f"{_NAME} cannot write {path}, a Decimal of more than 38 digits.",
                code="data.decimal",
                suggestion="Convert it to a string or a double with a transformation (Cast).",
            )
        return found


class OrcFormat(ArrowFormat):
    """Structs with a schema."""

    content_type = "application/vnd.apache.orc"
    extension = ".orc"

    def __init__(self, allow_optional_map_keys: bool = False, stripe_bytes: int = STRIPE_BYTES) -> None:
        """Configure.

        Args:
            allow_optional_map_keys: has no effect: ORC keeps every map as a map.
            stripe_bytes: Arrow bytes after which rows are written.
        """
        super().__init__(_NAME, OrcMapping(allow_optional_map_keys, _NAME), find_refused_time)
        self._stripe_bytes = stripe_bytes

    def open(self, sink: ByteSink, schema: Schema | None) -> ParquetEncoder:
        """Start a file.

        Raises:
            SchemaError: no schema, not a STRUCT, or one that ORC cannot express.
        """
        values = self._columns_of(schema)
        return ParquetEncoder(OrcWriter(sink, values.columns, self._stripe_bytes), values, self._stripe_bytes)


class OrcWriter:
    """Writes stripes into a sink."""

    def __init__(self, sink: ByteSink, columns: pa.Schema, stripe_bytes: int) -> None:
        """Writes nothing before the first stripe."""
        self._file = SinkFile(sink)
        self._columns = columns
        self._stripe_bytes = stripe_bytes
        self._writer: Any = None

    def write(self, table: pa.Table) -> None:
        """Write rows, which may be slices of larger batches."""
        self._file.open = True
        try:
            self._opened().write(_normalized_for_orc(table))
        finally:
            self._file.open = False

    def finish(self) -> None:
        """Write the footer; a file without rows has only columns."""
        self._file.open = True
        try:
            if self._writer is None:
                self._opened().write(self._columns.empty_table())
            self._writer.close()
        finally:
            self._file.open = False

    def _opened(self) -> Any:
        if self._writer is None:
            file: Any = self._file
            self._writer = orc.ORCWriter(file, compression="ZLIB", stripe_size=self._stripe_bytes)
        return self._writer


def _normalized_for_orc(table: pa.Table) -> pa.Table:
    """The same rows in arrays that pyarrow's ORC writer writes correctly.

    The writer handles nulls of struct columns wrongly in two ways (26.0.1, `NormalizeArray` of Arrow's ORC adapter).
    It reads their bitmaps from the beginning of the buffer even if an array is a slice, so the arrays are copied to
    begin at 0. And it passes the nulls of a struct on to the fields only if all structs around it are null too;
    otherwise the values after such a null move up by one row. So all fields of a null struct are set to null here.
    Columns without structs are passed on unchanged.
    """
    for index, field in enumerate(table.schema):
        if _has_struct(field.type):
            chunks = [_with_null_children(pa.concat_arrays([chunk])) for chunk in table.column(index).chunks]
            column: Any = pa.chunked_array(chunks, None if chunks else field.type)
            table = table.set_column(index, pa.field(field.name, column.type), column)
    return table


def _has_struct(kind: Any) -> bool:
    if pa.types.is_map(kind):
        return _has_struct(kind.key_type) or _has_struct(kind.item_type)
    return pa.types.is_struct(kind) or (pa.types.is_list(kind) and _has_struct(kind.value_type))


def _with_null_children(array: Any) -> Any:
    """An array with the same values in which all fields of null structs are null; ORC has no required fields."""
    made: Any
    if not _has_struct(array.type):
        return array
    nulls = array.is_null() if array.null_count else None
    if pa.types.is_struct(array.type):
        parts = [_with_null_children(part) for part in array.flatten()]
        fields = [pa.field(old.name, part.type) for old, part in zip(array.type, parts, strict=True)]
        return pa.StructArray.from_arrays(parts, fields=fields, mask=nulls)
    if pa.types.is_map(array.type):
        made = pa.MapArray
        keys, items = _with_null_children(array.keys), _with_null_children(array.items)
        return made.from_arrays(array.offsets, keys, items, mask=nulls)
    made = pa.ListArray
    return made.from_arrays(array.offsets, _with_null_children(array.values), mask=nulls)
