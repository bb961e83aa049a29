"""What one statement writes of a chunk: quoted names, and the values of each row as the columns hold them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, Type
from airflow_connect.connectors.jdbc.sink.columns.chunk import RowsNeededError
from airflow_connect.connectors.jdbc.sink.outcome import RowRefusedError
from airflow_connect.connectors.jdbc.sink.statements.standard_sql import Names
from airflow_connect.connectors.jdbc.sink.time_words import TimeWords, are_read
from airflow_connect.connectors.jdbc.sink.values import exact_number
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.jdbc.sink.batches import Chunk, Row
    from airflow_connect.connectors.jdbc.sink.charsets import Charset
    from airflow_connect.connectors.jdbc.sink.columns.chunk import ColumnChunk
    from airflow_connect.connectors.jdbc.sink.conditions import Convert
    from airflow_connect.connectors.jdbc.sink.tables import FieldColumns
    from airflow_connect.connectors.jdbc.sink.values import Binding
    from airflow_connect.databases.connecting import Database


@dataclass(frozen=True, slots=True)
class Failed:
    """A row that the database refused."""

    record: SinkRecord
    error: Exception


@dataclass(frozen=True, slots=True)
class Work:
    """A chunk's statement: quoted names, and which values of a row belong to them."""

    table: str
    names: Names
    fields: tuple[str, ...]
    """Names of the fields of the values."""
    deletes: bool
    may_copy: bool
    binding: Binding
    chosen: tuple[int, ...] | None
    moments: Mapping[int, bool]
    """Places of points in time among the chosen values, and whether their columns hold such."""
    compared: Mapping[int, Convert]
    """Places of keys that are converted before they are compared with their columns."""
    decimals: Mapping[int, tuple[str, bool]]
    """Places of numbers that columns of SQLite may change: name of the field, and whether the column is REAL."""
    texts: Mapping[int, Charset | TimeWords]
    """Places of bytes that columns of texts hold, and of texts that columns of dates and times of PostgreSQL hold."""
    moneys: frozenset[int]
    """Places of whole numbers, or of lists of them, in columns of the type `money` of PostgreSQL."""
    singles: frozenset[int]
    """Places of FLOAT32, or of lists of them, in columns that hold decimal digits."""
    columns_of_fields: tuple[str, ...]
    """Names of the columns of the values."""
    types: Mapping[str, str]
    """The type of each field, for messages."""
    declared: Mapping[str, str]
    """The declared type of each column, where it is known."""

    @classmethod
    def of(cls, database: Database, chunk: Chunk | ColumnChunk, columns: FieldColumns) -> Work:
        """That of a chunk, with the columns of its fields."""
        fields = chunk.plan.fields[: chunk.plan.key_count] if chunk.deletes else chunk.plan.fields
        there = [n for n, field in enumerate(fields) if field.name in columns.names]
        quote = database.quoting.name
        names = Names(
            database.quoting.table(chunk.plan.table),
            tuple(quote(columns.names[fields[n].name]) for n in there if fields[n].is_key),
            tuple(quote(columns.names[fields[n].name]) for n in there if not fields[n].is_key),
            guarded=columns.needs_guard,
            casts={quote(column): found.cast for column, found in columns.comparisons.items()},
        )
        binding = chunk.plan.binding
        moments = {
            place: columns.names[fields[n].name] in columns.instants
            for place, n in enumerate(there)
            if binding.is_moment(fields[n])
        }
        compared = {
            place: found.convert
            for place, n in enumerate(there)
            if fields[n].is_key and (found := columns.comparisons.get(columns.names[fields[n].name])) and found.convert
        }
        decimals = {
            place: (fields[n].name, columns.numbers[columns.names[fields[n].name]])
            for place, n in enumerate(there)
            if _may_be_changed(fields[n].schema, columns.numbers.get(columns.names[fields[n].name]))
        }
        texts: dict[int, Charset | TimeWords] = {
            place: columns.charsets[columns.names[fields[n].name]]
            for place, n in enumerate(there)
            if columns.names[fields[n].name] in columns.charsets and not chunk.deletes
        }
        if database.dialect.name == "postgresql":
            declared = [columns.declared.get(columns.names[fields[n].name], "") for n in there]
            texts |= {
                place: TimeWords() for place, n in enumerate(there) if are_read(declared[place], fields[n].schema)
            }
        chosen = None if len(there) == len(fields) else tuple(there)
        table = str(chunk.plan.table)
        chosen_names = tuple(fields[n].name for n in there)
        of_fields = tuple(columns.names[name] for name in chosen_names)
        types = {fields[n].name: fields[n].schema.name or fields[n].schema.type.name for n in there}
        moneys = frozenset(
            place
            for place, n in enumerate(there)
            if columns.declared.get(of_fields[place]) in _MONEY and _is_of(_WHOLE, fields[n].schema)
        )
        singles = frozenset(
            place
            for place, n in enumerate(there)
            if _is_of(_SINGLE, fields[n].schema) and _DECIMAL_DIGITS.match(columns.declared.get(of_fields[place], ""))
        )
        return cls(
            table, names, chosen_names, chunk.deletes, columns.may_copy, binding, chosen, moments, compared, decimals,
            texts, moneys, singles, of_fields, types, columns.declared,
        )  # fmt: skip

    def projected(self, rows: list[Row]) -> list[Row]:
        """Rows without the values that have no column, and with others as their columns hold them.

        The driver sends a whole number as the smallest type that holds it, and `money` takes all but the smallest. It
        sends a FLOAT32 with 64 bits, whose digits in a `numeric` or a text are not those of 32: 0.100000001490116.
        """
        if self.chosen is not None:
            rows = [tuple([row[n] for n in self.chosen]) for row in rows]
        if self.moneys:
            rows = [tuple([_exact(v) if n in self.moneys else v for n, v in enumerate(row)]) for row in rows]
        if self.singles:
            rows = [tuple([_shortest(v) if n in self.singles else v for n, v in enumerate(row)]) for row in rows]
        if not self.moments:
            return rows
        change, moments = self.binding.for_column, self.moments
        return [
            tuple([change(v, is_instant=moments[n]) if n in moments else v for n, v in enumerate(row)]) for row in rows
        ]

    def exact(self, rows: list[tuple[Row, SinkRecord]], failed: list[Failed]) -> list[tuple[Row, SinkRecord]]:
        """Rows with numbers that their columns hold exactly; the others are added to `failed`."""
        if not self.decimals:
            return rows
        kept: list[tuple[Row, SinkRecord]] = []
        for row, record in rows:
            values = list(row)
            for place, (name, is_real) in self.decimals.items():
                value = values[place]
                if value is None:
                    continue
                try:
                    if isinstance(value, int):
                        values[place] = value if int(float(value)) == value else None
                    else:
                        values[place] = exact_number(value, is_real=is_real)
                except (TypeError, ValueError, ArithmeticError):
                    failed.append(Failed(record, _no_number(name, record, value)))
                    break
                if values[place] is None:
                    failed.append(Failed(record, _inexact(name, record)))
                    break
            else:
                kept.append((tuple(values), record))
        return kept

    def as_texts(self, rows: list[tuple[Row, SinkRecord]], failed: list[Failed]) -> list[tuple[Row, SinkRecord]]:
        """Rows whose bytes and texts their columns do not take for others; the others are added to `failed`."""
        if not self.texts:
            return rows
        kept: list[tuple[Row, SinkRecord]] = []
        for row, record in rows:
            wrong = next((n for n, charset in self.texts.items() if row[n] is not None and not charset.has(row[n])), -1)
            if wrong < 0:
                kept.append((row, record))
            else:
                failed.append(Failed(record, self.texts[wrong].error(self.fields[wrong], record.where)))
        return kept

    def comparable(self, rows: list[tuple[Row, SinkRecord]], failed: list[Failed]) -> list[tuple[Row, SinkRecord]]:
        """Rows whose keys find no row of another key; those that no column can hold are added to `failed`."""
        if not self.compared:
            return rows
        kept: list[tuple[Row, SinkRecord]] = []
        for row, record in rows:
            values = list(row)
            try:
                for place, convert in self.compared.items():
                    values[place] = convert(values[place])
            except RowRefusedError as error:
                failed.append(Failed(record, error))
            else:
                kept.append((tuple(values), record))
        return kept

    def columns(self, chunk: ColumnChunk) -> list[Any]:
        """The same for columns.

        Raises:
            RowsNeededError: the values must be written one by one.
        """
        from airflow_connect.connectors.jdbc.sink.columns.binding import moments_for_column

        found = [chunk.columns[n] for n in (range(len(chunk.columns)) if self.chosen is None else self.chosen)]
        for place, charset in self.texts.items():
            if not all(map(charset.has, found[place].drop_null().to_pylist())):
                raise RowsNeededError
        for place in self.singles:
            found[place] = found[place].cast("string").cast("double")
        for place, is_instant in self.moments.items():
            column = moments_for_column(found[place], self.binding, is_instant=is_instant)
            if column is None:
                raise RowsNeededError
            found[place] = column
        return found


