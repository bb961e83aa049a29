"""Java class files, read as far as it takes to know what a class is: its name, its super types, its constructor.

Source: The Java Virtual Machine Specification, chapter 4.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass

PUBLIC, INTERFACE, ABSTRACT, MODULE = 0x0001, 0x0200, 0x0400, 0x8000
_MAGIC = 0xCAFEBABE
_UTF8, _LONG, _DOUBLE, _CLASS = 1, 5, 6, 7
_SIZES = {3: 5, 4: 5, 5: 9, 6: 9, 7: 3, 8: 3, 9: 5, 10: 5, 11: 5, 12: 5, 15: 4, 16: 3, 17: 5, 18: 5, 19: 3, 20: 3}
"""Bytes of a constant by its tag, the tag included; a text has 3 and its length."""
_SIZE_OF_TAG = tuple(_SIZES.get(tag, 0) for tag in range(256))
_RUNTIME = re.compile(rb"org([/.])apache\1kafka\1connect\1runtime\1[\w/.$]+")


class BrokenClassError(Exception):
    """These bytes are no class file, or only a part of one."""


@dataclass(frozen=True, slots=True)
class ClassHeader:
    """What a class is.

    Attributes:
        name: with slashes: `org/acme/Sink$Key`.
        super_types: super class and interfaces, with slashes.
        is_usable: whether another package can create an object, if the class has a constructor for it: the class is
            public, and neither abstract nor an interface.
    """

    name: str
    super_types: tuple[str, ...]
    is_usable: bool


def read_header(data: bytes) -> ClassHeader:
    """Read a class up to its fields.

    Raises:
        BrokenClassError: it is not a class file.
    """
    try:
        texts, classes, end = _constants(data)
        access, this, parent, count = struct.unpack_from(">HHHH", data, end)
        interfaces = struct.unpack_from(f">{count}H", data, end + 8)

        def named(index: int) -> str:
            start, length = texts[classes[index]]
            return data[start : start + length].decode("utf-8", "surrogatepass")

        super_types = tuple(named(index) for index in (parent, *interfaces) if index)
        is_usable = bool(access & PUBLIC) and not access & (INTERFACE | ABSTRACT | MODULE)
        return ClassHeader(named(this), super_types, is_usable)
    except (struct.error, KeyError, IndexError, UnicodeDecodeError) as error:
        raise BrokenClassError("it is damaged") from error


def has_public_constructor(data: bytes) -> bool:
    """Whether a class has a public constructor without parameters, by which Kafka Connect creates plugins.

    Raises:
        BrokenClassError: it is not a class file.
    """
    try:
        texts, _, end = _constants(data)
        (interfaces,) = struct.unpack_from(">H", data, end + 6)
        fields_end, _ = _members(data, end + 8 + 2 * interfaces)
        _, methods = _members(data, fields_end)

        def text(index: int) -> bytes:
            start, length = texts[index]
            return data[start : start + length]

        return any(
            access & PUBLIC and text(name) == b"<init>" and text(kind) == b"()V" for access, name, kind in methods
        )
    except (struct.error, KeyError, IndexError) as error:
        raise BrokenClassError("it is damaged") from error


def runtime_names(data: bytes) -> tuple[str, ...]:
    """Names in `org.apache.kafka.connect.runtime` that a class uses, sorted, with dots."""
    if b"kafka/connect/runtime/" not in data and b"kafka.connect.runtime." not in data:
        return ()
    found = {match[0].decode("ascii").replace("/", ".").rstrip(".") for match in _RUNTIME.finditer(data)}
    return tuple(sorted(found))


def _constants(data: bytes) -> tuple[dict[int, tuple[int, int]], dict[int, int], int]:
    """Place and length of each text, text of each class name, and where the constants end."""
    magic, _, count = struct.unpack_from(">IIH", data, 0)
    if magic != _MAGIC:
        raise BrokenClassError("it does not begin as a class file")
    sizes = _SIZE_OF_TAG
    texts: dict[int, tuple[int, int]] = {}
    classes: dict[int, int] = {}
    at, index = 10, 1
    while index < count:
        tag = data[at]
        if tag == _UTF8:
            length = (data[at + 1] << 8) | data[at + 2]
            texts[index] = (at + 3, length)
            at += 3 + length
        else:
            if tag == _CLASS:
                classes[index] = (data[at + 1] << 8) | data[at + 2]
            elif tag in (_LONG, _DOUBLE):
                index += 1
            size = sizes[tag]
            if not size:
                raise BrokenClassError(f"it has a constant of the unknown kind {tag}")
            at += size
        index += 1
    return texts, classes, at


def _members(data: bytes, at: int) -> tuple[int, list[tuple[int, int, int]]]:
    """Where a list of fields or methods ends, and access flags, name and type of each."""
    (count,) = struct.unpack_from(">H", data, at)
    at += 2
    found = []
    for _ in range(count):
        access, name, kind, attributes = struct.unpack_from(">HHHH", data, at)
        found.append((access, name, kind))
        at += 8
        for _ in range(attributes):
            (length,) = struct.unpack_from(">I", data, at + 2)
            at += 6 + length
    return at, found
