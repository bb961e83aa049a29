"""The value of the route field, which determines the tables of a record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from airflow_connect.converters.java_text import double_text
from airflow_connect.errors import DataError


def route_of(value: Any, field: str) -> str | None:
    """The field of a value as text; None if it has none. Fields of structs stand after a dot.

    Raises:
        DataError: it is no plain value.

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
    """As Java's `toString`.

    Raises:
        DataError: it is no plain value.
    """
    if isinstance(found, bool):
        return str(found).lower()
    if isinstance(found, float):
        return double_text(found)
    if isinstance(found, str | int):
        return str(found)
    raise DataError(
        f"The route field of a record is of the type {type(found).__name__}, which names no table.",
        code="iceberg.route",
        suggestion="Route by a text, a number or a boolean.",
        config_path="iceberg.tables.route-field",
    )
