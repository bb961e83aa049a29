"""Which column of a table a field of a value is: by its name, or by one of the table's name mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from airflow_connect.errors import DataError, IcebergError

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.name_mapping import MappedField

NAME_MAPPING = "schema.name-mapping.default"
"""Property of a table (Iceberg specification, "Name Mapping Serialization")."""


@dataclass(frozen=True, slots=True)
class FieldNames:
    """How fields find their columns.

    Attributes:
        ignores_case: whether the case of a name does not matter.
        others: further names of columns, by the id of the column.
    """

    ignores_case: bool = False
    others: Mapping[int, frozenset[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, table: Table, *, ignores_case: bool) -> FieldNames:
        """Read a table's name mapping, as the original does.

        Raises:
            IcebergError: it cannot be read.
        """
        text = table.properties.get(NAME_MAPPING)
        if not text:
            return cls(ignores_case)
        from pyiceberg.table.name_mapping import parse_mapping_from_json

        try:
            return cls(ignores_case, dict(_names(parse_mapping_from_json(text))))
        except ValueError as error:
            raise IcebergError(
                f"The property {NAME_MAPPING} of table {'.'.join(table.name())} cannot be read.",
                code="iceberg.property",
                suggestion="Correct or remove it.",
            ) from error

    def finder(self, columns: Iterable[tuple[int, str]]) -> Callable[[str], str | None]:
        """A function from the name of a field to the name of its column in a struct; None: there is none.

        Args:
            columns: id and name of each member of the struct.

        Raises:
            DataError: a name of the mapping means two columns.
        """
        members = list(columns)
        own = {name: name for _, name in members}
        others: dict[str, str] = {}
        for field_id, column in members:
            for name in self.others.get(field_id, ()):
                if name not in own and others.setdefault(name, column) != column:
                    raise _ambiguous(name, others[name], column)
        exact = others | own
        folded = {name.lower(): name for name in own} if self.ignores_case else {}
        return lambda name: exact[name] if name in exact else folded.get(name.lower())


def _names(mapped: Iterable[MappedField]) -> Iterable[tuple[int, frozenset[str]]]:
    for one in mapped:
        if one.field_id is not None:
            yield one.field_id, frozenset(one.names)
        yield from _names(one.fields)


def _ambiguous(name: str, one: str, other: str) -> DataError:
    return DataError(
        f"The name mapping of the table has {name} for the columns {one} and {other}.",
        code="iceberg.column_names",
        suggestion=f"Correct the property {NAME_MAPPING} of the table.",
    )


def twin_fields(one: str, other: str) -> DataError:
    """The error for two fields of a value that would be the same column."""
    return DataError(
        f"The fields {one} and {other} would be the same column.",
        code="iceberg.column_names",
        suggestion="Drop or rename one of them with a transformation (ReplaceField). Names are the same without regard"
        f" to case under iceberg.tables.schema-case-insensitive=true, and where the table's {NAME_MAPPING} says so.",
    )
