"""Connect's values as MessagePack, by their schema.

A value with a schema holds only what the schema does not say: a struct is an array, a map is an array of keys and
values in turn, a decimal is its unscaled bytes, dates and times are their integers. A null in a field stays null, also
if the field has a default. Without a schema, values say what they are. An integer becomes a Long in Java, a float a
Double, as JsonConverter does it. `helper/src/org/airflowconnect/host/PackedValues.java` is the other side.
"""

from __future__ import annotations

import datetime
import struct
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Any

import msgspec

from airflow_connect.api.schema import DECIMAL, DECIMAL_SCALE, Schema, Type
from airflow_connect.converters.java_text import epoch_ms
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import decimal_of_bytes, integer_parameter, unscaled, unscaled_bytes

Change = Callable[[Any], Any]
_DATE, _DECIMAL = 1, 2
"""Extensions for values without a schema: int64 milliseconds; int32 scale and unscaled bytes."""
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
_LONG = 1 << 63
_MOST_LEVELS = 200
_CLASSES: dict[Type, tuple[type[Any], ...]] = {
    Type.FLOAT32: (float, int),
    Type.FLOAT64: (float, int),
    Type.BOOLEAN: (bool,),
    Type.STRING: (str,),
    Type.BYTES: (bytes, bytearray, memoryview),
}
encode = msgspec.msgpack.Encoder().encode
"""MessagePack of a tree."""


def to_tree(schema: Schema | None, value: Any) -> Any:
    """The value as lists, numbers, text and bytes, for MessagePack.

    Raises:
        DataError: it does not fit the schema, or has no form in Java.
    """
    return _without_schema(value) if schema is None else _to_pack(schema)(value)


def from_tree(schema: Schema | None, tree: Any) -> Any:
    """The value of such a tree.

    Raises:
        DataError: Python cannot hold it: a key of a map that is a list, for example.
    """
    return tree if schema is None else _from_pack(schema)(tree)


def decode(data: bytes | memoryview) -> Any:
    """The tree of MessagePack from the host.

    Raises:
        DataError: Python cannot hold it: a date before the year 1, for example.
    """
    try:
        return msgspec.msgpack.decode(data, ext_hook=_extension)
    except (TypeError, OverflowError) as error:
        raise _no_form(error) from error


# --- with a schema: to Java -------------------------------------------------------------------------------------------


@lru_cache(maxsize=10_000)
def _to_pack(schema: Schema) -> Change:
    present = _PARTS_TO_PACK.get(schema.type, _plain_to_pack)(schema)

    def change(value: Any) -> Any:
        if value is not None:
            return present(value)
        if schema.optional or schema.default is not None:
            return None
        raise _mismatch(schema, "null")

    return change


def _plain_to_pack(schema: Schema) -> Change:
    if schema.name == DECIMAL and schema.type is Type.BYTES:
        return _decimal_to_pack(schema)
    if schema.type in _BITS:
        half = 1 << (_BITS[schema.type] - 1)

        def integer(value: Any) -> Any:
            if type(value) is not int or not -half <= value < half:
                raise _mismatch(schema, f"{value!r:.40}")
            return value

        return integer
    accepted = _CLASSES[schema.type]

    def plain(value: Any) -> Any:
        if not isinstance(value, accepted) or (type(value) is bool and bool not in accepted):
            raise _mismatch(schema, f"a {type(value).__name__}")
        return float(value) if accepted[0] is float else value

    return plain


def _decimal_to_pack(schema: Schema) -> Change:
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))

    def decimal(value: Any) -> bytes:
        if not isinstance(value, Decimal) or not value.is_finite():
            raise _mismatch(schema, f"{value!r:.40}")
        number, found = unscaled(value)
        if found != scale:
            raise _mismatch(schema, f"a number of scale {found}, not {scale}")
        return unscaled_bytes(number)

    return decimal


def _struct_to_pack(schema: Schema) -> Change:
    members = [(field.name, _to_pack(field.schema)) for field in schema.fields]
    names = frozenset(name for name, _ in members)

    def struct_of(value: Any) -> list[Any]:
        if not isinstance(value, dict) or not value.keys() <= names:
            raise _mismatch(schema, f"a {type(value).__name__}, or it has other fields")
        get = value.get
        return [change(get(name)) for name, change in members]

    return struct_of


def _array_to_pack(schema: Schema) -> Change:
    assert schema.value_schema is not None
    element = _to_pack(schema.value_schema)

    def array(value: Any) -> list[Any]:
        if not isinstance(value, list | tuple):
            raise _mismatch(schema, f"a {type(value).__name__}")
        return [element(each) for each in value]

    return array


