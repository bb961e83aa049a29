"""Casts of whole columns, if Arrow's result equals that of the record form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import Schema, Type

if TYPE_CHECKING:
    import pyarrow as pa

_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FLOATS = (Type.FLOAT32, Type.FLOAT64)
_ARROW_NAMES = {
    Type.INT8: "int8",
    Type.INT16: "int16",
    Type.INT32: "int32",
    Type.INT64: "int64",
    Type.FLOAT32: "float32",
    Type.FLOAT64: "float64",
    Type.BOOLEAN: "bool_",
    Type.STRING: "string",
}
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
# Arrow also reads hexadecimal and inf, Java also +1 and 1f: only text that both read alike takes the fast path.
_PLAIN_INTEGER = r"^-?[0-9]{1,18}$"
_NOT_ZERO = r"^[^eE]*[1-9]"
_PLAIN_FLOAT = r"^-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,2})?$"


def cast_column(schema: Schema, column: pa.Array[Any], target: Type) -> pa.Array[Any] | None:
    """`column` as the type `target`; None if records must be processed one by one.

    Args:
        schema: of the column's values.
        column: any length, nulls allowed.
        target: a type that Cast allows.
    """
    if schema.type in _INTEGERS:
        # A date as text is not a number, and its integer is not enough.
        is_date = target is Type.STRING and schema.name is not None
        return None if is_date else _from_integers(column, target, _BITS[schema.type])
    if schema.type in _FLOATS:
        return _from_floats(column, target)
    if schema.type is Type.BOOLEAN:
        return _as(column, target)
    if schema.type is Type.STRING:
        return _from_text(column, target)
    return None


def _as(column: pa.Array[Any], target: Type) -> pa.Array[Any]:
    import pyarrow as pa

    arrow_type = getattr(pa, _ARROW_NAMES[target])()
    cast: pa.Array[Any] = column.cast(arrow_type, safe=False)
    return cast


def _has_others(column: pa.Array[Any], target: Type) -> bool:
    """Whether a whole number is beyond a type of integers, and becomes another one: the record form counts it."""
    import pyarrow.compute as pc

    half = 1 << (_BITS[target] - 1)
    ends: Any = pc.min_max(column).as_py()
    return ends["min"] is not None and (ends["min"] < -half or ends["max"] >= half)


def _from_integers(column: pa.Array[Any], target: Type, bits: int) -> pa.Array[Any] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if target in _INTEGERS and _BITS[target] < bits and _has_others(column, target):
        return None
    return pc.not_equal(column, pa.scalar(0, column.type)) if target is Type.BOOLEAN else _as(column, target)


def _from_floats(column: pa.Array[Any], target: Type) -> pa.Array[Any] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if target in _FLOATS:
        new = _as(column, target)
        became_infinite = pc.and_(pc.is_inf(new), pc.is_finite(column))
        became_zero = pc.and_(pc.equal(new, pa.scalar(0, new.type)), pc.not_equal(column, pa.scalar(0, column.type)))
        return None if pc.any(pc.or_(became_infinite, became_zero)).as_py() else new
    if target is Type.BOOLEAN:
        # As a long: what is below 1 is 0, and so is a NaN.
        is_not_zero: pa.Array[Any] = pc.greater_equal(pc.abs(column), pa.scalar(1, column.type))
        return is_not_zero
    if target is Type.STRING:
        return None  # Java writes 1.0E10
    wide = Type.INT64 if target is Type.INT64 else Type.INT32
    limit = float(1 << (63 if target is Type.INT64 else 31))
    within = pc.and_(pc.less(column, pa.scalar(limit, column.type)), pc.greater(column, pa.scalar(-limit, column.type)))
    if pc.all(within).as_py() is False:
        return None
    whole = _as(pc.trunc(column), wide)
    return None if _has_others(whole, target) else _as(whole, target)


def _from_text(column: pa.Array[Any], target: Type) -> pa.Array[Any] | None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if target is Type.STRING:
        return column
    if target is Type.BOOLEAN:
        is_true: pa.Array[Any] = pc.equal(pc.ascii_lower(column), pa.scalar("true"))
        return is_true
    plain = _PLAIN_INTEGER if target in _INTEGERS else _PLAIN_FLOAT
    if pc.all(pc.match_substring_regex(column, plain)).as_py() is False:
        return None
    try:
        new = _as(column, target)
    except pa.ArrowInvalid:  # too large for the type: the record form says so
        return None
    if target in _FLOATS:
        became_zero: Any = pc.and_(pc.equal(new, pa.scalar(0, new.type)), pc.match_substring_regex(column, _NOT_ZERO))
        if pc.any(pc.or_(pc.is_inf(new), became_zero)).as_py():
            return None
    return new
