"""What the Avro, JSON Schema and Protobuf converters share: prefix and schema of a message.

Readers and writers are compiled once per schema; each record then needs only a look-up by the bytes of its prefix.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.converter import NULL, SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.registry.client import SchemaRegistryClient, SchemaText
from airflow_connect.registry.schema_ids import SchemaIds
from airflow_connect.registry.settings import WritingSettings
from airflow_connect.registry.wire_format import read_schema_id

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.registry.converters.id_runs import RunReader

CACHE_SIZE = "schemas.cache.config"
MessageReader = Callable[[bytes], SchemaAndValue]
MessageWriter = Callable[[Any], bytes | None]
ColumnWriter = Callable[[Any], Any]
"""Arrow array of a schema to binary array of messages; None if a value is not vectorizable."""


class RegistryConverter(ABC):
    """A converter whose messages begin with the id of a registered schema.

    Attributes:
        config_def: all keys, without `key.converter.` or `value.converter.`.
        kind: schema type of the registry.
        refused_columns: why the last batch of messages has no columns, if it is because of its schema; else "".
    """

    config_def: ClassVar[ConfigDef]
    kind: ClassVar[str]

    _client: SchemaRegistryClient
    _rules: WritingSettings
    _ids: SchemaIds

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take the keys of `config_def`. Sends no request before the first record.

        Raises:
            ConfigError: a key is missing or wrong.
        """
        parsed = self.config_def.parse(config)
        self._configure(parsed)
        self._client = SchemaRegistryClient(parsed, config)
        self._rules = WritingSettings(parsed, is_key)
        self._part = "key" if is_key else "value"
        self._ids = SchemaIds(self._client, self._rules, self._find_mismatch)
        self._cache_size = max(1, parsed[CACHE_SIZE])
        self._readers: dict[tuple[str, int], MessageReader] = {}
        self.refused_columns = ""
        self._writers: dict[tuple[str, Schema], MessageWriter] = {}
        self._column_writers: dict[tuple[str, Schema], ColumnWriter | None] = {}

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """One message to schema and value; None is a tombstone, (None, None).

        Raises:
            DataError: not the registry's wire format, an unknown id, or data that its schema does not describe.
        """
        if data is None:
            return NULL
        key = (topic, read_schema_id(data))
        reader = self._readers.get(key)
        if reader is None:
            reader = self._reader(*key)
            self._keep(self._readers, key, reader)
        return reader(data)

    def _reader(self, topic: str, schema_id: int) -> MessageReader:
        registered = self._registered(schema_id)
        try:
            return self._open_reader(topic, schema_id, registered)
        except DataError as error:
            # Every message with this schema fails in the same way; the registry is not queried again for each of them.
            return refusing(error)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Schema and value to a message, whose schema is registered or looked up first.

        Raises:
            DataError: the value has no schema or does not fit it, or the registry refuses the schema.
        """
        if schema is None:
            if value is None:
                return None
            raise DataError(
                f"{type(self).__name__} cannot write a value without a schema.",
                suggestion="Use JsonConverter with schemas.enable=false, or give the value a schema.",
            )
        key = (topic, schema)
        writer = self._writers.get(key)
        if writer is None:
            writer = self._open_writer(topic, schema)
            self._keep(self._writers, key, writer)
        return writer(value)

    def _read_columns(self, topic: str, data: Any) -> list[ValueColumns] | None:
        """Many messages at once; see `ColumnarConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        from airflow_connect.registry.converters.id_runs import columns_by_id

        self.refused_columns = ""

        def reader_of(schema_id: int) -> RunReader | None:
            found = self._run_reader(topic, schema_id)
            if found is None:
                self._note_without_columns(schema_id)
            return found

        return columns_by_id(data, reader_of)

    def _note_without_columns(self, schema_id: int) -> None:
        self.refused_columns = f"schema {schema_id} has types that are not read in columns"

    def _written_columns(self, topic: str, schema: Schema | None, values: Any) -> pa.Array[Any] | None:
        """The messages of many values, or None; see `ColumnarWritingConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        if schema is None:
            return None
        key = (topic, schema)
        if key not in self._column_writers:
            try:
                self._keep(self._column_writers, key, self._column_writer(topic, schema))
            except DataError:
                return None  # The reference path requests it again, and reports the error for each value.
        write = self._column_writers[key]
        written: pa.Array[Any] | None = None if write is None else write(values)
        return written

    def _keep(self, cache: dict[Any, Any], key: Any, value: Any) -> None:
        while len(cache) >= self._cache_size:
            del cache[next(iter(cache))]
        cache[key] = value

    def _registered(self, schema_id: int) -> SchemaText:
        """The schema of an id, of this converter's kind."""
        found = self._client.schema(schema_id)
        if found.kind == self.kind:
            return found
        raise SchemaError(
            f"The schema {schema_id} is of the kind {found.kind}, which {type(self).__name__} does not read.",
            code="data.schema_kind",
            suggestion="Use the converter for that kind of schema.",
        )

    def _version(self, topic: str, record_name: str | None, schema_id: int, schema: SchemaText) -> int:
        """The schema's version in the subject of the topic."""
        subject = self._rules.subject(topic, record_name)
        found = self._client.lookup(subject, schema, deleted=True)
        if found is not None:
            return found.version
        raise DataError(
            f"Error retrieving the schema version for id {schema_id}: the subject {subject} does not have it.",
            code="data.subject",
            suggestion=(
                "Set the subject name strategy that the producer uses, in "
                f"{self._part}.converter.{self._part}.subject.name.strategy."
            ),
        )

    @abstractmethod
    def _configure(self, parsed: Mapping[str, Any]) -> None:
        """Take the converter's own keys, typed."""

    @abstractmethod
    def _open_reader(self, topic: str, schema_id: int, registered: SchemaText) -> MessageReader:
        """A function that reads messages with this schema."""

    @abstractmethod
    def _run_reader(self, topic: str, schema_id: int) -> RunReader | None:
        """As `_open_reader` for columns; None: messages with this schema are read one by one."""

    @abstractmethod
    def _open_writer(self, topic: str, schema: Schema) -> MessageWriter:
        """A function that writes values of this schema."""

    @abstractmethod
    def _column_writer(self, topic: str, schema: Schema) -> ColumnWriter | None:
        """As `_open_writer` for columns; None: values of this schema are written one by one."""

    @abstractmethod
    def _find_mismatch(self, target: SchemaText, schema: SchemaText) -> str:
        """Why data of `schema` cannot be read with `target`, or ""."""


