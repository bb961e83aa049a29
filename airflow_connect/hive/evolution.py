"""How a table follows the schemas of its topic: columns are added at the end or widened, and none is removed.

Confluent's sink replaces the columns by those of the newest schema: a removed field removes its column, and the order
is that of the newest schema. Its partitions keep the columns with which they were created, so new columns are null in
old directories forever. Here a table keeps its columns in their order, and partitions follow (CASCADE).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from airflow_connect.errors import SchemaError
from airflow_connect.hive.columns import Column
from airflow_connect.hive.types import widened


def evolved(existing: Sequence[Column], wanted: Sequence[Column], table: str) -> tuple[Column, ...]:
    """The columns of a table that holds old rows and new ones.

    Args:
        existing: its columns.
        wanted: what the new files hold.
        table: `database.name`, for messages.

    Raises:
        SchemaError: no type can hold the values of both the old and the new type of a column.
    """
    columns = {column.name.lower(): column for column in existing}
    for column in wanted:
        known = columns.get(column.name.lower())
        if known is None:
            columns[column.name.lower()] = column
            continue
        both = widened(known.type, column.type)
        if both is None:
            raise SchemaError(
                f"The column {known.name} of the Hive table {table} has the type {known.type}, and the topic's records"
                f" now have {column.type}, which cannot be read as one column.",
                code="hive.schema_conflict",
                suggestion="The files are published and stay. Change the column with ALTER TABLE, or drop the external"
                " table (its files stay), and run again; a new hive.table.name keeps both.",
            )
        columns[column.name.lower()] = replace(known, type=both)
    return tuple(columns.values())
