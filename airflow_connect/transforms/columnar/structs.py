"""Splits struct columns into columns of their fields, and joins them again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.schema import Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa


def struct_members(part: ValueColumns | None) -> list[pa.Array[Any]] | None:
    """Columns of a struct's fields, in their order; None if the part is not vectorizable.

    Plain is a STRUCT without null values: `apply` leaves a null value its old schema, and a batch has only one.
    """
    if part is None or part.schema is None or part.schema.type is not Type.STRUCT or part.values.null_count:
        return None
    structs: Any = part.values
    return [structs.field(index) for index in range(len(part.schema.fields))]


def struct_columns(schema: Schema, members: Sequence[pa.Array[Any]], count: int) -> ValueColumns:
    """`count` structs of `schema`, from the columns of its fields."""
    import pyarrow as pa

    if not members:
        return ValueColumns(schema, pa.array([{}] * count, pa.struct([])))
    return ValueColumns(schema, pa.StructArray.from_arrays(members, names=[field.name for field in schema.fields]))


def with_default(column: pa.Array[Any], schema: Schema, replace_null: bool) -> pa.Array[Any] | None:
    """A field's column with its default in place of nulls (KIP-1040); None if that is not vectorizable.

    Plain are defaults whose Arrow form is the Python value itself.
    """
    if not replace_null or schema.default is None or not column.null_count:
        return column
    if not isinstance(schema.default, bool | int | float | str | bytes):
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    filled: pa.Array[Any] = pc.fill_null(column, pa.scalar(schema.default, column.type))
    return filled


def masked_column(column: pa.Array[Any], mask: Any) -> pa.Array[Any] | None:
    """A column of the same type with `mask` in place of every value; nulls stay. None when `mask` is None."""
    if mask is None:
        return None
    import pyarrow as pa
    import pyarrow.compute as pc

    masked: pa.Array[Any] = pc.if_else(column.is_valid(), pa.scalar(mask, column.type), pa.scalar(None, column.type))
    return masked
