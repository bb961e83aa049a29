"""Which columns of a table or query are tracked: those that the mode needs, checked."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_connect.connectors.jdbc.source.read.criteria import Tracked
from airflow_connect.connectors.jdbc.source.settings.config import JdbcSourceConfig
from airflow_connect.connectors.jdbc.source.values.columns import INTEGERS, TIMES, Column, Kind, find_column
from airflow_connect.errors import ConfigError


def named_columns(config: JdbcSourceConfig, columns: Sequence[Column]) -> Tracked:
    """Tracked columns of a query on SQLite, whose types are unknown."""
    incrementing = None
    if config.uses_incrementing:
        incrementing = find_column(columns, config.incrementing, "Incrementing column", "query")
    stamps = config.timestamps if config.uses_timestamps else ()
    found = (find_column(columns, name, "Timestamp columns", "query") for name in stamps)
    return Tracked(incrementing, tuple(found))


def tracked_columns(config: JdbcSourceConfig, columns: Sequence[Column], table: str) -> Tracked:
    """The tracked columns of a table, checked.

    Raises:
        ConfigError: a column is missing, has a wrong type, or may be null although `validate.non.null` is true.
    """
    incrementing: Column | None = None
    timestamps: tuple[Column, ...] = ()
    if config.uses_incrementing:
        incrementing = _incrementing(config, columns, table)
    if config.uses_timestamps:
        timestamps = _timestamps(config, columns, table)
    tracked = Tracked(incrementing, timestamps)
    if config.checks_null:
        _refuse_nullable(tracked, table)
    return tracked


def _incrementing(config: JdbcSourceConfig, columns: Sequence[Column], table: str) -> Column:
    name = config.incrementing_column(table)
    if name:
        found = find_column(columns, name, "Incrementing column", table)
    else:
        numbered = [column for column in columns if column.numbers_itself]
        if len(numbered) != 1:
            count = "no column" if not numbered else "several columns"
            raise ConfigError(
                f"The table {table} has {count} that the database numbers itself, so its incrementing column is"
                " unknown.",
                code="database.column",
                suggestion="Set incrementing.column.name or incrementing.column.mapping.",
                config_path="incrementing.column.name",
            )
        found = numbered[0]
    is_whole = found.kind in (Kind.DECIMAL, Kind.NUMERIC) and not found.scale
    # PostgreSQL takes the number before the first one, -1, for the largest oid.
    if (found.kind not in INTEGERS and not is_whole) or found.type_name == "oid":
        raise ConfigError(
            f"The incrementing column {found.name} of table {table} has {_type_of(found)}, which is not a whole"
            " number.",
            code="database.column",
            suggestion="Choose a column with whole numbers, such as bigint.",
            config_path="incrementing.column.name",
        )
    return found


def _type_of(column: Column) -> str:
    """In words: SQLite has columns without a type, such as those that a view computes."""
    return f"type {column.type_name}" if column.type_name else "no declared type"


def _timestamps(config: JdbcSourceConfig, columns: Sequence[Column], table: str) -> tuple[Column, ...]:
    names = config.timestamp_columns(table)
    if not names:
        raise ConfigError(
            f"No timestamp column is configured for table {table}.",
            code="database.column",
            suggestion="Add the table to timestamp.columns.mapping, or leave it out with table.exclude.list.",
            config_path="timestamp.columns.mapping",
        )
    found = tuple(find_column(columns, name, "Timestamp columns", table) for name in names)
    kinds = {column.kind for column in found}
    wrong = [column for column in found if column.kind not in TIMES and column.kind is not Kind.UNKNOWN]
    is_text = [column for column in wrong if column.kind in (Kind.STRING, Kind.INT64)]
    if (wrong and not (is_text and config.connection.address.database == "sqlite")) or len(kinds) > 1:
        listed = ", ".join(f"{column.name} ({column.type_name})" for column in found)
        raise ConfigError(
            f"The timestamp columns {listed} of table {table} are not all of one type with a date and a time.",
            code="database.column",
            suggestion="Choose columns of type timestamp, or of the same type.",
            config_path="timestamp.column.name",
        )
    return found


def _refuse_nullable(tracked: Tracked, table: str) -> None:
    incrementing, timestamps = tracked.incrementing, tracked.timestamps
    message = ""
    if incrementing is not None and incrementing.optional:
        message = (
            f"Cannot make incremental queries using incrementing column {incrementing.name} on {table} because"
            " this column"
            " is nullable."
        )
    elif timestamps and all(column.optional for column in timestamps):
        names = ",".join(column.name for column in timestamps)
        message = (
            f"Cannot make incremental queries using timestamp columns {names} on {table} because all of these"
            " columns are"
            " nullable."
        )
    if message:
        raise ConfigError(
            message,
            code="database.nullable",
            suggestion="Declare the column NOT NULL, or set validate.non.null=false: rows with null are then counted"
            " and left out.",
            config_path="validate.non.null",
        )
