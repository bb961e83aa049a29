"""Errors of formats that need a schema: they name the part of a value that does not fit, without showing data."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, TIME, Type
from airflow_connect.converters.time_of_day import is_time_of_day
from airflow_connect.errors import DataError, SchemaError

if TYPE_CHECKING:
    from airflow_connect.api.schema import Schema

_PYTHON_TYPES: dict[Type, type | tuple[type, ...]] = {
    Type.INT8: int,
    Type.INT16: int,
    Type.INT32: int,
    Type.INT64: int,
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
    Type.BOOLEAN: bool,
    Type.STRING: str,
    Type.BYTES: (bytes, bytearray, memoryview),
    Type.ARRAY: (list, tuple),
    Type.MAP: dict,
    Type.STRUCT: dict,
}
_PRECISION = "connect.decimal.precision"
_PRECISIONS = {"AvroFormat": 64, "ParquetFormat": 38, "OrcFormat": 38}
"""Digits of a Decimal whose schema does not name its precision."""
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}


def no_schema(format_name: str) -> SchemaError:
    """The error for schemaless values given to a format that needs a schema."""
    return SchemaError(
        f"{format_name} needs values with a schema, but these have none.",
        code="data.schemaless",
        suggestion=(
            "Provide one: value.converter=org.apache.kafka.connect.json.JsonConverter with "
            "value.converter.schemas.enable=true and messages of the form {schema, payload}, or with "
            "value.converter.schema.content (KIP-1054) for plain JSON messages. "
            "JsonFormat writes values without a schema."
        ),
    )


def cannot_write(format_name: str, schema: Schema, value: Any, error: BaseException) -> DataError:
    """The error for a value that an encoder has refused with `error`."""
    found = find_mismatch(schema, value, precision=_PRECISIONS.get(format_name, 0))
    found = found or f"an encoder refused it ({type(error).__name__})"
    return DataError(
        f"{format_name} cannot write a value: {found}.",
        code="data.mismatch",
        suggestion="The converter or a transformation created a value that does not fit its own schema. If the field is"
        " null and a JSON Schema does not require it, set value.converter.use.optional.for.nonrequired=true.",
    )


def find_mismatch(schema: Schema, value: Any, path: str = "the value", precision: int = 0) -> str:
    """A clause like `field a.b should be INT32, but is null`, or "" if the value fits.

    `precision`: of a Decimal whose schema does not name one; 0: it is unknown.
    """
    if value is None:
        fits = schema.optional or schema.default is not None
        return "" if fits else f"{path} should be {_named(schema)}, but is null"
    wanted = Decimal if schema.name == DECIMAL else _PYTHON_TYPES[schema.type]
    if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
        return f"{path} should be {_named(schema)}, but is of the Python type {type(value).__name__}"
    if isinstance(value, Decimal) and (problem := _decimal_problem(schema, value, precision)):
        return f"{path} {problem}"
    bits = _BITS.get(schema.type, 0)
    if bits and isinstance(value, int) and not -(1 << (bits - 1)) <= value < 1 << (bits - 1):
        return f"{path} should be {_named(schema)}, but does not fit {bits} bits"
    if schema.name == TIME and isinstance(value, int) and not is_time_of_day(value):
        return f"{path} should be a Time, 0 to 86399999 milliseconds of a day, but is outside of the day"
    if isinstance(value, str) and _has_unpaired_surrogate(value):
        return f"{path} contains half of a surrogate pair, which UTF-8 cannot represent"
    return _find_inside(schema, value, "" if path == "the value" else path.removeprefix("field "), precision)


def _decimal_problem(schema: Schema, value: Decimal, default_precision: int) -> str:
    """Why the value does not fit the scale and the precision of its schema, without its digits; "" if it does."""
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        return "is not a finite number"
    scale, precision = (schema.parameters.get(name, "") for name in (DECIMAL_SCALE, _PRECISION))
    precision = precision or (str(default_precision) if default_precision else "")
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    if scale.isdecimal() and value and -(exponent + zeros) > int(scale):
        return f"has more digits after the decimal point than the scale {scale} allows"
    if precision.isdecimal() and scale.isdecimal() and value and value.adjusted() + 1 + int(scale) > int(precision):
        return f"has more digits than the precision {precision} allows"
    return ""


def _find_inside(schema: Schema, value: Any, path: str, precision: int) -> str:
    if schema.type is Type.STRUCT:
        parts = [(f.schema, value.get(f.name), f"{path}.{f.name}".lstrip(".")) for f in schema.fields]
    elif schema.type is Type.ARRAY and schema.value_schema:
        parts = [(schema.value_schema, item, f"{path}[{n}]") for n, item in enumerate(value)]
    elif schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        parts = [(schema.key_schema, key, f"{path} (a map key)") for key in value]
        parts += [(schema.value_schema, item, f"{path} (a map value)") for item in value.values()]
    else:
        return ""
    return next((found for s, v, p in parts if (found := find_mismatch(s, v, f"field {p}", precision))), "")


def _has_unpaired_surrogate(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return True
    return False


def _named(schema: Schema) -> str:
    return schema.name or schema.type.name
