"""The typed configuration of the JDBC source."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, Rule
from airflow_connect.api.config.typed import TypedKey
from airflow_connect.connectors.jdbc.source.settings import names, rules
from airflow_connect.connectors.jdbc.source.settings.keys import JdbcSourceKeys
from airflow_connect.connectors.jdbc.source.settings.mapped_columns import Mapped
from airflow_connect.databases import keys
from airflow_connect.databases.settings import ConnectionSettings


class JdbcSourceConfig(JdbcSourceKeys):
    """What the source takes from its configuration."""

    @classmethod
    def define(cls, definition: ConfigDef) -> None:
        """With the rule about the database."""
        super().define(definition)
        definition.define_rule((keys.URL,), rules.database_is_read)

    @classmethod
    def checks(cls) -> Iterable[tuple[Sequence[TypedKey[Any] | str], Rule]]:
        """See `rules`."""
        return rules.checks()

    @cached_property
    def connection(self) -> ConnectionSettings:
        """How to reach the database."""
        isolation = self.isolation.upper().replace("_", " ")
        connection = ConnectionSettings.from_parsed(self.parsed, self.raw, "" if isolation == "DEFAULT" else isolation)
        if self.masked_query is not None and self.masked_query.value:
            return replace(connection, address=replace(connection.address, hides_statements=True))
        return connection

    @property
    def query(self) -> str:
        """A SELECT instead of tables, or ""."""
        return self.plain_query or (self.masked_query.value if self.masked_query is not None else "")

    @property
    def numeric_mapping(self) -> str:
        """`numeric.mapping`, or what its old form means."""
        if self.mapping_of_numbers is not None:
            return self.mapping_of_numbers.lower()
        return "precision_only" if self.maps_precision else "none"

    @property
    def uses_timestamps(self) -> bool:
        """Whether rows are found by timestamps."""
        return self.mode in (names.TIMESTAMP, names.TIMESTAMP_INCREMENTING)

    @property
    def uses_incrementing(self) -> bool:
        """Whether rows are found by a growing number."""
        return self.mode in (names.INCREMENTING, names.TIMESTAMP_INCREMENTING)

    def timestamp_columns(self, table: str) -> tuple[str, ...]:
        """The timestamp columns of a table, by its full name; () if none is configured for it."""
        mapped = _mapped(self.timestamps_by_table, table)
        return self.timestamps if mapped is None else mapped

    def incrementing_column(self, table: str) -> str:
        """The incrementing column of a table; "": it is the one that the database numbers itself."""
        mapped = _mapped(self.incrementing_by_table, table)
        return self.incrementing if mapped is None else mapped[0]


def _mapped(mapping: Mapped, table: str) -> tuple[str, ...] | None:
    return next((columns for pattern, columns in mapping if pattern.fullmatch(table)), None)
