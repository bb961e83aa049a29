"""AvroConverter: Avro with a Schema Registry."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import fastavro

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.converters.avro.anything import ANYTHING_SCHEMA, anything_of, read_anything
from airflow_connect.converters.avro.checking import InvalidAvroError, checker
from airflow_connect.converters.avro.compatibility import find_mismatch
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.named_types import NamedTypes
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import AvroType, parsed_for_reading, parsed_for_writing
from airflow_connect.converters.avro.reading import ReadSchema, read_schema
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.layout.dropped_fields import Finder, field_finder
from airflow_connect.registry.client import AVRO, SchemaText
from airflow_connect.registry.converters.registry_converter import (
    ColumnWriter,
    MessageReader,
    MessageWriter,
    RegistryConverter,
    cache_size_key,
)
from airflow_connect.registry.settings import shared_keys
from airflow_connect.registry.wire_format import PREFIX_BYTES, prefix

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.value_transform import Transform
    from airflow_connect.registry.converters.id_runs import RunReader

_NOT_DECODABLE = (
    EOFError,
    IndexError,
    KeyError,
    MemoryError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
_NOT_ENCODABLE = (
    ArithmeticError,
    AttributeError,
    KeyError,
    OverflowError,
    RecursionError,
    TypeError,
    ValueError,
)
# In the order of AvroSettings' attributes.
_BOOLEANS = (
    ("enhanced.avro.schema.support", "false", "Write enums as Avro enums, and name the branches of unions in full."),
    ("connect.meta.data", "true", "Write and read the connect.* properties of a schema."),
    ("allow.optional.map.keys", "false", "Write maps with optional string keys as Avro maps."),
    ("discard.type.doc.default", "false", "Keep doc and default of fields only, not of types."),
    ("scrub.invalid.names", "false", "Replace characters that Avro does not allow in names."),
    ("generalized.sum.type.support", "false", "Represent unions and enums as other registry converters do."),
    ("flatten.singleton.union", "true", "Read a union of one type as that type."),
    ("ignore.default.for.nullables", "false", "Write null, not the default, where a nullable field is null."),
)


def _config_def() -> ConfigDef:
    keys = [ConfigKey(name, Type.BOOLEAN, default, text) for name, default, text in _BOOLEANS]
    return shared_keys().define(*keys, cache_size_key())


class AvroConverter(RegistryConverter):
    """io.confluent.connect.avro.AvroConverter.

    The schema of a value has the version of the registered schema under its subject, unless it names another one
    itself.
    Invalid UTF-8 in strings is read as U+FFFD, as Java does. Bytes after a value are an error here; Confluent ignores
    them.

    Fields of a value that are not in the schema with which it is written (`use.latest.version`, `use.schema.id`) are
    left out, and are named in `unwritten`.
    """

    config_def: ClassVar[ConfigDef] = _config_def()
    kind: ClassVar[str] = AVRO

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._settings = AvroSettings(*(parsed[name] for name, _, _ in _BOOLEANS))
        self._mapping = AvroMapping(self._settings)
        self.unwritten = Unread()
        self._run_readers: dict[tuple[str, int], RunReader | None] = {}
        self._schemaless: dict[str, MessageWriter] = {}

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Many messages at once; see `ColumnarConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        return self._read_columns(topic, data)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Schema and value to one message; null is a tombstone, values without schema are written as `Anything`.

        Raises:
            DataError: the value does not fit the schema, or the registry refuses the schema.
            UnavailableError, AccessError: the registry.
        """
        if value is None:
            if schema is None or schema.optional:
                return None
            raise DataError("Found null value for non-optional schema.", code="data.mismatch")
        if schema is not None:
            return super().from_connect(topic, schema, value)
        writer = self._schemaless.get(topic)
        if writer is None:
            writer = self._message_writer(topic, ANYTHING_SCHEMA, anything_of)
            self._keep(self._schemaless, topic, writer)
        return writer(value)

    def from_columns(self, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
        """Many values at once; see `ColumnarWritingConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        return self._written_columns(topic, schema, values)

    def _column_writer(self, topic: str, schema: Schema) -> ColumnWriter | None:
        """None if parts of the schema, or the schema it is written with, must be written value by value."""
        from airflow_connect.converters.avro.column_writing import column_writer

        avro_type = self._mapping.avro_schema(schema)
        text = SchemaText(AVRO, _compact(avro_type))
        schema_id, target = self._ids.written(topic, _record_name(avro_type), text)
        parsed_for_writing(*self._types(target))  # what the reference path refuses is not written here either
        if target != text:
            return None
        null_is_default = not self._settings.ignore_default_for_nullables
        return column_writer(avro_type, (), schema, prefix(schema_id), null_is_default=null_is_default)

    def _open_reader(self, topic: str, schema_id: int, registered: SchemaText) -> MessageReader:
        avro_type, named, (schema, change) = self._read_schema(topic, schema_id, registered)
        decode = read_anything if schema is None else _decoder(avro_type, named)

        def read_message(data: bytes) -> SchemaAndValue:
            try:
                value, end = decode(data, PREFIX_BYTES)
            except _NOT_DECODABLE as error:
                raise _not_decodable(schema_id, data, error) from error
            if end != len(data):
                raise DataError(
                    f"The message has {len(data) - end} more bytes after the value of the schema {schema_id}.",
                    code="data.trailing_bytes",
                    suggestion="The producer wrote it with a schema other than the one it names.",
                )
            return SchemaAndValue(schema, value if change is None else change(value))

        return read_message

    def _open_writer(self, topic: str, schema: Schema) -> MessageWriter:
        return self._message_writer(topic, self._mapping.avro_schema(schema), self._mapping.transform(schema))

    def _message_writer(self, topic: str, avro_type: AvroType, change: Transform | None) -> MessageWriter:
        text = SchemaText(AVRO, _compact(avro_type))
        schema_id, target = self._ids.written(topic, _record_name(avro_type), text)
        parsed, start = parsed_for_writing(*self._types(target)), prefix(schema_id)
        find_unwritten, unwritten = None if target == text else self._finder(avro_type, target), self.unwritten

        def write_message(value: Any) -> bytes:
            stream = io.BytesIO()
            stream.write(start)
            try:
                fastavro.schemaless_writer(stream, parsed, value if change is None else change(value))
            except _NOT_ENCODABLE as error:
                raise DataError(
                    f"A value does not fit its schema and cannot be written as Avro ({type(error).__name__}).",
                    code="data.mismatch",
                    suggestion="A connector or a transformation created a value that does not fit its own schema.",
                ) from error
            if find_unwritten is not None:
                find_unwritten(value, unwritten)
            return stream.getvalue()

        return write_message

    def _finder(self, avro_type: AvroType, target: SchemaText) -> Finder | None:
        """A function that names the fields of values of `avro_type` that `target` does not have."""
        own, written = (read_schema(*types, self._settings, None) for types in ((avro_type, []), self._types(target)))
        return field_finder(own.schema, written.schema)

    def _run_reader(self, topic: str, schema_id: int) -> RunReader | None:
        from airflow_connect.registry.converters.avro_columns import run_reader

        key = (topic, schema_id)
        if key not in self._run_readers:
            avro_type, named, read = self._read_schema(topic, schema_id, self._registered(schema_id))
            made = None if read.schema is None else run_reader(avro_type, named, read.schema)
            self._keep(self._run_readers, key, made)
        return self._run_readers[key]

    def _read_schema(
        self, topic: str, schema_id: int, registered: SchemaText
    ) -> tuple[AvroType, list[AvroType], ReadSchema]:
        avro_type, named = self._types(registered)
        version = self._version(topic, _record_name(avro_type), schema_id, registered)
        return avro_type, named, read_schema(avro_type, named, self._settings, version)

    def _types(self, text: SchemaText) -> tuple[AvroType, list[AvroType]]:
        """A schema and those that it refers to."""
        return _json(text.text), [_json(used.text) for used in self._client.referenced(text).values()]

    def _find_mismatch(self, target: SchemaText, schema: SchemaText) -> str:
        return find_mismatch(*self._types(target), _json(schema.text))


def _decoder(avro_type: AvroType, named: list[AvroType]) -> Callable[[bytes, int], tuple[Any, int]]:
    check, parsed = checker(avro_type, named), parsed_for_reading(avro_type, named)

    def decode(data: bytes, at: int) -> tuple[Any, int]:
        end = check(data, at)
        stream = io.BytesIO(data)
        stream.seek(at)
        value = fastavro.schemaless_reader(
            stream, parsed, None, return_record_name=False, handle_unicode_errors="replace"
        )
        return value, end

    return decode


def _json(text: str) -> AvroType:
    try:
        return json.loads(text)
    except ValueError:
        # Registries also store a primitive schema as its bare name.
        return text
    except RecursionError:
        raise SchemaError("The Avro schema is nested too deeply.", code="data.schema_invalid") from None


def _compact(avro_type: AvroType) -> str:
    return json.dumps(avro_type, separators=(",", ":"))


def _record_name(avro_type: AvroType) -> str | None:
    """Full name of a record, enum or fixed type for the subject; other schemas do not have one."""
    if not isinstance(avro_type, dict):
        return None
    return NamedTypes([avro_type]).node(avro_type, "").full_name or None


def _not_decodable(schema_id: int, data: bytes, error: BaseException) -> DataError:
    if isinstance(error, InvalidAvroError):
        what = str(error)
    elif isinstance(error, EOFError | IndexError):
        what = "it ends too early, or a number in it points beyond the data"
    else:
        what = f"{type(error).__name__}"
    return DataError(
        f"The message of {len(data)} bytes is not Avro data with the schema {schema_id}: {what}.",
        code="data.avro",
        suggestion="It was truncated, or written with a schema other than the one it names.",
    )
