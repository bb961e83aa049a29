"""Consecutive records of a partition in columns, as a transaction writes them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    from airflow_connect.api.columns import RecordColumns
    from airflow_connect.connectors.jdbc.sink.batches import RowPlan


class RowsNeededError(Exception):
    """Columns cannot be written, or the database has refused them: nothing of their transaction was written."""


@dataclass(slots=True)
class ColumnChunk:
    """Records that are inserted or upserted.

    Attributes:
        plan: of the records.
        offsets: int64[n], ascending.
        columns: one for each field of the plan, n long; see `columns/binding.py` for their types.
    """

    plan: RowPlan
    offsets: Any
    columns: Sequence[Any]

    deletes = False

    def __len__(self) -> int:
        """Number of records."""
        return len(self.offsets)

    def keep_from(self, offset: int) -> None:
        """Drop the records before an offset."""
        start = int(np.searchsorted(self.offsets, offset))
        self.offsets = self.offsets[start:]
        self.columns = [column.slice(start) for column in self.columns]


def column_chunk(plan: RowPlan, records: RecordColumns) -> ColumnChunk | None:
    """The records as a chunk; None if they must be written as rows."""
    if plan.column_bindings is None:
        return None
    columns = []
    for field, bind in zip(plan.fields, plan.column_bindings, strict=True):
        column = None if field.column is None else field.column(records)
        bound = None if column is None else bind(column)
        if bound is None:
            return None
        columns.append(bound)
    return ColumnChunk(plan, records.offsets, columns)


def last_of_each(columns: Sequence[Any], pieces: Any) -> Sequence[Any]:
    """Only the last row of those whose keys are equal, in the order of the rows.

    Args:
        columns: of the rows.
        pieces: the keys of the rows, as bytes.
    """
    codes = pieces.dictionary_encode()
    if len(codes.dictionary) == len(codes):
        return columns
    last = np.empty(len(codes.dictionary), np.int64)
    last[codes.indices.to_numpy()] = np.arange(len(codes))
    chosen = pa.array(np.sort(last))
    return [column.take(chosen) for column in columns]
