"""Messages of JsonSchemaConverter in columns: one piece for each run of messages with one schema id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow.compute as pc

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.json.envelope_columns import payload_columns
from airflow_connect.converters.json_schema_mapping.names import is_union
from airflow_connect.errors import DataError
from airflow_connect.registry.converters.id_runs import messages_by_id
from airflow_connect.registry.wire_format import PREFIX_BYTES

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.unread import Unread


class TextReader(Protocol):
    """Reads the JSON texts of messages."""

    def read(self, messages: Any) -> Any | None:
        """Values of the texts (binary[n] without nulls), or None if one of them is not vectorizable."""


class ColumnPlan(NamedTuple):
    """How messages of one schema id are read."""

    schema: Schema
    reader: TextReader


def column_plan(schema: Schema, unread: Unread) -> ColumnPlan | None:
    """How messages of `schema` are read, or None if a part of it is a union or a map, which have no columnar form.

    Args:
        schema: as JsonSchemaConverter reads it from the registered document.
        unread: gets the members that the schema does not have, for each message.
    """
    reader = None if _has_union(schema) else payload_columns(schema, unread)
    return None if reader is None else ColumnPlan(schema, reader)


def to_columns(data: Any, plan_of: Callable[[int], ColumnPlan | None]) -> list[ValueColumns] | None:
    """Messages as columns.

    Args:
        data: binary[n] without nulls.
        plan_of: schema id to plan; None or DataError if there is none.

    Returns:
        Consecutive pieces, or None if a message is not vectorizable.
    """
    if not len(data):
        return []
    messages = messages_by_id(data)
    if messages is None:
        return None
    pieces = []
    for run in messages.runs:
        try:
            plan = plan_of(run.schema_id)
        except DataError:
            return None  # The reference path requests it again, and reports the error for each message.
        # `binary_slice` without an end fails for some numbers of messages, and reserves memory for the longest end.
        texts: Any = pc.binary_replace_slice(data.slice(run.start, run.stop - run.start), 0, PREFIX_BYTES, b"")
        values = None if plan is None else plan.reader.read(texts)
        if plan is None or values is None:
            return None
        pieces.append(ValueColumns(plan.schema, values))
    return pieces


def _has_union(schema: Schema) -> bool:
    inner = (*(f.schema for f in schema.fields), *([schema.value_schema] if schema.value_schema else ()))
    return is_union(schema) or any(map(_has_union, inner))
