"""The columnar path of sources: Arrow values are converted and produced without an object per record."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.columns import NO_PARTITION, RecordColumns, ValueColumns
from airflow_connect.api.record import TIMESTAMP_CREATE_TIME, TIMESTAMP_NOT_AVAILABLE, Header, SourceRecord
from airflow_connect.api.schema import BYTES, DECIMAL, DECIMAL_SCALE, OPTIONAL_BYTES, Type
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import decimal_of_bytes, integer_parameter
from airflow_connect.kafka.writing.produced import name_of
from airflow_connect.runtime.executor.sink.column_path import have_columns, transformed, writes_columns

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.api.source import SourceColumns
    from airflow_connect.runtime.executor.source.converting import SourceRecordConverter

log = logging.getLogger(__name__)
OBJECTS_AT_ONCE = 2_000
"""How many records of a batch are objects at the same time, to limit memory if a batch cannot stay in columns."""


class ColumnMessages(NamedTuple):
    """The messages of a batch.

    Attributes:
        topic: after transformations.
        keys: text or bytes; None: no keys.
        values: text or bytes; as many as messages are sent.
        left_out: number of records that a transformation has dropped.
        partition: of all messages; None: chosen by the producer.
        timestamps: milliseconds since the epoch; None: set by the producer.
        headers: as `SourceColumns.headers`.
    """

    topic: str
    keys: pa.Array[Any] | None
    values: pa.Array[Any]
    left_out: int
    partition: int | None = None
    timestamps: pa.Array[Any] | None = None
    headers: pa.ListArray[Any] | None = None


class SourceColumnConverter:
    """Transforms and converts columns: text as UTF-8, bytes unchanged, everything else with the converter's columns."""

    def __init__(self, converter: SourceRecordConverter) -> None:
        """`converter`: of the task."""
        self._steps = converter.chain.stages
        is_of_sinks = any(getattr(step.transformation, "columns_of_sinks_only", False) for step in self._steps)
        self._is_open = have_columns(self._steps) and not is_of_sinks
        self._key, self._value = converter.key, converter.value
        self._keeps_headers = _direct_type(converter.headers) == "BYTES"

    def convert(self, columns: SourceColumns) -> ColumnMessages | None:
        """The messages of a batch; None if it is not vectorizable and must be processed record by record."""
        stamps = None if columns.timestamps_are_now else columns.timestamps
        if columns.headers is not None and (self._steps or not self._keeps_headers):
            return None
        is_placed = columns.partition is not None or stamps is not None
        # Transformations in columns see neither a partition nor a place in time that must be kept.
        if not self._is_open or (is_placed and self._steps) or (stamps is not None and stamps.null_count):
            return None
        try:
            return self._converted(columns)
        except DataError:
            return None
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 (comes again record by record, where it is repeated, or reported)
            count, name = len(columns.values), type(error).__name__
            log.warning("%d records are processed one by one, because columns failed with %s.", count, name)
            return None

    def _converted(self, columns: SourceColumns) -> ColumnMessages | None:
        topic, left_out = columns.topic, 0
        key = None if columns.keys is None else ValueColumns(columns.key_schema, columns.keys)
        value = ValueColumns(columns.value_schema, columns.values)
        if self._steps:
            before = _record_columns(columns, key, value)
            piece = None if before is None else transformed(self._steps, before)
            if before is None or piece is None or not _keeps_time(before, piece):
                return None
            topic, key, value, left_out = piece.topic, piece.key, piece.value, len(before) - len(piece)
        if not len(value):
            return ColumnMessages(topic, None, value.values, left_out)
        values = _messages(self._value, topic, value)
        keys = None if key is None else _messages(self._key, topic, key)
        if values is None or (keys is None and (key is not None or not _leaves_null(self._key))):
            return None
        stamps = None if columns.timestamps_are_now else columns.timestamps
        return ColumnMessages(topic, keys, values, left_out, columns.partition, stamps, columns.headers)


def _record_columns(columns: SourceColumns, key: ValueColumns | None, value: ValueColumns) -> RecordColumns | None:
    """A batch for transformations; None if there are nulls, because their schema may change separately."""
    import numpy as np

    stamps, count = columns.timestamps, len(value)
    parts = [column for column in (stamps, columns.keys, columns.values) if column is not None]
    if any(column.null_count for column in parts):
        return None

    def read_records(_indexes: Any) -> list[KafkaRecord]:
        raise TypeError("Records of a source do not come from Kafka; only sinks read them again.")

    return RecordColumns(
        topic=columns.topic,
        original_topic=columns.topic,
        original_partition=NO_PARTITION,
        offsets=np.arange(count, dtype=np.int64),
        timestamps=np.zeros(count, np.int64) if stamps is None else stamps.to_numpy().astype(np.int64),
        timestamp_type=TIMESTAMP_NOT_AVAILABLE if stamps is None else TIMESTAMP_CREATE_TIME,
        key=key,
        value=value,
        read_records=read_records,
        indexes=np.arange(count, dtype=np.int64),
    )


