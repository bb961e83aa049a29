"""Messages of AvroConverter in columns: one piece for each run of messages with one schema id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.avro.columns import Reader, read_column
from airflow_connect.converters.avro.varints import Scan, padded
from airflow_connect.errors import DataError
from airflow_connect.registry.converters.id_runs import messages_by_id
from airflow_connect.registry.wire_format import PREFIX_BYTES

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema


class ColumnPlan(NamedTuple):
    """How messages of one schema id are read."""

    schema: Schema
    reader: Reader


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
    memory = padded(np.frombuffer(messages.buffer, np.uint8))
    starts, ends = messages.bounds[:-1] + PREFIX_BYTES, messages.bounds[1:]
    pieces = []
    for schema_id, start, stop in messages.runs:
        scan = Scan(messages.buffer, memory, starts[start:stop], ends[start:stop])
        piece = _piece(scan, schema_id, plan_of)
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def _piece(scan: Scan, schema_id: int, plan_of: Callable[[int], ColumnPlan | None]) -> ValueColumns | None:
    try:
        plan = plan_of(schema_id)
    except DataError:
        return None  # The reference path requests it again, and reports the error for each message.
    values = None if plan is None else read_column(plan.reader, scan)
    return None if plan is None or values is None else ValueColumns(plan.schema, values)
