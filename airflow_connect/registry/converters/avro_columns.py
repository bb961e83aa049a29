"""Messages of AvroConverter in columns: one piece for each run of messages with one schema id."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.avro.columns import Reader, read_column
from airflow_connect.converters.avro.varints import Scan, padded
from airflow_connect.errors import DataError
from airflow_connect.registry.wire_format import MAGIC_BYTE, PREFIX_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from airflow_connect.api.schema import Schema

_MOST_PIECES = 8
"""If two producers alternate, each message is a separate piece, and columns of a few values do not pay off."""


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
    count = len(data)
    if not count:
        return []
    _, offsets, values = data.buffers()
    bounds = np.frombuffer(offsets, np.int32)[data.offset : data.offset + count + 1].astype(np.int64)
    if values is None or (np.diff(bounds) < PREFIX_BYTES).any():
        return None
    buffer = values.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))
    memory, bounds = padded(np.frombuffer(buffer, np.uint8)), bounds - bounds[0]
    starts, ends = bounds[:-1], bounds[1:]
    if (memory[starts] != MAGIC_BYTE).any():
        return None
    ids = _big_endian(memory, starts + 1)
    changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    if len(changes) >= _MOST_PIECES:
        return None
    pieces = []
    for first, stop in pairwise((0, *changes.tolist(), count)):
        scan = Scan(buffer, memory, starts[first:stop] + PREFIX_BYTES, ends[first:stop])
        piece = _piece(scan, int(ids[first]), plan_of)
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def _big_endian(memory: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of four bytes."""
    found = np.zeros(len(at), np.int64)
    for n in range(4):
        found = (found << 8) | memory[at + n]
    return found


def _piece(scan: Scan, schema_id: int, plan_of: Callable[[int], ColumnPlan | None]) -> ValueColumns | None:
    try:
        plan = plan_of(schema_id)
    except DataError:
        return None  # The reference path requests it again, and reports the error for each message.
    values = None if plan is None else read_column(plan.reader, scan)
    return None if plan is None or values is None else ValueColumns(plan.schema, values)
