"""Typed configuration: the catalog's properties, the settings of each table, and which tables a record goes to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from airflow_connect.connectors.iceberg.keys import (
    BRANCH,
    CATALOG,
    CREATE_PROPERTIES,
    ID_COLUMNS,
    OF_TABLE,
    PARTITION_BY,
    ROUTE_REGEX,
    TABLE,
    WRITE_PROPERTIES,
    IcebergKeys,
)
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

MAIN = "main"


@dataclass(frozen=True, slots=True)
class TableSettings:
    """What the configuration says about one table.

    Attributes:
        name: namespace and name, with dots.
        branch: the branch that commits go to.
        partition_by: how it is partitioned when it is created, or "".
        id_columns: identifier fields of a table that is created.
        route: matches the route field of its records; None: there is none.
    """

    name: str
    branch: str
    partition_by: str
    id_columns: tuple[str, ...]
    route: JavaPattern | None

    @property
    def target(self) -> str:
        """The table and its branch, for messages."""
        return self.name if self.branch == MAIN else f"{self.name} (branch {self.branch})"


class IcebergConfig(IcebergKeys):
    """Configuration of one sink."""

    @cached_property
    def catalog_properties(self) -> dict[str, str]:
        """Properties of the catalog, as they were given."""
        return self._with_prefix(CATALOG)

    @cached_property
    def create_properties(self) -> dict[str, str]:
        """Properties of tables that are created."""
        return self._with_prefix(CREATE_PROPERTIES)

    @cached_property
    def write_properties(self) -> dict[str, str]:
        """Properties for writing, stronger than those of the table."""
        return {key: value for prefix in reversed(WRITE_PROPERTIES) for key, value in self._with_prefix(prefix).items()}

    @cached_property
    def _of_tables(self) -> dict[str, dict[str, str]]:
        """Keys of single tables, by the name in the key.

        Raises:
            ConfigError: a key of a table is unknown.
        """
        found: dict[str, dict[str, str]] = {}
        for key, value in self._with_prefix(TABLE).items():
            if f"{TABLE}{key}".startswith(WRITE_PROPERTIES):
                continue
            table, _, name = key.rpartition(".")
            if not table or name not in OF_TABLE:
                raise ConfigError(
                    f"There is no key {TABLE}{key}.",
                    code="config.unknown_key",
                    suggestion=f"Keys of one table are {TABLE}<table>. and one of {', '.join(OF_TABLE)}.",
                    config_path=f"{TABLE}{key}",
                )
            found.setdefault(table, {})[name] = value
        return found

    @cached_property
    def dynamic_pattern(self) -> JavaPattern:
        """The names of tables that records may name.

        Raises:
            ConfigError: it is not a regular expression.
        """
        return _pattern(self.dynamic_names, str(IcebergKeys.dynamic_names))

    def check(self) -> None:
        """Read what is typed on first use.

        Raises:
            ConfigError: a key of a table, a pattern, or the partitioning of a table is wrong.
        """
        from airflow_connect.connectors.iceberg.partitions import parse_partitioning

        if not self.catalog_properties:
            raise ConfigError(
                "There are no properties of the catalog.",
                code="config.missing",
                suggestion=f"Set {CATALOG}type and {CATALOG}uri, such as rest and the server's address.",
                config_path=CATALOG,
            )
        _ = self.dynamic_pattern
        self._check_tables()
        for name in self.tables:
            check_name(name, str(IcebergKeys.tables))
        parse_partitioning(self.partition_by, str(IcebergKeys.partition_by))
        for name, keys in self._of_tables.items():
            parse_partitioning(keys.get(PARTITION_BY, ""), f"{TABLE}{name}.{PARTITION_BY}")
            self.settings_of(name)

    def _check_tables(self) -> None:
        """Refuse what would have no effect without a word.

        Raises:
            ConfigError: a table is listed twice, a key names a table that is not listed, or a table gets no record.
        """
        twice = sorted(name for name in set(self.tables) if self.tables.count(name) > 1)
        if twice:
            raise ConfigError(
                f"{IcebergKeys.tables} lists table {twice[0]} twice, so it would get each record twice.",
                code="config.value",
                suggestion="Remove one of them.",
                config_path=str(IcebergKeys.tables),
            )
        if self.is_dynamic:
            return
        known = {*self.tables, *(name.rpartition(".")[2] for name in self.tables)}
        for name, keys in self._of_tables.items():
            path = f"{TABLE}{name}.{next(iter(keys))}"
            if name not in known:
                raise ConfigError(
                    f"Table {name} is not among the tables of the connector.",
                    code="config.value",
                    suggestion=f"Correct the name, or add the table to {IcebergKeys.tables}.",
                    config_path=path,
                )
            if ROUTE_REGEX in keys and not self.route_field:
                raise ConfigError(
                    f"Without a route field each record goes to table {name}, whatever this expression says.",
                    code="config.value",
                    suggestion=f"Set {IcebergKeys.route_field}, or remove this key.",
                    config_path=f"{TABLE}{name}.{ROUTE_REGEX}",
                )
        without = [name for name in self.tables if self.route_field and self.settings_of(name).route is None]
        if without:
            raise ConfigError(
                f"Table {without[0]} would get no record: {TABLE}{without[0]}.{ROUTE_REGEX} is missing.",
                code="config.missing",
                suggestion=f"Set it to a regular expression for the values of {IcebergKeys.route_field}.",
                config_path=f"{TABLE}{without[0]}.{ROUTE_REGEX}",
            )

    @lru_cache(maxsize=10_000)  # noqa: B019 (a configuration lives as long as its task)
    def settings_of(self, table: str) -> TableSettings:
        """Settings of a table; keys may name it with or without its namespace.

        Raises:
            ConfigError: its pattern is not a regular expression.
        """
        own = {**self._of_tables.get(table.rpartition(".")[2], {}), **self._of_tables.get(table, {})}
        columns = own.get(ID_COLUMNS, self.id_columns)
        regex = own.get(ROUTE_REGEX)
        return TableSettings(
            name=table,
            branch=own.get(BRANCH) or self.branch or MAIN,
            partition_by=own.get(PARTITION_BY, self.partition_by),
            id_columns=tuple(name.strip() for name in columns.split(",") if name.strip()),
            route=None if regex is None else _pattern(regex, f"{TABLE}{table}.{ROUTE_REGEX}"),
        )

    def destinations(self, route: str | None) -> Sequence[str]:
        """The tables that a record goes to.

        Args:
            route: its value of the route field; None: it has none.

        Raises:
            DataError: the record names a table that the configuration does not allow.
        """
        if not self.route_field:
            return self.tables
        if route is None:
            return ()
        if not self.is_dynamic:
            return self._matching(route)
        name = route.lower()
        if self.dynamic_pattern.fullmatch(name) is None or not is_name(name):
            raise DataError(
                f"The field {self.route_field} names the table {route[:200]!r}, which is not allowed.",
                code="iceberg.route",
                suggestion=f"A name has a namespace, a dot and a table, and matches {IcebergKeys.dynamic_names}.",
                config_path=str(IcebergKeys.dynamic_names),
            )
        return (name,)

    @lru_cache(maxsize=10_000)  # noqa: B019 (a configuration lives as long as its task)
    def _matching(self, route: str) -> tuple[str, ...]:
        settings = map(self.settings_of, self.tables)
        return tuple(one.name for one in settings if one.route is not None and one.route.fullmatch(route) is not None)

    def _with_prefix(self, prefix: str) -> dict[str, str]:
        values: Mapping[str, Any] = self.raw
        return {key[len(prefix) :]: str(value) for key, value in values.items() if key.startswith(prefix)}


def is_name(name: str) -> bool:
    """Whether it is a namespace and a table, with dots between non-empty parts."""
    parts = name.split(".")
    return len(parts) > 1 and all(part.strip() == part != "" for part in parts)


def check_name(name: str, key: str) -> None:
    """Refuse a name without a namespace.

    Raises:
        ConfigError: names the key.
    """
    if not is_name(name):
        raise ConfigError(
            f"{name!r} in {key} is not the name of a table.",
            code="config.value",
            suggestion="Name the namespace and the table, with a dot between them: sales.orders.",
            config_path=key,
        )


def _pattern(text: str, key: str) -> JavaPattern:
    try:
        return compile_java_pattern(text)
    except PatternError as error:
        raise ConfigError(
            f"{text!r} is not a regular expression: {error}.", code="config.value", config_path=key
        ) from error
