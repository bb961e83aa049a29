"""ByteArrayConverter: passes bytes through unchanged, for records and for headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.columns import ValueColumns
from airflow_connect.api.config.config_def import ConfigDef
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import OPTIONAL_BYTES, Schema, Type
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import pyarrow as pa


class ByteArrayConverter:
    """org.apache.kafka.connect.converters.ByteArrayConverter. It has no configuration."""

    config_def: ClassVar[ConfigDef] = ConfigDef()
    known_schemas: ClassVar[Sequence[Schema]] = (OPTIONAL_BYTES,)

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Nothing to configure."""

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """The bytes with schema optional BYTES; a tombstone keeps that schema."""
        return SchemaAndValue(OPTIONAL_BYTES, data)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a BYTES value.

        Raises:
            DataError: the schema is not BYTES, or the value is not bytes.
        """
        if schema is not None and schema.type is not Type.BYTES:
            raise DataError(
                f"Invalid schema type for ByteArrayConverter: {schema.type.name}.",
                suggestion="Use a converter that writes this type, such as JsonConverter.",
            )
        if value is None or type(value) is bytes:
            return value
        if isinstance(value, bytearray | memoryview):
            return bytes(value)
        raise DataError(
            f"ByteArrayConverter is not compatible with objects of type {type(value).__name__}.",
            suggestion="Use a converter that writes this type, such as JsonConverter.",
        )

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns]:
        """The unchanged column."""
        return [ValueColumns(OPTIONAL_BYTES, data)]

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`."""
        return self.to_connect(topic, data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)
