"""What readers of all formats return."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from airflow_connect.converters.json.plain import plain_json

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.schema import Schema


class Values(NamedTuple):
    """Consecutive values of a file.

    Attributes:
        first: number of the first one in the file, from 0.
        schema: of all of them; None: schemaless.
        rows: the values; None: they are in `column`.
        column: the same as an Arrow array, in the representation of `airflow_connect.api.columns`; schemaless ones are
            JSON documents.
    """

    first: int
    schema: Schema | None
    rows: list[Any] | None
    column: pa.Array[Any] | None = None

    def __len__(self) -> int:
        """How many."""
        return len(self.rows) if self.rows is not None else len(self.column or ())

    def slice(self, start: int, end: int) -> Values:
        """Values `[start, end)` of these."""
        rows = None if self.rows is None else self.rows[start:end]
        return Values(self.first + start, self.schema, rows, None if self.column is None else self.column[start:end])

    def values(self) -> list[Any]:
        """As objects."""
        if self.rows is not None or self.column is None:
            return list(self.rows or ())
        found: list[Any] = self.column.to_pylist()
        return [plain_json(document) for document in found] if self.schema is None else found


class WholeRecordsError(Exception):
    """The file holds whole records, which are restored in another way."""


class Reader(Protocol):
    """Reads one file from its beginning."""

    def __iter__(self) -> Iterator[Values]:
        """Its values in order.

        Raises:
            WholeRecordsError: see there.
            Exception: the file is damaged.
        """
