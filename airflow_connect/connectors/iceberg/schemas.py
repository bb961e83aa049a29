"""Changes of a table's schema: columns that are added, widened and made optional, so that values fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.field_names import FieldNames, twin_fields
from airflow_connect.connectors.iceberg.library import (
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
from airflow_connect.connectors.iceberg.types import all_optional

if TYPE_CHECKING:
    from pyiceberg.schema import Schema
    from pyiceberg.table.update.schema import UpdateSchema

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Added:
    """A column to add; always optional, and so are its parts, because rows that are there do not have it."""

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


def changes(table: Schema, values: Sequence[NestedField], names: FieldNames | None = None) -> tuple[Change, ...]:
    """What a table needs to hold values.

    Args:
        table: the table's schema.
        values: the fields of the values; their ids have no meaning.
        names: by which fields find columns.

    Raises:
        DataError: two fields of the values would be the same column.
    """
    compared = _Compared(frozenset(_fixed_ids(table.fields, table.identifier_field_ids)), names or FieldNames())
    return tuple(compared.structs(table.fields, values, ()))


def _fixed_ids(fields: Sequence[NestedField], identifiers: Sequence[int]) -> Iterator[int]:
    """Fields that must stay required: identifiers of rows, and the structs around them."""
    for field in fields:
        inner = tuple(_fixed_ids(getattr(field.field_type, "fields", ()), identifiers))
        yield from inner
        if inner or field.field_id in identifiers:
            yield field.field_id


@dataclass(frozen=True, slots=True)
class _Compared:
    """The types of a table beside those of values.

    Attributes:
        fixed: ids of columns that stay required; values without one of them are refused one by one.
        names: as in `changes`.
    """

    fixed: frozenset[int]
    names: FieldNames

    def structs(self, table: Sequence[NestedField], values: Sequence[NestedField], path: Path) -> Iterator[Change]:
        """Changes of a struct."""
        columns = {field.name: field for field in table}
        column_of = self.names.finder((field.field_id, field.name) for field in table)
        found: dict[str, str] = {}
        for field in values:
            found_name = column_of(field.name)
            column = None if found_name is None else columns[found_name]
            name = self._folded(field.name) if column is None else column.name
            if (other := found.setdefault(name, field.name)) != field.name:
                raise twin_fields(".".join((*path, other)), ".".join((*path, field.name)))
            if column is None:
                # With optional parts: pyiceberg 0.12 cannot read older rows if one is required.
                yield Added((*path, field.name), all_optional(field.field_type), field.doc)
                continue
            where = (*path, column.name)
            if column.required and not field.required and column.field_id not in self.fixed:
                yield MadeOptional(where)
            yield from self.types(column.field_type, field.field_type, where)
        for column in table:
            if column.required and column.name not in found and column.field_id not in self.fixed:
                yield MadeOptional((*path, column.name))

    def _folded(self, name: str) -> str:
        return name.lower() if self.names.ignores_case else name

    def types(self, column: IcebergType, value: IcebergType, path: Path) -> Iterator[Change]:
        """Changes of a column and its parts."""
        if isinstance(column, StructType) and isinstance(value, StructType):
            yield from self.structs(column.fields, value.fields, path)
        elif isinstance(column, ListType) and isinstance(value, ListType):
            where = (*path, "element")
            if column.element_required and not value.element_required:
                yield MadeOptional(where)
            yield from self.types(column.element_type, value.element_type, where)
        elif isinstance(column, MapType) and isinstance(value, MapType):
            where = (*path, "value")
            if column.value_required and not value.value_required:
                yield MadeOptional(where)
            yield from self.types(column.value_type, value.value_type, where)
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
