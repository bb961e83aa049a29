"""Changes of a table's schema: columns that are added, widened and made optional, so that values fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pyiceberg.types import (
    DecimalType,
    DoubleType,
    FloatType,
    IcebergType,
    IntegerType,
    ListType,
    LongType,
    MapType,
    NestedField,
    StructType,
)

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.update.schema import UpdateSchema

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """A column to add; always optional, because rows that are there do not have it."""

    path: Path
    kind: IcebergType
    doc: str | None = None

    def apply(self, update: UpdateSchema) -> None:
        """Stage it."""
        update.add_column(self.path, self.kind, doc=self.doc)


@dataclass(frozen=True, slots=True)
class Widened:
    """A column that gets a type with more values."""

    path: Path
    kind: IcebergType

    def apply(self, update: UpdateSchema) -> None:
        """Stage it."""
        update.update_column(self.path, field_type=self.kind)


@dataclass(frozen=True, slots=True)
class MadeOptional:
    """A required column that values may not have."""

    path: Path

    def apply(self, update: UpdateSchema) -> None:
        """Stage it."""
        update.make_column_optional(self.path)


Change = Added | Widened | MadeOptional


def changes(table: Schema, values: Sequence[NestedField], *, ignores_case: bool = False) -> tuple[Change, ...]:
    """What a table needs to hold values.

    Args:
        table: the table's schema.
        values: the fields of the values; their ids have no meaning.
        ignores_case: whether fields find their columns without regard to case.
    """
    return tuple(_of_struct(table.fields, values, (), ignores_case=ignores_case))


def _of_struct(
    table: Sequence[NestedField], values: Sequence[NestedField], path: Path, *, ignores_case: bool
) -> Iterator[Change]:
    def name(text: str) -> str:
        return text.lower() if ignores_case else text

    columns = {name(field.name): field for field in table}
    for field in values:
        column = columns.pop(name(field.name), None)
        if column is None:
            yield Added((*path, field.name), field.field_type, field.doc)
            continue
        where = (*path, column.name)
        if column.required and not field.required:
            yield MadeOptional(where)
        yield from _of_type(column.field_type, field.field_type, where, ignores_case=ignores_case)
    for column in columns.values():
        if column.required:
            yield MadeOptional((*path, column.name))


def _of_type(column: IcebergType, value: IcebergType, path: Path, *, ignores_case: bool) -> Iterator[Change]:
    if isinstance(column, StructType) and isinstance(value, StructType):
        yield from _of_struct(column.fields, value.fields, path, ignores_case=ignores_case)
    elif isinstance(column, ListType) and isinstance(value, ListType):
        where = (*path, "element")
        if column.element_required and not value.element_required:
            yield MadeOptional(where)
        yield from _of_type(column.element_type, value.element_type, where, ignores_case=ignores_case)
    elif isinstance(column, MapType) and isinstance(value, MapType):
        where = (*path, "value")
        if column.value_required and not value.value_required:
            yield MadeOptional(where)
        yield from _of_type(column.value_type, value.value_type, where, ignores_case=ignores_case)
    elif is_wider(value, column):
        yield Widened(path, value)


def is_wider(wanted: Any, column: Any) -> bool:
    """Whether a column may get the type (Iceberg specification, "Schema Evolution").

    pyiceberg 0.12 would also change the scale of a decimal; readers then see other numbers.
    """
    if isinstance(wanted, LongType) and isinstance(column, IntegerType):
        return True
    if isinstance(wanted, DoubleType) and isinstance(column, FloatType):
        return True
    if isinstance(wanted, DecimalType) and isinstance(column, DecimalType):
        return bool(wanted.scale == column.scale and wanted.precision > column.precision)
    return False
