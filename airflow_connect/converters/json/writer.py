"""Connect values to JSON text, byte for byte as JsonConverter writes it: one function per schema, built once.

Doubles are spelled as Java spells them (`1.0E10`), numbers that are not finite become text (`"NaN"`), bytes
become base64, maps with keys that are not STRING become arrays of pairs. Recorded against Kafka Connect
4.3.1.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.field_errors import in_field
from airflow_connect.converters.java_text import MS_PER_DAY, decimal_text, double_text, float_text
from airflow_connect.converters.json.text import string_text
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import unscaled, unscaled_bytes

Writer = Callable[[Any], str]


class WriterOptions(NamedTuple):
    """`numeric_decimals`: `decimal.format=NUMERIC`; `replace_null`: `replace.null.with.default`."""

    numeric_decimals: bool = False
    replace_null: bool = True


def value_writer(schema: Schema | None, options: WriterOptions) -> Writer:
    """A function from values of `schema` (None: schemaless) to JSON text."""
    if schema is None:
        return schemaless_text
    write = _LOGICAL.get(schema.name or "", _PLAIN[schema.type])(schema, options)
    if options.replace_null and schema.default is not None:
        null = write(schema.default)
    elif schema.optional:
        null = "null"
    else:

        def required(value: Any) -> str:
            if value is None:
                raise DataError(
                    "Conversion error: null value for field that is required and has no default value.",
                    suggestion="Make the field optional in the schema, or give it a default. With"
                    " JsonSchemaConverter, value.converter.use.optional.for.nonrequired=true makes it optional unless"
                    " the schema lists it as required.",
                )
            return write(value)

        return required
    return lambda value: null if value is None else write(value)


def scalar_writer(schema: Schema, options: WriterOptions) -> Writer:
    """As `value_writer` for a schema without parts and a value that is not None."""
    return _LOGICAL.get(schema.name or "", _PLAIN[schema.type])(schema, options)


def schemaless_text(value: Any) -> str:
    """JSON text of a schemaless value.

    Raises:
        DataError: Connect has no type for a value: Decimal, dates, integers beyond 64 bits.
    """
    kind = type(value)
    if kind is str:
        return string_text(value)
    if kind is int:
        return _int64_text(value)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    if kind is float:
        return _double_json(value)
    if kind is dict:
        return _schemaless_map(value)
    if kind is list or kind is tuple:
        return "[" + ",".join([schemaless_text(item) for item in value]) + "]"
    if isinstance(value, bytes | bytearray | memoryview):
        return _bytes_json(value)
    raise DataError(
        f"The type {kind.__name__} does not have corresponding schema type.",
        suggestion="Give the value a schema, or convert it to text or to a number.",
    )


def _schemaless_map(value: dict[Any, Any]) -> str:
    # Connect's rule: an object when every key is text, else an array of pairs.
    if all(type(k) is str for k in value):
        return "{" + ",".join([f"{string_text(k)}:{schemaless_text(v)}" for k, v in value.items()]) + "}"
    return "[" + ",".join([f"[{schemaless_text(k)},{schemaless_text(v)}]" for k, v in value.items()]) + "]"


def _int64_text(value: int) -> str:
    if -(1 << 63) <= value < 1 << 63:
        return repr(value)
    raise DataError(
        "An integer does not have a corresponding schema type: it needs more than 64 bits.",
        suggestion="Give it a Decimal schema.",
    )


def _double_json(value: float) -> str:
    if 1e-3 <= value < 1e7 or -1e7 < value <= -1e-3:
        return repr(value)
    text = double_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _float_json(value: float) -> str:
    text = float_text(value)
    return text if text[-1].isdigit() else f'"{text}"'


def _bytes_json(value: bytes | bytearray | memoryview) -> str:
    return '"' + binascii.b2a_base64(value, newline=False).decode("ascii") + '"'


def _invalid(schema: Schema, value: Any) -> DataError:
    return DataError(
        f"Invalid type for {schema.type.name}: {type(value).__name__}.",
        suggestion="The value does not fit its schema: check the converter and the transformations.",
    )


def _integer(bits: int) -> Callable[[Schema, WriterOptions], Writer]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def build(schema: Schema, options: WriterOptions) -> Writer:
        def write(value: Any) -> str:
            if type(value) is int and low <= value <= high:
                return repr(value)
            raise _invalid(schema, value)

        return write

    return build


def _floating(text: Callable[[float], str]) -> Callable[[Schema, WriterOptions], Writer]:
    def build(schema: Schema, options: WriterOptions) -> Writer:
        def write(value: Any) -> str:
            if type(value) is float:
                return text(value)
            raise _invalid(schema, value)

        return write

    return build


def _boolean(schema: Schema, options: WriterOptions) -> Writer:
    def write(value: Any) -> str:
        if value is True:
            return "true"
        if value is False:
            return "false"
        raise _invalid(schema, value)

    return write


def _string(schema: Schema, options: WriterOptions) -> Writer:
    def write(value: Any) -> str:
        if isinstance(value, str):
            return string_text(value)
        raise _invalid(schema, value)

    return write


def _bytes(schema: Schema, options: WriterOptions) -> Writer:
    def write(value: Any) -> str:
        if isinstance(value, bytes | bytearray | memoryview):
            return _bytes_json(value)
        raise DataError(
            f"Invalid type for bytes type: {type(value).__name__}.",
            suggestion="The value does not fit its schema.",
        )

    return write


def _array(schema: Schema, options: WriterOptions) -> Writer:
    element = value_writer(schema.value_schema, options)

    def write(value: Any) -> str:
        if type(value) is list or isinstance(value, tuple):
            return "[" + ",".join([element(item) for item in value]) + "]"
        raise _invalid(schema, value)

    return write


def _map(schema: Schema, options: WriterOptions) -> Writer:
    key, item = value_writer(schema.key_schema, options), value_writer(schema.value_schema, options)
    if schema.key_schema is not None and schema.key_schema.type is Type.STRING:

        def write_object(value: Any) -> str:
            if not isinstance(value, dict):
                raise _invalid(schema, value)
            # A null key becomes the text "null", and then may take the place of a key that is that text.
            texts = {'"null"' if name is None else key(name): item(v) for name, v in value.items()}
            return "{" + ",".join([f"{k}:{v}" for k, v in texts.items()]) + "}"

        return write_object

    def write_pairs(value: Any) -> str:
        if not isinstance(value, dict):
            raise _invalid(schema, value)
        return "[" + ",".join([f"[{key(k)},{item(v)}]" for k, v in value.items()]) + "]"

    return write_pairs


def _struct(schema: Schema, options: WriterOptions) -> Writer:
    members = [(f.name, string_text(f.name) + ":", value_writer(f.schema, options)) for f in schema.fields]
    names = schema.fields_by_name

    def write(value: Any) -> str:
        if type(value) is not dict:
            raise _invalid(schema, value)
        get, each = value.get, iter(members)
        try:
            text = "{" + ",".join([label + member(get(name)) for name, label, member in each]) + "}"
        except DataError as error:
            raise in_field(error, members, each) from error
        if len(value) > len(members) or not value.keys() <= names.keys():
            unknown = sorted(value.keys() - names.keys(), key=str)
            raise DataError(
                f"Mismatching schema: the struct holds {', '.join(map(repr, unknown))}, the schema does not.",
                suggestion="Add the fields to the schema.",
            )
        return text

    return write


def _decimal(schema: Schema, options: WriterOptions) -> Writer:
    def checked(value: Any) -> Decimal:
        if type(value) is Decimal and value.is_finite():
            return value
        raise DataError(
            f"Invalid type for Decimal, expected decimal.Decimal but was {type(value).__name__}.",
            suggestion="A Decimal schema needs decimal.Decimal values that are finite.",
        )

    if options.numeric_decimals:
        return lambda value: decimal_text(checked(value))

    def write(value: Any) -> str:
        number, own_scale = unscaled(checked(value))
        scale = schema.parameters.get(DECIMAL_SCALE)
        if scale != str(own_scale):
            raise DataError(
                "Decimal value has mismatching scale for given Decimal schema. "
                f"Schema has scale {scale}, value has scale {own_scale}.",
                suggestion="Quantize the value to the scale of the schema.",
            )
        return _bytes_json(unscaled_bytes(number))

    return write


def _days(schema: Schema, options: WriterOptions) -> Writer:
    return _integer(32)(schema, options)


def _time(schema: Schema, options: WriterOptions) -> Writer:
    def write(value: Any) -> str:
        if type(value) is not int:
            raise _invalid(schema, value)
        if not 0 <= value <= MS_PER_DAY:
            raise DataError(
                "Kafka Connect Time type should not have any date fields set to non-zero values.",
                suggestion="A Time is 0 to 86400000 milliseconds; use Timestamp for instants.",
            )
        return repr(value)

    return write


def _timestamp(schema: Schema, options: WriterOptions) -> Writer:
    return _integer(64)(schema, options)


_PLAIN: dict[Type, Callable[[Schema, WriterOptions], Writer]] = {
    Type.INT8: _integer(8),
    Type.INT16: _integer(16),
    Type.INT32: _integer(32),
    Type.INT64: _integer(64),
    Type.FLOAT32: _floating(_float_json),
    Type.FLOAT64: _floating(_double_json),
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_LOGICAL: dict[str, Callable[[Schema, WriterOptions], Writer]] = {
    DECIMAL: _decimal,
    DATE: _days,
    TIME: _time,
    TIMESTAMP: _timestamp,
}