def _map_to_pack(schema: Schema) -> Change:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    of_key, of_value = _to_pack(schema.key_schema), _to_pack(schema.value_schema)

    def entries(value: Any) -> list[Any]:
        if not isinstance(value, dict):
            raise _mismatch(schema, f"a {type(value).__name__}")
        return [part for key, each in value.items() for part in (of_key(key), of_value(each))]

    return entries


_PARTS_TO_PACK: dict[Type, Callable[[Schema], Change]] = {
    Type.STRUCT: _struct_to_pack,
    Type.ARRAY: _array_to_pack,
    Type.MAP: _map_to_pack,
}


# --- with a schema: from Java -----------------------------------------------------------------------------------------


@lru_cache(maxsize=10_000)
def _from_pack(schema: Schema) -> Change:
    present = _PARTS_FROM_PACK.get(schema.type, _plain_from_pack)(schema)
    if present is _same:
        return _same
    return lambda value: None if value is None else present(value)


def _same(value: Any) -> Any:
    return value


def _plain_from_pack(schema: Schema) -> Change:
    if schema.name != DECIMAL or schema.type is not Type.BYTES:
        return _same
    scale = integer_parameter(schema.parameters.get(DECIMAL_SCALE, "0"))
    return lambda value: decimal_of_bytes(value, scale)


def _struct_from_pack(schema: Schema) -> Change:
    names = tuple(field.name for field in schema.fields)
    changes = [_from_pack(field.schema) for field in schema.fields]
    if all(change is _same for change in changes):
        return lambda values: dict(zip(names, values, strict=True))
    members = list(zip(names, changes, strict=True))
    return lambda values: {name: change(value) for (name, change), value in zip(members, values, strict=True)}


def _array_from_pack(schema: Schema) -> Change:
    assert schema.value_schema is not None
    element = _from_pack(schema.value_schema)
    return _same if element is _same else lambda values: [element(value) for value in values]


def _map_from_pack(schema: Schema) -> Change:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    of_key, of_value = _from_pack(schema.key_schema), _from_pack(schema.value_schema)

    def entries(values: list[Any]) -> dict[Any, Any]:
        try:
            return {of_key(key): of_value(value) for key, value in zip(values[::2], values[1::2], strict=True)}
        except TypeError as error:
            raise _no_form(error) from error

    return entries


_PARTS_FROM_PACK: dict[Type, Callable[[Schema], Change]] = {
    Type.STRUCT: _struct_from_pack,
    Type.ARRAY: _array_from_pack,
    Type.MAP: _map_from_pack,
}


# --- without a schema -------------------------------------------------------------------------------------------------


def _without_schema(value: Any, level: int = 1) -> Any:
    kind = type(value)
    if value is None or kind is str or kind is float or kind is bool or kind is bytes:
        return value
    if level > _MOST_LEVELS:
        raise DataError(f"A value has more than {_MOST_LEVELS} levels.", suggestion="Flatten it in a transformation.")
    if kind is int:
        if -_LONG <= value < _LONG:
            return value
        raise DataError(f"The number {value} does not fit Java's long.", suggestion="Pass such numbers as text.")
    if isinstance(value, dict):
        return {_key_without_schema(key): _without_schema(each, level + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_without_schema(each, level + 1) for each in value]
    if isinstance(value, datetime.datetime):
        return msgspec.msgpack.Ext(_DATE, struct.pack(">q", epoch_ms(value)))
    if isinstance(value, Decimal) and value.is_finite():
        number, scale = unscaled(value)
        return msgspec.msgpack.Ext(_DECIMAL, struct.pack(">i", scale) + unscaled_bytes(number))
    if isinstance(value, bytearray | memoryview):
        return bytes(value)
    raise DataError(
        f"A value without a schema is a {kind.__name__}, which has no form in Java.",
        suggestion="Change it in a transformation before it gets there.",
    )


def _key_without_schema(key: Any) -> Any:
    if type(key) is str:
        return key
    tree = _without_schema(key)
    return tuple(tree) if isinstance(tree, list) else tree


def _extension(code: int, data: memoryview) -> Any:
    if code == _DATE:
        (instant,) = struct.unpack(">q", data)
        return _EPOCH + datetime.timedelta(milliseconds=instant)
    assert code == _DECIMAL, code
    (scale,) = struct.unpack_from(">i", data)
    return decimal_of_bytes(data[4:], scale)


def _no_form(error: Exception) -> DataError:
    return DataError(
        f"A value from Java has no form in Python: {error}.",
        suggestion="Change it in a transformation before it gets here.",
    )


def _mismatch(schema: Schema, found: str) -> DataError:
    name = f" {schema.name}" if schema.name else ""
    return DataError(
        f"The schema is {schema.type.name}{name}{', optional' if schema.optional else ''}, and the value is {found}.",
        suggestion="Correct the stage of the chain that comes before the Java class.",
    )
