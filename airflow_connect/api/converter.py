"""The contract of a converter: Kafka's bytes to a schema and a value, and back.

Values are represented as described in `airflow_connect.api.schema`: structs are dicts, dates and times are integers,
a Decimal is a `decimal.Decimal`. Source: org.apache.kafka.connect.storage.Converter and HeaderConverter
(KIP-26, KIP-145).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from airflow_connect.api.schema import Schema
from airflow_connect.errors import ConfigError

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns


class SchemaAndValue(NamedTuple):
    """A converted value; `schema` None means schemaless, `(None, None)` is a tombstone."""

    schema: Schema | None
    value: Any


NULL = SchemaAndValue(None, None)


class Converter(Protocol):
    """Converts keys or values (`key.converter`, `value.converter`)."""

    def configure(self, config: Mapping[str, str], is_key: bool) -> None:
        """Set the converter's own keys, without their `value.converter.` prefix.

        Raises:
            ConfigError: a key has a value that the converter does not accept.
        """

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """Bytes of a record to schema and value.

        Raises:
            DataError: the converter cannot read the bytes.
        """

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Schema and value to bytes of a record; None is a tombstone.

        Raises:
            DataError: the value does not fit the schema, or the converter cannot write it.
        """


@runtime_checkable
class ColumnarConverter(Protocol):
    """Optional methods of a converter for the columnar path. Without them records are converted one by one.

    A converter that supports columns only in some configurations has an attribute `has_columns` (bool), read after
    `configure`; the same applies to transformations and predicates.

    Optional attributes: `known_schemas`, a sequence with the schema that all values have (None: schemaless), empty if
    each message or a registry says it; `refused_columns`, why the last batch has none, if it is because of its schema.
    """

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Convert many messages at once.

        Args:
            topic: of all messages.
            data: binary[n] without nulls.

        Returns:
            Consecutive pieces that cover all n messages in order, one per run of equal schemas; or None if the batch is
            not vectorizable (a message is broken, or needs a rule without a columnar form). It never raises DataError:
                after None the caller converts record by record, where every error is found and reported.
        """


@runtime_checkable
class ColumnarWritingConverter(Protocol):
    """Optional methods of a converter that keep batches of a source in columns.

    Without them records are converted one by one.
    """

    def from_columns(self, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
        """Convert many values at once.

        Args:
            topic: of all messages.
            schema: of all values; None is schemaless.
            values: in the representation of airflow_connect.api.columns.

        Returns:
            string[n] or binary[n], byte for byte as from `from_connect`, null for a tombstone; or None if the batch is
            not vectorizable. It never raises DataError: after None the caller converts record by record.
        """


class HeaderConverter(Protocol):
    """Converts header values (`header.converter`)."""

    def configure(self, config: Mapping[str, str]) -> None:
        """Set the converter's own keys, without their `header.converter.` prefix."""

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """Bytes of the header `name` to schema and value."""

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """Schema and value of the header `name` to bytes."""


def boolean_setting(config: Mapping[str, str], key: str, default: bool) -> bool:
    """A boolean key as ConfigDef reads it: `true` or `false`, in any case, ignoring surrounding blanks.

    Raises:
        ConfigError: anything else.
    """
    text = str(config.get(key, default)).strip().lower()
    if text not in ("true", "false"):
        raise ConfigError(
            f"Invalid value {text} for configuration {key}: Expected value to be either true or false.",
            suggestion=f"Set {key} to true or false.",
            config_path=key,
        )
    return text == "true"
