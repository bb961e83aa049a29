"""Which reader a table gets: in Arrow batches if there is a connection that reads them, otherwise row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.read.changed import (
    ChangedReader,
    DriverRows,
    OrderedRows,
    range_key,
    ranges_of,
    ranges_partition,
)
from airflow_connect.connectors.jdbc.source.read.reading import Reading, TableReader
from airflow_connect.connectors.jdbc.source.read.sent_ranges import EVERYTHING, sent_of, sent_offset, sent_partition

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceTaskContext
    from airflow_connect.connectors.jdbc.source.arrow.reader import ArrowReader
    from airflow_connect.connectors.jdbc.source.read.form import Form
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


def changed_rows_of(
    reading: Reading, item: Item, table: TableId, stream: ArrowStream | None, context: SourceTaskContext, form: Form
) -> ChangedReader | TableReader | ArrowReader:
    """The reader for `bulk.changed.only`; one of all rows if the table has no suitable key."""
    offset = context.offset_reader.offset(ranges_partition(item.partition))
    marks = sent_of(context.offset_reader.offset(sent_partition(item.partition)), item.name)
    known = ranges_of(offset, item.name)
    key = range_key(reading.described(reading.source(table)))
    is_of_form = not known or offset is None or form.is_that_of(offset)
    if known and not (key is not None and is_of_form):
        # Every row is sent: no hash counts until a run is complete.
        context.skip_to(sent_partition(item.partition), sent_offset([EVERYTHING]))
    if key is None:
        context.note(
            f"All rows of {item.name} are sent, because bulk.changed.only needs a primary key of one column with"
            " whole numbers."
        )
        return new_rows_of(reading, item, Position(), stream)
    if not is_of_form:
        context.note(
            f"All rows of {item.name} are sent, because the configuration of topics, values or transformations, or"
            " a converter of the worker, was changed since the last run: bulk.changed.only compares with what was"
            " sent before."
        )
        known, marks = [], [EVERYTHING]
    return ChangedReader(reading, table, key, known, _ordered_rows_of(reading, table, key, stream), marks)


def _ordered_rows_of(reading: Reading, table: TableId, key: Column, stream: ArrowStream | None) -> OrderedRows:
    """The rows of a table in the order of its key."""
    if stream is None:
        return DriverRows(reading, table, key)
    from airflow_connect.connectors.jdbc.source.arrow.ordered_rows import ArrowRows

    return ArrowRows(reading, table, key, stream)
