"""Payload of a JSON message to Connect values: one function per schema, built once and used for every record.

The functions keep the quirks of Jackson's node accessors on which Connect relies: `intValue()` of text is 0
and of a large number its low 32 bits, `booleanValue()` of anything but a boolean is false, `textValue()` of
a number is null. Recorded against Kafka Connect 4.3.1 where tests/data has the case, else Jackson's documented
behaviour. Input is what `json_text.parse_fast` parses: where a function cannot trust a double it raises
InexactNumberError, and must be given what `json_text.parse_exact` parses.
"""

from __future__ import annotations

import base64
import binascii
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any, NamedTuple

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, TIME, TIMESTAMP, Schema, Type
from airflow_connect.converters.field_errors import in_field
from airflow_connect.converters.json.strict import name_changed_numbers, refuse_changed_numbers, strict_reader
from airflow_connect.converters.json.text import (
    MAX_DEPTH,
    MISSING,
    NUMBERS,
    InexactNumberError,
    VanishedNumber,
    is_deeper,
    too_deep,
)
from airflow_connect.converters.map_entries import map_of_entries
from airflow_connect.converters.time_of_day import read_time
from airflow_connect.converters.unread import Unread, joined
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import decimal_of_bytes, integer_parameter, narrowed, to_float32, wrapped

Reader = Callable[[Any], Any]

_INT64_MIN, _INT64_MAX = -(1 << 63), (1 << 63) - 1


def needs_exact_numbers(schema: Schema | None) -> bool:
    """Whether values of `schema` may have digits that a double loses: a Decimal or a 32 bit float, anywhere."""
    if schema is None:
        return False
    if schema.name == DECIMAL or schema.type is Type.FLOAT32:
        return True
    inner = (schema.key_schema, schema.value_schema, *(f.schema for f in schema.fields))
    return any(needs_exact_numbers(s) for s in inner)


class ReadOptions(NamedTuple):
    """How payloads are read.

    Attributes:
        replace_null: whether null becomes the schema's default (`replace.null.with.default`).
        is_strict: whether JSON of another type is refused (`strict.types`).
        unread: gets the members that the schema does not have, and those whose values do not fit their types and become
            others; None: they are not looked for.
        path: of the value in its message.
    """

    replace_null: bool = True
    is_strict: bool = False
    unread: Unread | None = None
    path: str = ""

    def changed(self, value: Any) -> Any:
        """`value`, which another one becomes because it does not fit its type."""
        if self.unread is not None:
            self.unread.add_changed(self.path)
        return value


def payload_reader(schema: Schema, options: ReadOptions) -> Reader:
    """A function from parsed JSON to values of `schema`."""
    read = _LOGICAL.get(schema.name or "", _PLAIN[schema.type])(schema, options)
    if options.is_strict:
        read = strict_reader(schema, read)
    if options.replace_null and schema.default is not None:
        default = schema.default
        return lambda node: default if node is None or node is MISSING else read(node)
    if schema.optional:
        return lambda node: None if node is None or node is MISSING else read(node)
    message = f"Invalid null value for required {schema.type.name} field."

    def required(node: Any) -> Any:
        if node is None or node is MISSING:
            raise DataError(message, suggestion="Make the field optional in the schema, or give it a default.")
        return read(node)

    return required


def scalar_reader(schema: Schema, options: ReadOptions) -> Reader:
    """As `payload_reader` for a schema without parts and a node that is not null."""
    return _LOGICAL.get(schema.name or "", _PLAIN[schema.type])(schema, options)


def schemaless(node: Any) -> Any:
    """Parsed JSON to a schemaless value: integers wrap to 64 bits, fractions are doubles, as in Connect."""
    kind = type(node)
    if kind is dict:
        return {k: schemaless(v) for k, v in node.items()}
    if kind is list:
        return [schemaless(v) for v in node]
    if kind is int:
        return node if _INT64_MIN <= node <= _INT64_MAX else wrapped(node, 64)
    if kind is Decimal or kind is VanishedNumber:
        return float(node)
    return None if node is MISSING else node


def schemaless_payload(node: Any, *, is_strict: bool = False, unread: Unread | None = None) -> Any:
    """As `schemaless`, for a whole message; `unread` gets the numbers that become others.

    Raises:
        DataError: nested too deeply, or `is_strict` and a number would become another one.
    """
    if is_deeper(node, MAX_DEPTH):
        raise too_deep()
    if is_strict:
        refuse_changed_numbers(node)
    elif unread is not None:
        name_changed_numbers(node, unread)
    return schemaless(node)


