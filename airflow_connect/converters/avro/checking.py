"""Whether bytes are a valid Avro value of a schema: what fastavro reads without an error, and should not.

fastavro reads a negative index of an enum or a union from the end of the list, takes any byte but 0 for true, numbers
of any length, and a block of -2^63 elements for an empty one. Damaged data, or data of another schema, would become
wrong values without an error. Java's decoder refuses these numbers, and reads a boolean of 2 as false. Which of the two
readings is meant is not known, so here such a boolean is an error.
Source: org.apache.avro.io.BinaryDecoder (readInt, readLong, readBoolean, readString, doReadItemCount) and
ResolvingDecoder.readEnum, readIndex.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NoReturn

from airflow_connect.converters.avro.named_types import NamedTypes
from airflow_connect.converters.avro.parsing import AvroType

Check = Callable[[bytes, int], int]
"""Data and the position of a value to the position after it; raises InvalidAvroError or IndexError."""

_MORE = 0x80
_LONG_BYTES, _LAST_OF_LONG = 10, 0x01
_INT_BYTES, _LAST_OF_INT = 5, 0x0F


class InvalidAvroError(ValueError):
    """Bytes that are not an Avro value; the text says what was found where."""


def checker(avro_type: AvroType, named: Iterable[AvroType]) -> Check:
    """A check for values of a schema.

    Args:
        avro_type: as JSON; not recursive.
        named: schemas that it refers to.
    """
    return _Checks(NamedTypes([*named, avro_type])).of(avro_type, "")


def check_boolean(data: bytes, at: int) -> int:
    """A byte that is 0 or 1."""
    if data[at] > 1:
        _fail(at, f"a boolean is {data[at]}. It must be 0 or 1; readers take other numbers for true or for false")
    return at + 1


def read_long(data: bytes, at: int) -> tuple[int, int]:
    """A variable-length, zigzag-coded number of at most 64 bits, and where it ends."""
    byte = data[at]
    if byte < _MORE:
        return (byte >> 1) ^ -(byte & 1), at + 1
    end = _skip_number(data, at, _LONG_BYTES, _LAST_OF_LONG)
    number = 0
    for byte in reversed(data[at:end]):
        number = number << 7 | byte & 0x7F
    return (number >> 1) ^ -(number & 1), end


def read_block_count(data: bytes, at: int) -> tuple[int, int]:
    """The number of elements in a block of an array or a map, and where they begin; 0 is the end."""
    count, start = read_long(data, at)
    if count >= 0:
        return count, start
    if count == -1 << 63:
        _fail(at, f"a block has {count} elements")
    _, start = read_long(data, start)  # the size in bytes
    return -count, start


class _Checks:
    """Builds the check of one schema."""

    def __init__(self, types: NamedTypes) -> None:
        self._types = types
        self._known: dict[str, Check] = {}

    def of(self, avro_type: AvroType, namespace: str) -> Check:
        if isinstance(avro_type, list):
            return _union([self.of(member, namespace) for member in avro_type])
        node = self._types.node(avro_type, namespace)
        attributes = node.attributes
        if node.full_name in self._known:
            return self._known[node.full_name]
        if node.kind == "record":
            made = _record([self.of(field["type"], node.namespace) for field in attributes["fields"]])
        elif node.kind == "array":
            made = _blocks(self.of(attributes["items"], node.namespace), has_keys=False)
        elif node.kind == "map":
            made = _blocks(self.of(attributes["values"], node.namespace), has_keys=True)
        elif node.kind == "fixed":
            made = _fixed(attributes["size"])
        elif node.kind == "enum":
            made = _enum(len(attributes["symbols"]))
        else:
            made = _PRIMITIVES[node.kind]
        if node.full_name:
            self._known[node.full_name] = made
        return made


def _record(fields: list[Check]) -> Check:
    def check(data: bytes, at: int) -> int:
        for of_field in fields:
            at = of_field(data, at)
        return at

    return check


def _union(branches: list[Check]) -> Check:
    count = len(branches)

    def check(data: bytes, at: int) -> int:
        index, start = _read_int(data, at)
        if not 0 <= index < count:
            _fail(at, f"the branch of a union is {index}. It must be 0 to {count - 1}")
        return branches[index](data, start)

    return check


def _enum(count: int) -> Check:
    def check(data: bytes, at: int) -> int:
        index, end = _read_int(data, at)
        if not 0 <= index < count:
            _fail(at, f"the symbol of an enum is {index}. It must be 0 to {count - 1}")
        return end

    return check


def _blocks(item: Check, *, has_keys: bool) -> Check:
    def check(data: bytes, at: int) -> int:
        while True:
            count, at = read_block_count(data, at)
            if not count:
                return at
            for _ in range(count):
                at = item(data, _check_bytes(data, at) if has_keys else at)

    return check


def _fixed(size: int) -> Check:
    def check(data: bytes, at: int) -> int:
        if size > len(data) - at:
            raise IndexError
        return at + size

    return check


def _check_null(_data: bytes, at: int) -> int:
    return at


def _check_bytes(data: bytes, at: int) -> int:
    size, start = read_long(data, at)
    if size < 0:
        _fail(at, f"the length of a string or of bytes is {size}")
    if size > len(data) - start:
        raise IndexError
    return start + size


def _check_long(data: bytes, at: int) -> int:
    return at + 1 if data[at] < _MORE else _skip_number(data, at, _LONG_BYTES, _LAST_OF_LONG)


def _check_int(data: bytes, at: int) -> int:
    return at + 1 if data[at] < _MORE else _skip_number(data, at, _INT_BYTES, _LAST_OF_INT)


def _read_int(data: bytes, at: int) -> tuple[int, int]:
    _check_int(data, at)
    return read_long(data, at)


def _skip_number(data: bytes, at: int, most: int, last: int) -> int:
    """Where a number ends that has at most `most` bytes, the last of which is at most `last`."""
    end = at + 1
    while data[end - 1] >= _MORE and end < at + most:
        end += 1
    if data[end - 1] >= _MORE or (end == at + most and data[end - 1] > last):
        _fail(at, f"a number is longer than the {64 if most == _LONG_BYTES else 32} bits of its type")
    return end


def _fail(at: int, what: str) -> NoReturn:
    raise InvalidAvroError(f"at byte {at} {what}")


_PRIMITIVES: dict[str, Check] = {
    "null": _check_null,
    "boolean": check_boolean,
    "int": _check_int,
    "long": _check_long,
    "float": _fixed(4),
    "double": _fixed(8),
    "string": _check_bytes,
    "bytes": _check_bytes,
}
