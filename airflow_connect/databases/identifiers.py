"""Names of tables and columns: parsed as Confluent parses them, quoted as the database requires.

Source: io.confluent.connect.jdbc.util.{TableId,ColumnId,IdentifierRules,ExpressionBuilder} for the forms.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    from sqlalchemy import Dialect
    from sqlalchemy.sql.elements import quoted_name

_PLAIN = re.compile(r"[^\W\d][\w$#]*")
_FOLDED = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
"""What PostgreSQL does to a name without quotes in an encoding of several bytes (downcase_identifier)."""


class TableId(NamedTuple):
    """The name of a table; catalog and schema are "" if they are not given.

    PostgreSQL has catalog (the database), schema and table; MySQL and MariaDB have catalog (the database) and table;
    SQLite has only tables.
    """

    catalog: str
    schema: str
    table: str

    @property
    def full_name(self) -> str:
        """All given parts, unquoted, with dots between: what Confluent writes into source partitions."""
        return ".".join(part for part in self if part)

    def __str__(self) -> str:
        """`full_name`."""
        return self.full_name


class Quoting:
    """Quotes names for one database."""

    def __init__(self, dialect: Dialect, *, quotes: bool = True) -> None:
        """`quotes`: whether names are quoted at all (`quote.sql.identifiers`)."""
        self._preparer = dialect.identifier_preparer
        self._uses_catalog = dialect.name in ("mysql", "mariadb")
        self._quotes = quotes
        self._folds = dialect.name == "postgresql"

    def name(self, name: str) -> str:
        """One name for a statement that is executed as text by `exec_driver_sql` or `text` without a colon.

        Raises:
            ConfigError: names are not quoted, and this one is not safe without quotes.
        """
        if self._quotes:
            if "\0" in name:
                raise _unsafe(name)
            # SQLAlchemy doubles % for drivers whose parameters are %s, and those drivers undo it.
            return self._preparer.quote_identifier(name)
        if not _PLAIN.fullmatch(name):
            raise _unsafe(name)
        return name

    @property
    def folds(self) -> bool:
        """Whether the database takes capitals in names for small letters: PostgreSQL, without quotes."""
        return self._folds and not self._quotes

    def folded(self, name: str) -> str:
        """The name that the database takes `name` for."""
        return name.translate(_FOLDED) if self.folds else name

    def folded_table(self, table: TableId) -> TableId:
        """The same for each part of a table's name."""
        return TableId(*map(self.folded, table))

    def check_is_found(self, what: str, name: str, parts: Iterable[str]) -> None:
        """Refuse a name that the database would take for another one, because names are not quoted.

        Args:
            what: `table` or `column`, for the message.
            name: the full name, for the message.
            parts: of the name, as they are written in statements.

        Raises:
            ConfigError: `quote.sql.identifiers=never`, and the name has capitals, which PostgreSQL folds.
        """
        if all(part == self.folded(part) for part in parts):
            return
        raise ConfigError(
            f"The {what} {name} has capitals in its name. Without quotes the database takes it for"
            f" {self.folded(name)}.",
            code="database.name",
            suggestion="Set quote.sql.identifiers=always.",
            config_path="quote.sql.identifiers",
        )

    def table(self, table: TableId) -> str:
        """The full name of a table for a statement. The catalog is left out where a connection has only one."""
        return ".".join(self.name(part) for part in self._parts(table))

    def text(self, name: str) -> str:
        """One name for SQLAlchemy's `text`, which doubles % itself and takes colons for parameters.

        Raises:
            ConfigError: as `name`.
        """
        self.name(name)
        if not self._quotes:
            return name
        start, end = self._preparer.initial_quote, self._preparer.final_quote
        return (start + name.replace(end, end * 2) + end).replace(":", "\\:")

    def table_text(self, table: TableId) -> str:
        """The full name of a table for SQLAlchemy's `text`, as `table`."""
        return ".".join(self.text(part) for part in self._parts(table))

    def _parts(self, table: TableId) -> list[str]:
        parts = (table.catalog, table.table) if self._uses_catalog else (table.schema, table.table)
        return [part for part in parts if part]

    def element(self, name: str) -> quoted_name:
        """A name for SQLAlchemy's own constructs (`table`, `column`, `Column`), which quote it and look it up.

        Raises:
            ConfigError: as `name`.
        """
        from sqlalchemy.sql.elements import quoted_name as make

        if not self._quotes:
            self.name(name)
        return make(self.folded(name), self._quotes)

    def parse(self, text: str) -> TableId:
        """A table name as users write it: one to three parts with dots between; parts may be quoted.

        Of two parts the first is the catalog for MySQL and MariaDB, else the schema.

        Raises:
            ConfigError: a quote is open, a part is empty, or there are too many parts.
        """
        parts = split_name(text, self._preparer.initial_quote, self._preparer.final_quote)
        if len(parts) == 1:
            return TableId("", "", parts[0])
        if len(parts) == 2:
            return TableId(parts[0], "", parts[1]) if self._uses_catalog else TableId("", parts[0], parts[1])
        if len(parts) == 3:
            return TableId(*parts)
        raise ConfigError(
            f"The table name {text[:200]} has {len(parts)} parts.",
            code="database.name",
            suggestion="Write it as catalog.schema.table, schema.table or table, and quote a part that has a dot.",
        )


def split_name(text: str, start: str = '"', end: str = '"') -> list[str]:
    """The parts of a name with dots between them. A quoted part may have dots; two end quotes stand for one.

    Raises:
        ConfigError: a quote is open, or a part is empty.
    """
    parts: list[str] = []
    rest = text.strip()
    pattern = re.compile(
        rf"\s*(?:{re.escape(start)}(?P<quoted>(?:[^{re.escape(end)}]|{re.escape(end) * 2})+){re.escape(end)}"
        rf"|(?P<plain>[^.{re.escape(start)}{re.escape(end)}]+?))\s*(?P<dot>\.|$)"
    )
    position = 0
    while True:
        found = pattern.match(rest, position)
        if found is None:
            raise ConfigError(
                f"The name {text[:200]} is not a name of a table or column: a quote is open, or a part is empty.",
                code="database.name",
                suggestion=f"Write it as schema.table, and quote a part with special characters: {start}my.table{end}.",
            )
        quoted = found["quoted"]
        parts.append(found["plain"] if quoted is None else quoted.replace(end * 2, end))
        position = found.end()
        if found["dot"] != ".":
            return parts


def _unsafe(name: str) -> ConfigError:
    return ConfigError(
        f"The name {name[:200]!r} cannot be used in a statement without quotes.",
        code="database.name",
        suggestion="Set quote.sql.identifiers=always.",
        config_path="quote.sql.identifiers",
    )