def _integer(bits: int) -> Callable[[Schema, ReadOptions], Reader]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1

    def build(schema: Schema, options: ReadOptions) -> Reader:
        changed = options.changed

        def read(node: Any) -> Any:
            kind = type(node)
            if kind is int:
                return node if low <= node <= high else changed(wrapped(node, bits))
            if kind is float:
                if node.is_integer():
                    # 1.9999999999999999 becomes the double 2.0, and beyond 2^53 digits are lost.
                    raise InexactNumberError("the digits of a whole number may be lost")
                # A double with a fraction is below 2^52 and between the same two integers as its text.
                return changed(wrapped(int(node), bits))
            if kind is not Decimal:
                return changed(0)
            number = narrowed(node, bits)
            return number if number == node else changed(number)

        return read

    return build


def _float64(schema: Schema, options: ReadOptions) -> Reader:
    changed = options.changed

    def read(node: Any) -> Any:
        if type(node) not in NUMBERS:
            return changed(0.0)
        try:
            number = float(node)
        except OverflowError:
            number = math.inf if node > 0 else -math.inf
        return number if math.isfinite(number) else changed(number)

    return read


def _float32(schema: Schema, options: ReadOptions) -> Reader:
    changed, double = options.changed, _float64(schema, options)

    def read(node: Any) -> Any:
        number = to_float32(node if type(node) is Decimal else double(node))
        return number if math.isfinite(number) else changed(number)

    return read


def _boolean(schema: Schema, options: ReadOptions) -> Reader:
    changed = options.changed
    return lambda node: node if type(node) is bool else changed(False)


def _string(schema: Schema, options: ReadOptions) -> Reader:
    changed = options.changed
    return lambda node: node if type(node) is str else changed(None)


def _decode_base64(text: str, what: str) -> bytes:
    try:
        return binascii.a2b_base64(text, strict_mode=True) if text else b""
    except (binascii.Error, ValueError):
        pass
    try:
        # Jackson skips blanks and line breaks between groups of characters.
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise DataError(
            f"Invalid bytes {what}: the text is not base64 ({error}).",
            suggestion="Write bytes as base64 text.",
        ) from error


def _bytes(schema: Schema, options: ReadOptions) -> Reader:
    changed = options.changed
    return lambda node: _decode_base64(node, "field") if type(node) is str else changed(None)


def _array(schema: Schema, options: ReadOptions) -> Reader:
    assert schema.value_schema is not None
    element = payload_reader(schema.value_schema, options)

    def read(node: Any) -> list[Any]:
        if type(node) is list:
            return [element(item) for item in node]
        # Connect iterates over any node: the values of an object; a scalar has none.
        options.changed(node)
        return [element(item) for item in node.values()] if type(node) is dict else []

    return read


def _map(schema: Schema, options: ReadOptions) -> Reader:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    value = payload_reader(schema.value_schema, options)
    if schema.key_schema.type is Type.STRING:

        def read_object(node: Any) -> dict[str, Any]:
            if type(node) is not dict:
                raise _mismatch("Maps with string fields should be encoded as JSON objects, but found", node)
            return {k: value(v) for k, v in node.items()}

        return read_object
    key = payload_reader(schema.key_schema, options)

    def read_pairs(node: Any) -> dict[Any, Any]:
        if type(node) is not list:
            raise _mismatch("Maps with non-string fields should be encoded as JSON array of tuples, but found", node)
        return map_of_entries(((key(k), value(v)) for k, v in map(_pair, node)), "an array")

    return read_pairs


def _pair(entry: Any) -> list[Any]:
    if type(entry) is not list:
        raise _mismatch("Found invalid map entry instead of array tuple:", entry)
    if len(entry) != 2:
        raise DataError(f"Found invalid map entry, expected length 2 but found :{len(entry)}.")
    return entry


def _struct(schema: Schema, options: ReadOptions) -> Reader:
    members = [(f.name, identity_type(f.schema), _member(f.name, f.schema, options)) for f in schema.fields]
    unread, path, known = options.unread, options.path, frozenset(schema.fields_by_name)

    def read(node: Any) -> dict[str, Any]:
        if type(node) is not dict:
            raise _mismatch("Structs should be encoded as JSON objects, but found", node)
        if unread is not None and not known.issuperset(node):
            unread.add_members(node, known, path)
        get, each = node.get, iter(members)
        try:
            return {name: v if type(v := get(name)) is kind else member(v) for name, kind, member in each}
        except DataError as error:
            raise in_field(error, members, each) from error

    return read


