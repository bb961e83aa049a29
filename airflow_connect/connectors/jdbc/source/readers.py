"""Which reader a table gets: in Arrow batches if there is a connection that reads them, otherwise row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.read.changed import DriverRows, OrderedRows
from airflow_connect.connectors.jdbc.source.read.reading import Reading, TableReader

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader
    from airflow_connect.connectors.jdbc.source.offsets.positions import Position
    from airflow_connect.connectors.jdbc.source.values.columns import Column
    from airflow_connect.connectors.jdbc.source.work import Item
    from airflow_connect.databases.arrow_stream import ArrowStream
    from airflow_connect.databases.identifiers import TableId


def new_rows_of(
    reading: Reading, item: Item, position: Position, stream: ArrowStream | None
) -> TableReader | ArrowReader:
    """The reader of the rows after a position."""
    if stream is None:
        return TableReader(reading, item.table, position, part=item.part)
    from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader

    return ArrowReader(reading, item.table, position, stream, item.part)


def ordered_rows_of(reading: Reading, table: TableId, key: Column, stream: ArrowStream | None) -> OrderedRows:
    """The rows of a table in the order of its key."""
    if stream is None:
        return DriverRows(reading, table, key)
    from airflow_connect.connectors.jdbc.source.arrow.ordered_rows import ArrowRows

    return ArrowRows(reading, table, key, stream)
