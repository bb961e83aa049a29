"""The sort order of a table: rows of each row group in its order (Iceberg specification, "Sorting").

A file says that it is sorted only if it has one row group, so that the whole file is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from airflow_connect.connectors.iceberg.partitions import path_to, transformed

if TYPE_CHECKING:
    from pyiceberg.table import Table

    from airflow_connect.formats.parquet import TableWriter

_SIGN = np.int64(0x7FFFFFFFFFFFFFFF)


@dataclass(frozen=True, slots=True)
class SortKey:
    """One column of an order.

    Attributes:
        path: of the column, as `path_to` gives it.
        transform: of its values.
        direction: `ascending` or `descending`.
        nulls_first: whether nulls come first, in either direction.
    """

    path: tuple[str, ...]
    transform: Any
    direction: str
    nulls_first: bool


@dataclass(frozen=True, slots=True)
class Sorter:
    """Sorts rows.

    Attributes:
        order_id: of the order in the table.
        keys: its columns.
    """

    order_id: int
    keys: tuple[SortKey, ...]

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows in order; equal ones keep theirs."""
        columns: dict[str, Any] = {}
        order: list[tuple[str, Any]] = []
        for number, key in enumerate(self.keys):
            batches = rows.to_batches()
            values: Any = pa.chunked_array(
                [comparable(transformed(batch, key.path, key.transform)) for batch in batches]
            )
            if values.null_count:
                columns[f"{number} null"] = pc.is_null(values)
                order.append((f"{number} null", "descending" if key.nulls_first else "ascending"))
            columns[f"{number}"] = values
            order.append((f"{number}", key.direction))
        # The position makes the order of equal rows the one in which they came.
        columns["row"] = pa.array(np.arange(rows.num_rows))
        keys: Any = pa.table(columns)
        return rows.take(pc.sort_indices(keys, sort_keys=[*order, ("row", "ascending")]))


def comparable(values: Any) -> Any:
    """Values that Arrow sorts as Iceberg does: -0 before 0, NaN above all numbers in either direction."""
    if not pa.types.is_floating(values.type):
        return values
    numbers = values.cast(pa.float64()).fill_null(0.0).to_numpy(zero_copy_only=False)
    bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
    ordered = pa.array(bits ^ ((bits >> np.int64(63)) & _SIGN))
    return pc.if_else(values.is_valid(), ordered, pa.scalar(None, pa.int64())) if values.null_count else ordered


def sorter_of(table: Table) -> Sorter | None:
    """What sorts rows for a table; None if it has no order, or one that cannot be followed.

    Files of such a table do not say that they are sorted.
    """
    from pyiceberg.table.sorting import NullOrder, SortDirection

    order, schema = table.sort_order(), table.schema()
    keys: list[SortKey] = []
    for field in order.fields:
        path = path_to(schema, field.source_id)
        if path is None:
            return None
        try:
            transform = field.transform.pyarrow_transform(schema.find_type(field.source_id))
        except (NotImplementedError, ImportError):
            return None
        is_ascending = field.direction == SortDirection.ASC
        keys.append(
            SortKey(
                path,
                transform,
                "ascending" if is_ascending else "descending",
                nulls_first=field.null_order == NullOrder.NULLS_FIRST,
            )
        )
    return Sorter(order.order_id, tuple(keys)) if keys else None


class SortedWriter:
    """Sorts each row group before it is written."""

    def __init__(self, writer: TableWriter, sorter: Sorter | None) -> None:
        """`sorter`: None writes rows as they come."""
        self._writer, self._sorter = writer, sorter
        self._groups = 0

    @property
    def order_of_file(self) -> int | None:
        """The id of the order that the whole file is in, or None."""
        return self._sorter.order_id if self._sorter is not None and self._groups <= 1 else None

    def write(self, table: pa.Table) -> None:
        """Write a row group."""
        self._groups += 1
        self._writer.write(table if self._sorter is None else self._sorter(table))

    def finish(self) -> None:
        """Write the footer."""
        self._writer.finish()
