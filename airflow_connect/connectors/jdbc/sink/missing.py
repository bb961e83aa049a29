"""Columns that a table lacks: what is said about them, and about those that were added."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.connectors.jdbc.sink import keys
from airflow_connect.connectors.jdbc.sink.keys import JdbcSinkKeys as Keys
from airflow_connect.errors import SchemaError

if TYPE_CHECKING:
    from airflow_connect.connectors.jdbc.sink.config import JdbcSinkConfig
    from airflow_connect.connectors.jdbc.sink.fields import SinkField
    from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Statements
    from airflow_connect.databases.identifiers import Quoting, TableId

_EARLIER_ROWS = (
    "Rows that were written before have null there, or the field's default, until a record writes them again. If the"
    " source has other values in them, copy it again."
)


def added(table: TableId, names: str) -> str:
    """The sentence about columns that auto.evolve has added, which earlier rows may need to be written again for."""
    return f"{Keys.evolves} has added to the table {table}: {names}. {_EARLIER_ROWS}"


def added_before(table: TableId, columns: Collection[str]) -> str:
    """The sentence about columns that no run has named, because the one that added them died or failed."""
    return (
        f"Since the last run that has committed, columns were added to the table {table}, by {Keys.evolves} in a run"
        f" that failed, or by others: {', '.join(sorted(columns))}. {_EARLIER_ROWS}"
    )


class MissingColumns:
    """Refuses columns that may not be added."""

    def __init__(self, config: JdbcSinkConfig, statements: Statements, quoting: Quoting) -> None:
        """What advice depends on."""
        self._config, self._statements, self._quoting = config, statements, quoting

    def check(self, table: TableId, missing: Sequence[SinkField], fields: Sequence[SinkField]) -> None:
        """Refuse a record with fields that have no column.

        Args:
            table: that exists.
            missing: these fields.
            fields: all of the record.

        Raises:
            SchemaError: `auto.evolve` is off, or cannot add them; with the statements that do.
        """
        fixed = [field for field in missing if not field.is_optional and not field.has_default]
        if self._config.evolves and not fixed:
            return
        if not self._config.evolves:
            names = ", ".join(field.name for field in missing)
            message = f"Table {table} is missing fields ({names}) and auto-evolution is disabled."
            advice = f"Add the columns, or set {Keys.evolves}=true, or {Keys.whitelist}."
        else:
            message = (
                f"Cannot ALTER TABLE {table} to add missing field {fixed[0].name}, as the field is not optional and"
                " does not have a default value."
            )
            advice = (
                f"Add the column yourself, such as by {self._adding(table, fixed[:1])}; or make the field optional."
            )
        of_key = [field for field in fixed if field.is_key]
        raise SchemaError(
            message,
            code="jdbc.missing_column",
            suggestion=self._advice_for_keys(table, of_key, fields) if of_key else advice,
            config_path=Keys.pk_mode.name if of_key else "" if self._config.evolves else Keys.evolves.name,
        )

    def _advice_for_keys(self, table: TableId, of_key: Sequence[SinkField], fields: Sequence[SinkField]) -> str:
        """Neither `auto.evolve` nor `fields.whitelist` helps with columns of the key."""
        pk_mode = self._config.mapping.pk_mode
        key = [self._quoting.name(field.name) for field in fields if field.is_key]
        index = self._quoting.name(f"{table.table[:50]}_key")
        unique = f"; CREATE UNIQUE INDEX {index} ON {self._quoting.table(table)} ({', '.join(key)})"
        other = "pk.mode=none" if self._config.insert_mode == keys.INSERT else "another pk.mode"
        return (
            f"{Keys.pk_mode}={pk_mode} writes the primary key into these columns, and a run adds them to no table"
            f" that exists. Add them: {self._adding(table, of_key)}"
            f"{unique if self._config.insert_mode == keys.UPSERT else ''}. Or correct {Keys.pk_fields}, or set {other}."
        )

    def _adding(self, table: TableId, fields: Sequence[SinkField]) -> str:
        """The statements that add columns which may be null, as rows that exist need them."""
        name = self._quoting.table(table)
        optional = [replace(field, schema=replace(field.schema, optional=True)) for field in fields]
        return "; ".join(
            f"ALTER TABLE {name} ADD {self._quoting.name(field.name)} {self._statements.type_of(field)} NULL"
            for field in optional
        )
