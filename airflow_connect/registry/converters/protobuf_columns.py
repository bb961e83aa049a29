"""Messages of ProtobufConverter in columns."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.protobuf.column_values import Reader
from airflow_connect.converters.protobuf.columns import column_reader, read_column
from airflow_connect.errors import DataError
from airflow_connect.registry.wire_format import PREFIX_BYTES

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.protobuf.names import ProtobufOptions
    from airflow_connect.registry.converters.id_runs import IdRun, Messages, RunReader
    from airflow_connect.registry.converters.protobuf_converter import MessageTypes

_MOST_INDEX_BYTES = 8
"""They are compared as one word; more of them mean types that are nested very deeply."""


class _Type(NamedTuple):
    schema: Schema
    read: Reader | None


def run_reader(
    indexes_of: Callable[[bytes], tuple[list[int], int]],
    types: MessageTypes,
    options: ProtobufOptions,
    note_without_columns: Callable[[int], None],
) -> RunReader:
    """A reader of messages with one schema id.

    Args:
        indexes_of: the message indexes of a message, and where they end.
        types: of the schema.
        options: of the converter.
        note_without_columns: gets the schema id if messages are of a type that is not read in columns.
    """
    by_indexes: dict[bytes, _Type | None] = {}

    def read(messages: Messages, run: IdRun) -> ValueColumns | None:
        first = messages.data[run.start].as_py()
        try:
            indexes, end = indexes_of(first)
            key, scan = first[PREFIX_BYTES:end], messages.scan(run)
            if len(key) > _MOST_INDEX_BYTES or len(scan.rows_at(key)) < len(scan):
                return None
            if key not in by_indexes:
                by_indexes[key] = _opened(types.at(indexes), types, options)
        except DataError:
            return None
        found = by_indexes[key]
        if found is None:
            return None
        if found.read is None:
            note_without_columns(run.schema_id)
            return None
        scan.skip(len(key))
        values = read_column(found.read, scan)
        return None if values is None else ValueColumns(found.schema, values)

    return read


def _opened(message: Any, types: MessageTypes, options: ProtobufOptions) -> _Type | None:
    try:
        schema = types.schema_of(message)
    except DataError:
        return None  # The reference path reports it for each message.
    return _Type(schema, column_reader(message, schema, options))
