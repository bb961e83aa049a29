"""Messages of JsonSchemaConverter in columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.json.column_writer import column_writer as json_writer
from airflow_connect.converters.json.envelope_columns import payload_columns
from airflow_connect.converters.json.writer import WriterOptions
from airflow_connect.converters.json_schema_mapping.names import is_union
from airflow_connect.registry.wire_format import PREFIX_BYTES

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
    from airflow_connect.converters.unread import Unread
    from airflow_connect.registry.converters.id_runs import IdRun, Messages, RunReader
    from airflow_connect.registry.converters.registry_converter import ColumnWriter


def run_reader(schema: Schema, unread: Unread) -> RunReader | None:
    """A reader of messages of `schema`, or None if a part of it is a union or a map, which have no columnar form.

    Args:
        schema: as JsonSchemaConverter reads it from the registered document.
        unread: gets the members that the schema does not have, for each message.
    """
    reader = None if _has_union(schema) else payload_columns(schema, unread, fills_defaults=True)
    if reader is None:
        return None

    def read(messages: Messages, run: IdRun) -> ValueColumns | None:
        # `binary_slice` without an end fails for some numbers of messages, and reserves memory for the longest end.
        part = messages.data.slice(run.start, run.stop - run.start)
        texts: Any = pc.binary_replace_slice(part, 0, PREFIX_BYTES, b"")
        values = reader.read(texts)
        return None if values is None else ValueColumns(schema, values)

    return read


def column_writer(schema: Schema, options: JsonSchemaOptions, prefix: bytes) -> ColumnWriter | None:
    """A writer for values of a Connect schema, or None if it has lists, maps or inner structs.

    Args:
        schema: of the values.
        options: of the converter.
        prefix: before each value.
    """
    replaces_null = not options.ignore_default_for_nullables
    write = None if is_union(schema) else json_writer(schema, WriterOptions(options.numeric_decimals, replaces_null))
    if write is None:
        return None
    start = pa.scalar(prefix, pa.binary())

    def write_all(values: Any) -> Any:
        texts: Any = write(values)
        if texts is None:
            return None
        try:
            joined: Any = pc.binary_join_element_wise(start, texts.cast(pa.binary()), b"")
        except pa.ArrowCapacityError:
            return None  # more than 2 GiB
        return joined if isinstance(joined, pa.Array) else joined.combine_chunks()

    return write_all


def _has_union(schema: Schema) -> bool:
    inner = (*(f.schema for f in schema.fields), *([schema.value_schema] if schema.value_schema else ()))
    return is_union(schema) or any(map(_has_union, inner))