_MONEY = ("money", "money[]")
_WHOLE = frozenset({Type.INT8, Type.INT16, Type.INT32, Type.INT64})
_SINGLE = frozenset({Type.FLOAT32})
_DECIMAL_DIGITS = re.compile(r"(numeric|decimal|text|(tiny|medium|long)text|character|char|varchar)\b")
"""Types of columns that hold the digits of a number as they are written, not a binary fraction."""


def _is_of(types: frozenset[Type], schema: Schema) -> bool:
    element = schema.value_schema if schema.type is Type.ARRAY else schema
    return element is not None and element.type in types


def _shortest(value: Any) -> Any:
    """A number of 32 bits as that of 64 bits with the fewest digits that are those of no other of 32 bits."""
    if isinstance(value, list):
        return [_shortest(element) for element in value]
    if value is None:
        return None
    import numpy as np

    return float(str(np.float32(value)))


def _exact(value: Any) -> Any:
    """Whole numbers as the driver sends all of them with one type."""
    if isinstance(value, list):
        return [_exact(element) for element in value]
    return Decimal(value) if isinstance(value, int) else value


def _may_be_changed(schema: Schema, is_real: bool | None) -> bool:
    """Whether a column of SQLite may change a number; `is_real`: whether it is REAL, None: it has no numbers."""
    return is_real is not None and (schema.name == DECIMAL or (is_real and schema.type is Type.INT64))


def _no_number(name: str, record: SinkRecord, value: Any) -> DataError:
    return DataError(
        f"The field {name} of {record.where}, which is a number by its schema, has a value of the type"
        f" {type(value).__name__}.",
        code="database.value",
        suggestion="Correct the record, or the transformation that has changed it.",
    )


def _inexact(name: str, record: SinkRecord) -> DataError:
    return DataError(
        f"The field {name} of {record.where} is a number with more digits than SQLite keeps in its column: 15, or, if"
        " the column is not REAL, those of an integer of 64 bits.",
        code="database.value",
        suggestion="Create the column with the type TEXT, which keeps every digit.",
    )
