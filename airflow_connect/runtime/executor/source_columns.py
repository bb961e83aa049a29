"""The columnar path of sources: values that lie in Arrow are converted and produced without a record object each."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Context, Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.converter import ColumnarWritingConverter
from airflow_connect.api.record import SourceRecord
from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, Type
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.string_converter import StringConverter

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.schema import Schema
    from airflow_connect.api.source import SourceColumns
    from airflow_connect.exactly_once.task_transaction import TaskDelivery
    from airflow_connect.runtime.executor.source_converting import SourceRecordConverter

OBJECTS_AT_ONCE = 2_000
"""Records of a batch that are objects at one time; what bounds memory where a batch cannot stay in columns."""
_EXACT = Context(prec=10_000)


class SourceColumnWriter:
    """Sends columns: text as UTF-8 and bytes as they are, everything else as a converter writes it in columns."""

    def __init__(self, converter: SourceRecordConverter) -> None:
        """`converter`: of the task."""
        self._is_open = not converter.chain.stages
        self._key, self._value = converter.key, converter.value

    def send(self, columns: SourceColumns, delivery: TaskDelivery) -> int | None:
        """Send every record; returns the bytes of keys and values.

        None: nothing was sent, because the batch is not plain; it goes record by record.
        """
        if not self._is_open or not (columns.timestamps is None or columns.timestamps_are_now):
            return None
        values = _messages(self._value, columns.topic, columns.value_schema, columns.values)
        if values is None:
            return None
        keys = columns.keys
        if keys is not None:
            keys = _messages(self._key, columns.topic, columns.key_schema, keys)
            if keys is None:
                return None
        elif not _leaves_null(self._key):
            return None
        return delivery.send_columns(columns.topic, keys, values)


def _messages(converter: Any, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
    if _fits(values, schema, _plain_type(converter)):
        return values
    return converter.from_columns(topic, schema, values) if isinstance(converter, ColumnarWritingConverter) else None


def _leaves_null(converter: Any) -> bool:
    """Whether a key that is not there stays so; a converter that nobody knows is asked record by record."""
    return bool(_plain_type(converter)) or isinstance(converter, ColumnarWritingConverter)


def _plain_type(converter: Any) -> str:
    if type(converter) is StringConverter and converter.is_utf8:
        return "STRING"
    return "BYTES" if type(converter) is ByteArrayConverter else ""


def _fits(values: pa.Array[Any], schema: Schema | None, plain: str) -> bool:
    import pyarrow as pa

    kinds = {"STRING": (pa.string(), pa.large_string()), "BYTES": (pa.binary(), pa.large_binary())}
    if plain not in kinds or values.type not in kinds[plain]:
        return False
    return schema is None or (schema.type.name == plain and schema.name is None)


def records_of(columns: SourceColumns) -> Iterator[SourceRecord]:
    """The same records as objects. The offset stands behind all of them: that of each one is not known."""
    for start in range(0, len(columns.values), OBJECTS_AT_ONCE):
        yield from _records_of(columns, slice(start, start + OBJECTS_AT_ONCE))


def _records_of(columns: SourceColumns, part: slice) -> Iterator[SourceRecord]:
    keys = None if columns.keys is None else python_values(columns.key_schema, columns.keys[part])
    stamps = None if columns.timestamps is None else columns.timestamps[part].to_pylist()
    for number, value in enumerate(python_values(columns.value_schema, columns.values[part])):
        yield SourceRecord(
            topic=columns.topic,
            key_schema=columns.key_schema if keys is not None else None,
            key=None if keys is None else keys[number],
            value_schema=columns.value_schema,
            value=value,
            timestamp=None if stamps is None else stamps[number],
            source_partition=columns.source_partition,
            source_offset=columns.source_offset,
        )


def python_values(schema: Schema | None, values: pa.Array[Any]) -> list[Any]:
    """The values as `airflow_connect.api.schema` says for Python; the inverse of how api/columns.py lays them out."""
    plain = values.to_pylist()
    if schema is None:
        return [json.loads(value) if isinstance(value, bytes) else value for value in plain]
    convert = _conversion(schema)
    return plain if convert is None else [None if value is None else convert(value) for value in plain]


def _conversion(schema: Schema) -> Callable[[Any], Any] | None:
    """What turns a value of Arrow into one of Connect; None: it is the same."""
    if schema.name == DECIMAL:
        scale = int(schema.parameters[DECIMAL_SCALE])
        return lambda data: Decimal(int.from_bytes(data, "big", signed=True)).scaleb(-scale, _EXACT)
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
