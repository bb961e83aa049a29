"""Schemaless values in Avro: the record `Anything`, which holds any value by type.

Source: io.confluent.connect.avro.AvroData.ANYTHING_SCHEMA.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

from airflow_connect.converters.avro.checking import check_boolean, read_block_count, read_long
from airflow_connect.converters.avro.names import ANYTHING, MAP_ENTRY, NAMESPACE
from airflow_connect.errors import DataError


def _optional(name: str, avro_type: Any) -> dict[str, Any]:
    return {"name": name, "type": ["null", avro_type], "default": None}


ANYTHING_SCHEMA: dict[str, Any] = {
    "type": "record",
    "name": ANYTHING.rpartition(".")[2],
    "namespace": NAMESPACE,
    "fields": [
        *(_optional(name, name) for name in ("boolean", "bytes", "double", "float", "int", "long", "string")),
        _optional("array", {"type": "array", "items": "Anything"}),
        _optional(
            "map",
            {
                "type": "array",
                "items": {
                    "type": "record",
                    "name": MAP_ENTRY,
                    "fields": [{"name": "key", "type": "Anything"}, {"name": "value", "type": "Anything"}],
                },
            },
        ),
    ],
}


def anything_of(value: Any) -> dict[str, Any]:
    """A schemaless value as a value of `ANYTHING_SCHEMA`; integers are longs, as those of JSON are in Connect.

    Raises:
        DataError: a type that Connect does not have without a schema.
    """
    if value is None:
        return {}
    if isinstance(value, list | tuple):
        return {"array": [anything_of(item) for item in value]}
    if isinstance(value, dict):
        return {"map": [{"key": anything_of(key), "value": anything_of(item)} for key, item in value.items()]}
    for kind, name in ((bool, "boolean"), (bytes, "bytes"), (float, "double"), (int, "long"), (str, "string")):
        if isinstance(value, kind):
            return {name: value}
    raise DataError(
        f"A schemaless value of the type {type(value).__name__} cannot be represented in Avro.",
        code="data.mismatch",
        suggestion="Give the record a schema, or convert the value to text or a number.",
    )


def read_anything(data: bytes, at: int) -> tuple[Any, int]:
    """A value of `ANYTHING_SCHEMA`, and where it ends.

    This is the only recursive schema. fastavro would process deep nesting on C's stack, and a message of a few
    kilobytes could crash the process. Here the depth is limited in Python.

    Raises:
        EOFError, IndexError, ValueError, RecursionError: not such a value.
    """
    found: Any = None
    for read in _MEMBERS:
        branch, at = read_long(data, at)
        if branch == 1:
            value, at = read(data, at)
            # The first member that is set is used.
            found = value if found is None else found
        elif branch:
            raise IndexError("a union of two types has no branch of this number")
    return found, at


def _read_boolean(data: bytes, at: int) -> tuple[bool, int]:
    end = check_boolean(data, at)
    return data[at] == 1, end


def _read_bytes(data: bytes, at: int) -> tuple[bytes, int]:
    size, at = read_long(data, at)
    if not 0 <= size <= len(data) - at:
        raise EOFError
    return data[at : at + size], at + size


def _read_string(data: bytes, at: int) -> tuple[str, int]:
    found, at = _read_bytes(data, at)
    return found.decode("utf-8", "replace"), at


def _read_packed(form: struct.Struct) -> Callable[[bytes, int], tuple[float, int]]:
    def read(data: bytes, at: int) -> tuple[float, int]:
        if len(data) - at < form.size:
            raise EOFError
        return form.unpack_from(data, at)[0], at + form.size

    return read


def _read_array(data: bytes, at: int) -> tuple[list[Any], int]:
    return _read_blocks(data, at, read_anything)


def _read_map(data: bytes, at: int) -> tuple[dict[Any, Any], int]:
    entries, at = _read_blocks(data, at, _read_entry)
    return dict(entries), at


def _read_entry(data: bytes, at: int) -> tuple[tuple[Any, Any], int]:
    key, at = read_anything(data, at)
    value, at = read_anything(data, at)
    if isinstance(key, dict | list):
        raise ValueError("a map has a key that is itself a map or an array")
    return (key, value), at


def _read_blocks(data: bytes, at: int, read_item: Callable[[bytes, int], tuple[Any, int]]) -> tuple[list[Any], int]:
    made: list[Any] = []
    while True:
        count, at = read_block_count(data, at)
        if not count:
            return made, at
        for _ in range(count):
            item, at = read_item(data, at)
            made.append(item)


_MEMBERS: tuple[Callable[[bytes, int], tuple[Any, int]], ...] = (
    _read_boolean,
    _read_bytes,
    _read_packed(struct.Struct("<d")),
    _read_packed(struct.Struct("<f")),
    read_long,
    read_long,
    _read_string,
    _read_array,
    _read_map,
)
"""In the order of the fields."""
