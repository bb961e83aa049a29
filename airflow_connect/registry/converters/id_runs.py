"""Messages of a registry's converters in columns, a piece for each run of messages with one schema id.

The ids are found in the prefixes of a whole batch at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from airflow_connect.api.columns import ValueColumns
from airflow_connect.converters.scan import Scan, padded
from airflow_connect.errors import DataError
from airflow_connect.registry.wire_format import MAGIC_BYTE, PREFIX_BYTES

if TYPE_CHECKING:
    from numpy.typing import NDArray

MOST_RUNS = 8
"""If two producers alternate, each message is a separate run, and columns of a few values do not pay off."""


class IdRun(NamedTuple):
    """Messages `[start, stop)` of a batch, which have one schema id."""

    schema_id: int
    start: int
    stop: int


@dataclass(frozen=True, eq=False)
class Messages:
    """The bytes of a batch.

    Attributes:
        data: the messages, binary[n].
        buffer: all messages, one after the other.
        bounds: int64[n + 1], where each one begins, and where the last one ends.
        runs: consecutive, of all messages.
    """

    data: Any
    buffer: Any
    bounds: NDArray[np.int64]
    runs: list[IdRun]

    def scan(self, run: IdRun) -> Scan:
        """What follows the schema id in the messages of a run."""
        part = slice(run.start, run.stop)
        return Scan(self.buffer, self._padded, self.bounds[:-1][part] + PREFIX_BYTES, self.bounds[1:][part])

    @cached_property
    def _padded(self) -> NDArray[np.uint8]:
        return padded(np.frombuffer(self.buffer, np.uint8))


RunReader = Callable[[Messages, IdRun], ValueColumns | None]
"""Reads a run of messages with one schema id; None if one of them is not vectorizable."""


def columns_by_id(data: Any, reader_of: Callable[[int], RunReader | None]) -> list[ValueColumns] | None:
    """Messages as columns.

    Args:
        data: binary[n] without nulls.
        reader_of: schema id to reader; None or DataError if there is none.

    Returns:
        Consecutive pieces, one for each run of messages with one schema id; None if a message is not vectorizable.
    """
    if not len(data):
        return []
    messages = messages_by_id(data)
    if messages is None:
        return None
    pieces = []
    for run in messages.runs:
        try:
            read = reader_of(run.schema_id)
        except DataError:
            return None  # The reference path requests it again, and reports the error for each message.
        piece = None if read is None else read(messages, run)
        if piece is None:
            return None
        pieces.append(piece)
    return pieces


def messages_by_id(data: Any) -> Messages | None:
    """The messages (binary[n] without nulls, n > 0) by schema id; None if one has none, or if ids change too often."""
    count = len(data)
    _, offsets, values = data.buffers()
    bounds = np.frombuffer(offsets, np.int32)[data.offset : data.offset + count + 1].astype(np.int64)
    if values is None or (np.diff(bounds) < PREFIX_BYTES).any():
        return None
    buffer = values.slice(int(bounds[0]), int(bounds[-1] - bounds[0]))
    bounds = bounds - bounds[0]
    memory, starts = np.frombuffer(buffer, np.uint8), bounds[:-1]
    if (memory[starts] != MAGIC_BYTE).any():
        return None
    ids = _big_endian(memory, starts + 1)
    changes = np.flatnonzero(ids[1:] != ids[:-1]) + 1
    if len(changes) >= MOST_RUNS:
        return None
    runs = [IdRun(int(ids[start]), start, stop) for start, stop in pairwise((0, *changes.tolist(), count))]
    return Messages(data, buffer, bounds, runs)


def _big_endian(memory: NDArray[np.uint8], at: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers of four bytes."""
    found = np.zeros(len(at), np.int64)
    for n in range(4):
        found = (found << 8) | memory[at + n]
    return found