def identity_type(schema: Schema) -> type | None:
    """The Python type whose values need no conversion, which saves a call for most fields of most records."""
    if schema.name in _LOGICAL:
        return None
    return {Type.STRING: str, Type.BOOLEAN: bool, Type.FLOAT64: float}.get(schema.type)


def _member(name: str, schema: Schema, options: ReadOptions) -> Reader:
    read = payload_reader(schema, options._replace(path=joined(options.path, name)))
    if schema.optional or schema.type not in (Type.STRING, Type.BYTES) or schema.name == DECIMAL:
        return read

    def checked(node: Any) -> Any:
        value = read(node)
        if value is None:
            raise DataError(
                f'Invalid value: null used for required field: "{name}", schema type: {schema.type.name}.',
                suggestion="The JSON value does not have the type in the schema.",
            )
        return value

    return checked


def _decimal(schema: Schema, options: ReadOptions) -> Reader:
    scale = _scale(schema)

    def read(node: Any) -> Decimal:
        kind = type(node)
        if kind is Decimal:
            return node if node else node.copy_abs()  # type: ignore[no-any-return]  # Java's has no negative zero
        if kind is int:
            return Decimal(node)
        if kind is VanishedNumber:
            raise DataError("The exponent of a Decimal is out of range.", suggestion="Fix the producer.")
        if kind is float:
            # Only reached for a default that was parsed without exact numbers.
            return Decimal(repr(node))
        if kind is not str:
            raise _mismatch(
                "Invalid type for Decimal, underlying representation should be numeric or bytes but was", node
            )
        if isinstance(scale, DataError):
            raise scale
        return decimal_of_bytes(_decode_base64(node, "for Decimal field"), scale)

    return read


def _scale(schema: Schema) -> int | DataError:
    """The scale, or the error for a record whose value needs it."""
    try:
        return integer_parameter(schema.parameters.get(DECIMAL_SCALE), DECIMAL_SCALE)
    except DataError as error:
        return DataError(
            f"Invalid bytes for Decimal field: {error.message}", code=error.code, suggestion=error.suggestion
        )


def _int32_days(schema: Schema, options: ReadOptions) -> Reader:
    def read(node: Any) -> int:
        if type(node) is not int or not -(1 << 31) <= node < 1 << 31:
            raise _mismatch("Invalid type for Date, underlying representation should be integer but was", node)
        return node

    return read


def _int32_time(schema: Schema, options: ReadOptions) -> Reader:
    def read(node: Any) -> int:
        if type(node) is not int or not -(1 << 31) <= node < 1 << 31:
            raise _mismatch("Invalid type for Time, underlying representation should be integer but was", node)
        return read_time(node)

    return read


def _int64_timestamp(schema: Schema, options: ReadOptions) -> Reader:
    def read(node: Any) -> int:
        if type(node) is not int:
            if type(node) is float and abs(node) >= 2.0**63:
                raise InexactNumberError("an integer beyond 64 bits may have become a double")
            raise _mismatch("Invalid type for Timestamp, underlying representation should be integral but was", node)
        return node if _INT64_MIN <= node <= _INT64_MAX else options.changed(wrapped(node, 64))

    return read


_NODE_TYPES: dict[type, str] = {
    dict: "OBJECT",
    list: "ARRAY",
    str: "STRING",
    bool: "BOOLEAN",
    int: "NUMBER",
    float: "NUMBER",
    Decimal: "NUMBER",
    VanishedNumber: "NUMBER",
    type(None): "NULL",
}


def _mismatch(message: str, node: Any) -> DataError:
    return DataError(
        f"{message} {_NODE_TYPES.get(type(node), 'MISSING')}.",
        suggestion="The payload does not match the schema in the message.",
    )


_PLAIN: dict[Type, Callable[[Schema, ReadOptions], Reader]] = {
    Type.INT8: _integer(8),
    Type.INT16: _integer(16),
    Type.INT32: _integer(32),
    Type.INT64: _integer(64),
    Type.FLOAT32: _float32,
    Type.FLOAT64: _float64,
    Type.BOOLEAN: _boolean,
    Type.STRING: _string,
    Type.BYTES: _bytes,
    Type.ARRAY: _array,
    Type.MAP: _map,
    Type.STRUCT: _struct,
}
_LOGICAL: dict[str, Callable[[Schema, ReadOptions], Reader]] = {
    DECIMAL: _decimal,
    DATE: _int32_days,
    TIME: _int32_time,
    TIMESTAMP: _int64_timestamp,
}
