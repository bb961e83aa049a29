"""Converters of Kafka's fixed-width serializers: one big-endian number, or one byte for a boolean, per message.

Reading yields optional schemas; no bytes at all are None. Writing takes exactly the converter's type: Connect never
widens a number here. Source: org.apache.kafka.connect.converters (KIP-305), recorded against Kafka 4.3.1.
"""

from __future__ import annotations

import struct
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import (
    OPTIONAL_BOOLEAN,
    OPTIONAL_FLOAT32,
    OPTIONAL_FLOAT64,
    OPTIONAL_INT16,
    OPTIONAL_INT32,
    OPTIONAL_INT64,
    Schema,
    Type,
)
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa

_OTHER_CONVERTER = "Use the converter of the value's own type, or one that writes every type, such as JsonConverter."


class _FixedWidthConverter(ABC):
    """The common part of numbers and booleans. They have no configuration.

    Attributes:
        schema: of the values that are read.
        width: bytes of a message.
        label: Connect's word for the type, in messages.
    """

    schema: ClassVar[Schema]
    width: ClassVar[int]
    label: ClassVar[str]

    config_def: ClassVar[ConfigDef] = ConfigDef()

    @property
    def known_schemas(self) -> Sequence[Schema]:
        """See `ColumnarConverter`."""
        return (self.schema,)

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:  # noqa: B027 (there is nothing to do)
        """Nothing to configure."""

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The value with the optional schema of the type; a tombstone keeps that schema.

        Raises:
            DataError: the message is longer or shorter than the type, or is not one of its values.
        """
        if data is None:
            return SchemaAndValue(self.schema, None)
        if len(data) != self.width:
            raise DataError(
                f"Failed to deserialize {self.label}: the message has {len(data)} bytes and not {self.width}.",
                suggestion="Use the converter that fits the contents of the topic.",
            )
        return SchemaAndValue(self.schema, self._read(data))

    @abstractmethod
    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a value; None stays None.

        Raises:
            DataError: the value is not of the converter's type.
        """

    @abstractmethod
    def _read(self, data: bytes) -> Any:
        """The value of `width` bytes."""

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`."""
        return self.to_connect(topic, data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)


class _NumberConverter(_FixedWidthConverter):
    """One number: `layout` is its format in `struct`, `numpy_type` the same for numpy, both big-endian."""

    layout: ClassVar[struct.Struct]
    numpy_type: ClassVar[str]

    def _read(self, data: bytes) -> Any:
        return self.layout.unpack(data)[0]

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The big-endian bytes of a number; None stays None, whatever its schema.

        A schemaless number of Python has no width: it is written when it fits without loss.

        Raises:
            DataError: the value is not of the converter's type.
        """
        if value is None:
            return None
        # A date or time is its integer here; Connect, which holds a java.util.Date then, refuses it.
        of_type = schema is None or schema.type is self.schema.type
        python_type = float if self.schema.type in (Type.FLOAT32, Type.FLOAT64) else int
        if of_type and type(value) is python_type:
            try:
                data = self.layout.pack(value)
            except (struct.error, OverflowError):
                data = b""
            if data and (schema is not None or value != value or self._read(data) == value):
                return data
        found = type(value).__name__ if schema is None else schema.type.name
        raise DataError(f"Failed to serialize to {self.label} (was {found}).", suggestion=_OTHER_CONVERTER)

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """All messages as one column of the number's type; None when one has another width."""
        raw = _fixed_width_bytes(data, self.width)
        if raw is None:
            return None
        import numpy as np
        import pyarrow as pa

        numbers = np.frombuffer(raw, self.numpy_type)
        return [ValueColumns(self.schema, pa.array(numbers.astype(numbers.dtype.newbyteorder("="))))]


class ShortConverter(_NumberConverter):
    """org.apache.kafka.connect.converters.ShortConverter: INT16 in 2 bytes."""

    schema, width, label = OPTIONAL_INT16, 2, "short"
    layout, numpy_type = struct.Struct(">h"), ">i2"


class IntegerConverter(_NumberConverter):
    """org.apache.kafka.connect.converters.IntegerConverter: INT32 in 4 bytes."""

    schema, width, label = OPTIONAL_INT32, 4, "integer"
    layout, numpy_type = struct.Struct(">i"), ">i4"


class LongConverter(_NumberConverter):
    """org.apache.kafka.connect.converters.LongConverter: INT64 in 8 bytes."""

    schema, width, label = OPTIONAL_INT64, 8, "long"
    layout, numpy_type = struct.Struct(">q"), ">i8"


class FloatConverter(_NumberConverter):
    """org.apache.kafka.connect.converters.FloatConverter: FLOAT32 in 4 bytes (IEEE 754)."""

    schema, width, label = OPTIONAL_FLOAT32, 4, "float"
    layout, numpy_type = struct.Struct(">f"), ">f4"


class DoubleConverter(_NumberConverter):
    """org.apache.kafka.connect.converters.DoubleConverter: FLOAT64 in 8 bytes (IEEE 754)."""

    schema, width, label = OPTIONAL_FLOAT64, 8, "double"
    layout, numpy_type = struct.Struct(">d"), ">f8"


class BooleanConverter(_FixedWidthConverter):
    """org.apache.kafka.connect.converters.BooleanConverter: BOOLEAN in one byte, 0 or 1 (KIP-1044)."""

    schema, width, label = OPTIONAL_BOOLEAN, 1, "boolean"

    def _read(self, data: bytes) -> bool:
        if data[0] > 1:
            raise DataError(
                f"Failed to deserialize boolean: the byte is {data[0]} and neither 0 nor 1.",
                suggestion="Use the converter that fits the contents of the topic.",
            )
        return data[0] == 1

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """One byte; None stays None, but only under a BOOLEAN schema or without one.

        Raises:
            DataError: the schema is not BOOLEAN, or the value is not a boolean.
        """
        if schema is not None and schema.type is not Type.BOOLEAN:
            raise DataError(
                f"Invalid schema type for BooleanConverter: {schema.type.name}.", suggestion=_OTHER_CONVERTER
            )
        if value is None:
            return None
        if type(value) is not bool:
            raise DataError(
                f"BooleanConverter is not compatible with objects of type {type(value).__name__}.",
                suggestion=_OTHER_CONVERTER,
            )
        return b"\x01" if value else b"\x00"

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """All messages as one column of booleans; None when one is not a byte of 0 or 1."""
        raw = _fixed_width_bytes(data, self.width)
        if raw is None:
            return None
        import numpy as np
        import pyarrow as pa

        flags = np.frombuffer(raw, np.uint8)
        if flags.size and np.max(flags) > 1:
            return None
        return [ValueColumns(self.schema, pa.array(flags.astype(np.bool_)))]


def _fixed_width_bytes(data: pa.BinaryArray, width: int) -> memoryview | None:
    """The bytes of all messages side by side; None unless each is `width` bytes long."""
    import numpy as np

    _, offsets_buffer, bytes_buffer = data.buffers()
    if len(data) == 0 or offsets_buffer is None:
        return memoryview(b"")
    offsets = np.frombuffer(memoryview(offsets_buffer), np.int32)[data.offset : data.offset + len(data) + 1]
    # Equal distances, not only an equal sum: two wrong messages may make up for one another.
    if bytes_buffer is None or not (np.diff(offsets) == width).all():
        return None
    return memoryview(bytes_buffer)[int(offsets[0]) : int(offsets[-1])]
