"""The statements of a sink, with what most databases have in common.

Source: io.confluent.connect.jdbc.dialect.GenericDatabaseDialect, and the documentation of each database.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Any, ClassVar

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.connectors.jdbc.sink.fields import SinkField
from airflow_connect.connectors.jdbc.sink.values import literal, no_column_type
from airflow_connect.errors import SchemaError


@dataclass(frozen=True, slots=True)
class Names:
    """Quoted names of a statement: the table, the columns of the primary key, the other columns.

    Attributes:
        guarded: whether an upsert must not change a row that has another key, which another unique index may find.
        casts: columns of the key -> how a condition writes the value, with `{}` for the marker.
    """

    table: str
    keys: tuple[str, ...]
    others: tuple[str, ...]
    guarded: bool = False
    casts: Mapping[str, str] = dataclass_field(default_factory=dict)

    @property
    def all(self) -> tuple[str, ...]:
        """All columns, those of the key first."""
        return (*self.keys, *self.others)

    def condition(self, markers: Sequence[str]) -> str:
        """What finds the row of a key. `markers`: of its columns."""
        found = zip(self.keys, markers, strict=True)
        return " AND ".join(f"{name} = {self.casts.get(name, '{}').format(marker)}" for name, marker in found)


class Statements:
    """Texts of statements for one database.

    Attributes:
        types: column types by Connect's type.
        logical: column types by the name of Connect's logical types.
        key_types: column types of the primary key, where they differ.
        key_collation: of texts in a primary key that is created; "": the database's own.
    """

    types: ClassVar[dict[Type, str]] = {}
    logical: ClassVar[dict[str, str]] = {}
    key_types: ClassVar[dict[Type, str]] = {}

    def __init__(self, marker: Callable[[int], str], *, holdlock: bool = True) -> None:
        """`marker`: how the n-th bound parameter is written, counted from 1; `holdlock`: for SQL Server."""
        self._marker = marker
        self._holdlock = holdlock
        self.key_collation = ""

    def _markers(self, count: int, first: int = 1) -> list[str]:
        return [self._marker(first + n) for n in range(count)]

    # --- rows -----------------------------------------------------------------------------------------------------

    def insert(self, names: Names) -> str:
        """Insert a row; parameters: all columns."""
        return f"INSERT INTO {names.table}({','.join(names.all)}) VALUES({','.join(self._markers(len(names.all)))})"

    def upsert(self, names: Names) -> str:
        """Insert or replace a row; parameters: all columns."""
        raise NotImplementedError

    def skipped(self, names: Names, rows: int, count: int, *, upserts: bool) -> int:
        """How many rows were left out without an error.

        Args:
            names: of the statement.
            rows: how many were sent.
            count: what the driver tells of the statement; negative if it does not know.
            upserts: whether rows may be changed. Without other columns, those that are there stay as they are.
        """
        return 0 if count < 0 or (upserts and not names.others) else max(0, rows - count)

    def update(self, names: Names) -> str:
        """Update rows; parameters: the other columns, then those of the key. Without other columns, nothing changes."""
        changed = names.others or names.keys
        markers = self._markers(len(changed) + len(names.keys))
        assignments = [f"{name} = {marker}" for name, marker in zip(changed, markers, strict=False)]
        return f"UPDATE {names.table} SET {', '.join(assignments)} WHERE {names.condition(markers[len(changed) :])}"

    def delete(self, names: Names) -> str:
        """Delete rows; parameters: the columns of the key."""
        return f"DELETE FROM {names.table} WHERE {names.condition(self._markers(len(names.keys)))}"

    # --- tables ---------------------------------------------------------------------------------------------------

    def create(self, names: Names, fields: Sequence[SinkField], defaults: Sequence[Any]) -> str:
        """Create a table. `fields`: in the order of `names.all`; `defaults`: bound values, or None."""
        specs = self._specs(names.all, fields, defaults)
        if names.keys:
            specs.append(f"PRIMARY KEY({','.join(names.keys)})")
        return f"CREATE TABLE {names.table} (\n" + ",\n".join(specs) + ")"

    def alter(
        self, table: str, columns: Sequence[str], fields: Sequence[SinkField], defaults: Sequence[Any]
    ) -> list[str]:
        """Add columns to a table."""
        added = ",\n".join(f"ADD {spec}" for spec in self._specs(columns, fields, defaults))
        return [f"ALTER TABLE {table} {added}"]

    def _specs(self, columns: Sequence[str], fields: Sequence[SinkField], defaults: Sequence[Any]) -> list[str]:
        return [self._spec(*spec) for spec in zip(columns, fields, defaults, strict=True)]

    def _spec(self, column: str, field: SinkField, default: Any) -> str:
        text = f"{column} {self.type_of(field)}"
        if default is not None:
            return f"{text} DEFAULT {self._unformatted(self._default_of(field, default))}"
        return f"{text} NULL" if field.is_optional else f"{text} NOT NULL"

    def _default_of(self, field: SinkField, value: Any) -> str:
        try:
            return self.default(field, value)
        except SchemaError as error:
            raise SchemaError(
                f"The field {field.name} has a default that no column can have: {error.message}",
                code=error.code,
                suggestion=error.suggestion,
            ) from None

    def _unformatted(self, text: str) -> str:
        """A text for `exec_driver_sql`: where parameters are %s, a percent sign begins one."""
        return text.replace("%", "%%") if self._marker(1) == "%s" else text

    def default(self, field: SinkField, value: Any) -> str:
        """The literal of a default."""
        return literal(value)

    def type_of(self, field: SinkField) -> str:
        """The column type of a field.

        Raises:
            SchemaError: there is none.
        """
        schema = field.schema
        if schema.name in self.logical:
            return self.logical[schema.name].format(scale=_scale(schema))
        if field.is_key and schema.type in self.key_types:
            return self.key_types[schema.type]
        if schema.type not in self.types:
            raise no_column_type(field.name, schema)
        return self.types[schema.type]


def _scale(schema: Schema) -> str:
    return schema.parameters.get(DECIMAL_SCALE, "0")


def logical_types(decimal: str, date: str, time: str, timestamp: str) -> dict[str, str]:
    """The column types of Connect's logical types; `{scale}` stands for the digits after the point."""
    return {DECIMAL: decimal, DATE: date, TIME: time, TIMESTAMP: timestamp}


def integer_types(int8: str, int16: str, int32: str, int64: str) -> dict[Type, str]:
    """The column types of integers."""
    return {Type.INT8: int8, Type.INT16: int16, Type.INT32: int32, Type.INT64: int64}


def other_types(float32: str, float64: str, boolean: str, string: str, binary: str) -> dict[Type, str]:
    """The column types of other primitives."""
    return {
        Type.FLOAT32: float32,
        Type.FLOAT64: float64,
        Type.BOOLEAN: boolean,
        Type.STRING: string,
        Type.BYTES: binary,
    }