def _keeps_time(before: RecordColumns, after: RecordColumns) -> bool:
    """Whether no transformation has set a timestamp: records in columns have the client's."""
    is_same = bool((after.timestamps == before.timestamps[after.indexes]).all())
    return is_same and after.timestamp_type == before.timestamp_type


def _messages(converter: Any, topic: str, part: ValueColumns) -> pa.Array[Any] | None:
    if _fits(part.values, part.schema, _direct_type(converter)):
        return part.values
    return converter.from_columns(topic, part.schema, part.values) if writes_columns(converter) else None


def _leaves_null(converter: Any) -> bool:
    """Whether a missing key stays missing; an unknown converter is called record by record."""
    return bool(_direct_type(converter)) or writes_columns(converter)


def _direct_type(converter: Any) -> str:
    if type(converter) is StringConverter and converter.is_utf8:
        return "STRING"
    return "BYTES" if type(converter) is ByteArrayConverter else ""


def _fits(values: pa.Array[Any], schema: Schema | None, direct: str) -> bool:
    import pyarrow as pa

    kinds = {"STRING": (pa.string(), pa.large_string()), "BYTES": (pa.binary(), pa.large_binary())}
    # Without a schema, values are JSON documents (api/columns.py), and neither text nor bytes.
    if schema is None or direct not in kinds or values.type not in kinds[direct]:
        return False
    return schema.type.name == direct and schema.name is None


def records_of(columns: SourceColumns) -> Iterator[SourceRecord]:
    """The same records as objects. The offset applies after the last one; those of the others are unknown."""
    for start in range(0, len(columns.values), OBJECTS_AT_ONCE):
        yield from _records_of(columns, slice(start, start + OBJECTS_AT_ONCE))


def _records_of(columns: SourceColumns, part: slice) -> Iterator[SourceRecord]:
    keys = None if columns.keys is None else python_values(columns.key_schema, columns.keys[part])
    stamps = None if columns.timestamps is None else columns.timestamps[part].to_pylist()
    headers = None if columns.headers is None else columns.headers[part].to_pylist()
    for number, value in enumerate(python_values(columns.value_schema, columns.values[part])):
        yield SourceRecord(
            topic=columns.topic,
            partition=columns.partition,
            key_schema=columns.key_schema if keys is not None else None,
            key=None if keys is None else keys[number],
            value_schema=columns.value_schema,
            value=value,
            timestamp=None if stamps is None else stamps[number],
            headers=() if headers is None else tuple(_header(one) for one in headers[number] or ()),
            source_partition=columns.source_partition,
            source_offset=columns.source_offset or {},
        )


def _header(one: Mapping[str, Any]) -> Header:
    return Header(name_of(one["key"]), OPTIONAL_BYTES if one["value"] is None else BYTES, one["value"])


def python_values(schema: Schema | None, values: pa.Array[Any]) -> list[Any]:
    """The values in the Python form of `airflow_connect.api.schema`; the inverse of the layout in api/columns.py."""
    plain = values.to_pylist()
    if schema is None:
        return [json.loads(value) if isinstance(value, bytes) else value for value in plain]
    convert = _conversion(schema)
    return plain if convert is None else [None if value is None else convert(value) for value in plain]


def _conversion(schema: Schema) -> Callable[[Any], Any] | None:
    """The function from an Arrow value to a Connect value; None: they are equal."""
    if schema.name == DECIMAL:
        scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE))
        return lambda data: decimal_of_bytes(data, scale)
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        element = _conversion(schema.value_schema)
        return element and (lambda values: [None if v is None else element(v) for v in values])
    if schema.type is Type.MAP and schema.key_schema is not None and schema.value_schema is not None:
        key, value = _conversion(schema.key_schema) or _same, _conversion(schema.value_schema) or _same
        return lambda pairs: {key(k): None if v is None else value(v) for k, v in pairs}
    if schema.type is Type.STRUCT:
        fields = {field.name: found for field in schema.fields if (found := _conversion(field.schema)) is not None}
        return _struct_conversion(fields) if fields else None
    return None


def _struct_conversion(fields: Mapping[str, Callable[[Any], Any]]) -> Callable[[Any], Any]:
    def convert(struct: dict[str, Any]) -> dict[str, Any]:
        changed = {name: found(struct[name]) for name, found in fields.items() if struct[name] is not None}
        return {**struct, **changed}

    return convert


def _same(value: Any) -> Any:
    return value
