"""Kafka Connect's schemas as immutable Python values.

How a value of each type is represented in Python:

| type | Python value |
|---|---|
| INT8, INT16, INT32, INT64 | `int` |
| FLOAT32, FLOAT64 | `float` |
| BOOLEAN | `bool` |
| STRING | `str` |
| BYTES | `bytes` |
| ARRAY | `list` |
| MAP | `dict` |
| STRUCT | `dict`, field name to value, in the order of the schema's fields |
| Decimal (on BYTES) | `decimal.Decimal` whose exponent is minus the schema's `scale` |
| Date (on INT32) | `int`, days since 1970-01-01 |
| Time (on INT32) | `int`, milliseconds since midnight |
| Timestamp (on INT64) | `int`, milliseconds since 1970-01-01T00:00:00Z |

The date and time types keep Connect's serialised integers because Java's range is far wider than `datetime`'s.
Source: org.apache.kafka.connect.data (KIP-26).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from types import MappingProxyType
from typing import Any


class Type(Enum):
    """Connect's schema types; the value is the name that JsonConverter writes."""

    INT8 = "int8"
    INT16 = "int16"
    INT32 = "int32"
    INT64 = "int64"
    FLOAT32 = "float"
    FLOAT64 = "double"
    BOOLEAN = "boolean"
    STRING = "string"
    BYTES = "bytes"
    ARRAY = "array"
    MAP = "map"
    STRUCT = "struct"


DECIMAL = "org.apache.kafka.connect.data.Decimal"
DATE = "org.apache.kafka.connect.data.Date"
TIME = "org.apache.kafka.connect.data.Time"
TIMESTAMP = "org.apache.kafka.connect.data.Timestamp"
DECIMAL_SCALE = "scale"
MAX_SCHEMA_DEPTH = 100
"""Levels of structs, arrays and maps in a schema that comes with data. Java has no such limit.

Functions over schemas call themselves several times for each level, and Python's stack is not deep.
"""

_NO_PARAMETERS: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Field:
    """A named member of a STRUCT schema; `index` is its position, from 0."""

    name: str
    index: int
    schema: Schema


@dataclass(frozen=True, eq=False)
class Schema:
    """Type and metadata of a value; equal when every attribute is equal, as in Java's ConnectSchema.

    Attributes:
        type: the type.
        optional: whether `None` is a valid value.
        name: logical or user-given name, or None.
        version: schema version, or None.
        doc: documentation, or None.
        parameters: user metadata, string to string.
        default: value used if one is missing; None if there is no default.
        fields: members of a STRUCT, else ().
        key_schema: schema of the keys of a MAP, else None.
        value_schema: schema of the elements of an ARRAY or the values of a MAP, else None.
    """

    type: Type
    optional: bool = False
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    parameters: Mapping[str, str] = field(default_factory=lambda: _NO_PARAMETERS)
    default: Any = None
    fields: tuple[Field, ...] = ()
    key_schema: Schema | None = None
    value_schema: Schema | None = None

    @cached_property
    def _identity(self) -> tuple[Any, ...]:
        return (
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            tuple(sorted(self.parameters.items())),
            repr(self.default),
            self.fields,
            self.key_schema,
            self.value_schema,
        )

    @cached_property
    def _hash(self) -> int:
        return hash(self._identity)

    def __eq__(self, other: object) -> bool:
        """Attribute by attribute; identity first, because converters hand out cached schemas."""
        if self is other:
            return True
        return isinstance(other, Schema) and self._hash == other._hash and self._identity == other._identity

    def __hash__(self) -> int:
        """Hash of all attributes, computed once."""
        return self._hash

    @cached_property
    def fields_by_name(self) -> Mapping[str, Field]:
        """Members of a STRUCT by name."""
        return MappingProxyType({f.name: f for f in self.fields})

    def field(self, name: str) -> Field | None:
        """The member named `name`, or None."""
        return self.fields_by_name.get(name)


def struct(
    *members: tuple[str, Schema], name: str | None = None, version: int | None = None, optional: bool = False
) -> Schema:
    """A STRUCT schema from (name, schema) pairs, in order."""
    fields = tuple(Field(n, i, s) for i, (n, s) in enumerate(members))
    return Schema(Type.STRUCT, optional=optional, name=name, version=version, fields=fields)


def array(element: Schema, *, optional: bool = False) -> Schema:
    """An ARRAY schema."""
    return Schema(Type.ARRAY, optional=optional, value_schema=element)


def map_of(key: Schema, value: Schema, *, optional: bool = False) -> Schema:
    """A MAP schema."""
    return Schema(Type.MAP, optional=optional, key_schema=key, value_schema=value)


def decimal(scale: int, *, optional: bool = False) -> Schema:
    """Connect's Decimal: unscaled big-endian two's complement BYTES with a fixed `scale` (digits after the point)."""
    return Schema(Type.BYTES, optional, DECIMAL, 1, parameters=MappingProxyType({DECIMAL_SCALE: str(scale)}))


def date(*, optional: bool = False) -> Schema:
    """Connect's Date: INT32 days since the epoch."""
    return Schema(Type.INT32, optional, DATE, 1)


def time(*, optional: bool = False) -> Schema:
    """Connect's Time: INT32 milliseconds since midnight."""
    return Schema(Type.INT32, optional, TIME, 1)


def timestamp(*, optional: bool = False) -> Schema:
    """Connect's Timestamp: INT64 milliseconds since the epoch, UTC."""
    return Schema(Type.INT64, optional, TIMESTAMP, 1)


INT8, INT16, INT32, INT64 = Schema(Type.INT8), Schema(Type.INT16), Schema(Type.INT32), Schema(Type.INT64)
FLOAT32, FLOAT64 = Schema(Type.FLOAT32), Schema(Type.FLOAT64)
BOOLEAN, STRING, BYTES = Schema(Type.BOOLEAN), Schema(Type.STRING), Schema(Type.BYTES)
OPTIONAL_INT8, OPTIONAL_INT16 = Schema(Type.INT8, True), Schema(Type.INT16, True)
OPTIONAL_INT32, OPTIONAL_INT64 = Schema(Type.INT32, True), Schema(Type.INT64, True)
OPTIONAL_FLOAT32, OPTIONAL_FLOAT64 = Schema(Type.FLOAT32, True), Schema(Type.FLOAT64, True)
OPTIONAL_BOOLEAN, OPTIONAL_STRING = Schema(Type.BOOLEAN, True), Schema(Type.STRING, True)
OPTIONAL_BYTES = Schema(Type.BYTES, True)
