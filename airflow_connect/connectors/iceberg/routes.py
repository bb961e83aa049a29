"""The value of the route field, which determines the tables of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def route_of(value: Any, field: str) -> str | None:
    """The field of a value as text; None if it has none. Fields of structs stand after a dot.

    Source: org.apache.iceberg.connect.data.RecordUtils.extractFromRecordValue.
    """
    found = value
    for name in field.split("."):
        if not isinstance(found, Mapping):
            return None
        found = found.get(name)
    return None if found is None else _text(found)


def routes_of_column(batch: Any, field: str) -> list[str | None] | None:
    """The same for each row of a batch; None if it must be found record by record."""
    import pyarrow as pa

    names = field.split(".")
    if names[0] not in batch.schema.names:
        return [None]
    column: Any = batch.column(names[0])
    for name in names[1:]:
        if not pa.types.is_struct(column.type) or column.type.get_field_index(name) < 0:
            return None
        members = column.flatten()
        column = members[column.type.get_field_index(name)]
    if not (pa.types.is_string(column.type) or pa.types.is_integer(column.type)):
        return None
    return [None if found is None else _text(found) for found in column.to_pylist()]


def _text(found: Any) -> str:
    """As Java's `toString`."""
    return str(found).lower() if isinstance(found, bool) else str(found)