def cache_size_key() -> ConfigKey:
    """The key for the number of cached schemas."""
    return ConfigKey(CACHE_SIZE, Type.INT, "1000", "Cached schemas, in each direction.", importance=Importance.LOW)


def refusing(error: DataError) -> MessageReader:
    """A reader that raises the same error for every message."""

    def refuse(data: bytes) -> SchemaAndValue:
        raise type(error)(error.message, code=error.code, suggestion=error.suggestion)

    return refuse


def find_connect_mismatch(target: Schema, schema: Schema, path: str = "") -> str:
    """Why values of `schema` cannot be read with `target`, or "": a different type, or a missing field."""
    where = path or "the value"
    if target.type is not schema.type:
        return f"{where} is {target.type.name} there and {schema.type.name} in the value"
    for field in target.fields:
        given = schema.field(field.name)
        inner = f"{path}.{field.name}".lstrip(".")
        if given is not None:
            found = find_connect_mismatch(field.schema, given.schema, inner)
            if found:
                return found
        elif not field.schema.optional and field.schema.default is None:
            return f"{inner} is required there and missing in the value"
    parts = ((target.key_schema, schema.key_schema), (target.value_schema, schema.value_schema))
    for left, right in parts:
        found = find_connect_mismatch(left, right, f"{path}[]") if left is not None and right is not None else ""
        if found:
            return found
    return ""
