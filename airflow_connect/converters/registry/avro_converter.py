"""AvroConverter: Avro with a Schema Registry."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import fastavro

from airflow_connect.api.config import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.converter import NULL, SchemaAndValue
from airflow_connect.api.errors import DataError, SchemaError
from airflow_connect.converters.avro.anything import ANYTHING_SCHEMA, anything_of
from airflow_connect.converters.avro.compatibility import find_mismatch
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.named_types import NamedTypes
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.converters.avro.parsing import AvroType, parsed_for_reading, parsed_for_writing
from airflow_connect.converters.avro.reading import read_schema
from airflow_connect.converters.registry.client import AVRO, SchemaRegistryClient, SchemaText
from airflow_connect.converters.registry.schema_ids import SchemaIds
from airflow_connect.converters.registry.settings import shared_keys, writing_settings
from airflow_connect.converters.registry.wire_format import PREFIX_BYTES, prefix, read_schema_id

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.api.schema import Schema
    from airflow_connect.converters.registry.avro_columns import ColumnPlan
    from airflow_connect.converters.value_transform import Transform

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
# In the order of AvroSettings' attributes.
_BOOLEANS = (
    ("enhanced.avro.schema.support", "false", "Write enums as Avro enums, and name the branches of unions in full."),
    ("connect.meta.data", "true", "Write and read the connect.* properties of a schema."),
    ("allow.optional.map.keys", "false", "Write maps with optional string keys as Avro maps."),
    ("discard.type.doc.default", "false", "Keep only doc and default of fields, not those of types."),
    ("scrub.invalid.names", "false", "Replace characters that Avro does not allow in names."),
    ("generalized.sum.type.support", "false", "Unions and enums as JSON Schema and Protobuf converters have them."),
    ("flatten.singleton.union", "true", "A union of one type is that type."),
    ("ignore.default.for.nullables", "false", "Write null, not the default, where a nullable field is null."),
)


def _config_def() -> ConfigDef:
    keys = [ConfigKey(name, Type.BOOLEAN, default, text) for name, default, text in _BOOLEANS]
    cache = ConfigKey(
        "schemas.cache.config", Type.INT, "1000", "Schemas kept, in each direction.", importance=Importance.LOW
    )
    return shared_keys().define(*keys, cache)


@dataclass(frozen=True, slots=True)
class _Decoder:
    """How messages of one schema id are read on one topic."""

    parsed: Any
    schema: Schema | None
    change: Transform | None
    columns: ColumnPlan | None


@dataclass(frozen=True, slots=True)
class _Encoder:
    """How values of one Connect schema are written to one topic."""

    prefix: bytes
    parsed: Any
    change: Transform | None


class AvroConverter:
    """io.confluent.connect.avro.AvroConverter.

    The schema of a value has the version that the schema has under its subject, unless it says another one itself.
    Invalid UTF-8 in strings is read as U+FFFD, as Java does. Bytes behind a value are an error here; Confluent does
    not look at them.

    Attributes:
        config_def: the keys, without their `value.converter.` prefix.
    """

    config_def: ClassVar[ConfigDef] = _config_def()

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take the converter's keys.

        Raises:
            ConfigError: a key is missing or wrong.
        """
        parsed = self.config_def.parse(config)
        self._settings = AvroSettings(*(parsed[name] for name, _, _ in _BOOLEANS))
        self._mapping = AvroMapping(self._settings)
        self._client = SchemaRegistryClient(parsed, config)
        self._rules = writing_settings(parsed, is_key)
        self._ids = SchemaIds(self._client, self._rules, self._mismatch)
        self._cache_size = max(1, parsed["schemas.cache.config"])
        self._decoders: dict[tuple[str, int], _Decoder] = {}
        self._encoders: dict[tuple[str, Schema | None], _Encoder] = {}

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """One message to schema and value; None is a tombstone, (None, None).

        Raises:
            DataError: not of the wire format, an unknown schema id, or bytes that are not of the schema.
            UnavailableError, AccessError: the registry.
        """
        if data is None:
            return NULL
        schema_id = read_schema_id(data)
        decoder = self._decoder(topic, schema_id)
        stream = io.BytesIO(data)
        stream.seek(PREFIX_BYTES)
        try:
            value = fastavro.schemaless_reader(
                stream, decoder.parsed, None, return_record_name=False, handle_unicode_errors="replace"
            )
        except _NOT_DECODABLE as error:
            raise _not_decodable(schema_id, data, error) from error
        if stream.tell() != len(data):
            raise DataError(
                f"The message ends {len(data) - stream.tell()} bytes behind the value of the schema {schema_id}.",
                code="data.trailing_bytes",
                suggestion="The producer wrote it with another schema than the one it names.",
            )
        if decoder.change is not None:
            value = decoder.change(value)
        return SchemaAndValue(decoder.schema, value)

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Many messages at once; see `ColumnarConverter`."""
        from airflow_connect.converters.registry.avro_columns import to_columns

        return to_columns(data, lambda schema_id: self._decoder(topic, schema_id).columns)

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """Schema and value to one message; null is a tombstone.

        Raises:
            DataError: the value does not fit the schema, or the registry does not take the schema.
            UnavailableError, AccessError: the registry.
        """
        if value is None:
            if schema is None or schema.optional:
                return None
            raise DataError("Found null value for non-optional schema.", code="data.mismatch")
        encoder = self._encoders.get((topic, schema)) or self._new_encoder(topic, schema)
        stream = io.BytesIO()
        stream.write(encoder.prefix)
        try:
            written = value if encoder.change is None else encoder.change(value)
            fastavro.schemaless_writer(stream, encoder.parsed, written)
        except (
            ValueError,
            TypeError,
            AttributeError,
            KeyError,
            OverflowError,
            ArithmeticError,
            RecursionError,
        ) as error:
            raise DataError(
                f"A value does not fit its schema and cannot be written as Avro ({type(error).__name__}).",
                code="data.mismatch",
                suggestion="A connector or a transformation made a value that does not fit its own schema.",
            ) from error
        return stream.getvalue()

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`."""
        return self.to_connect(topic, data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)

    def _decoder(self, topic: str, schema_id: int) -> _Decoder:
        found = self._decoders.get((topic, schema_id))
        if found is None:
            found = self._new_decoder(topic, schema_id)
            while len(self._decoders) >= self._cache_size:
                del self._decoders[next(iter(self._decoders))]
            self._decoders[topic, schema_id] = found
        return found

    def _new_decoder(self, topic: str, schema_id: int) -> _Decoder:
        text = self._client.schema(schema_id)
        avro_type, named = self._types(text)
        subject = self._rules.subject(topic, _record_name(avro_type))
        registered = self._client.lookup(subject, text, deleted=True)
        if registered is None:
            raise DataError(
                f"Error retrieving Avro schema version for id {schema_id}: the subject {subject} does not have it.",
                code="data.subject",
                suggestion="Set the subject name strategy that the producer uses, in key.subject.name.strategy or "
                "value.subject.name.strategy.",
            )
        read = read_schema(avro_type, named, self._settings, registered.version)
        return _Decoder(
            parsed_for_reading(avro_type, named), read.schema, read.change, _column_plan(avro_type, named, read.schema)
        )

    def _types(self, text: SchemaText) -> tuple[AvroType, list[AvroType]]:
        if text.kind != AVRO:
            raise SchemaError(
                f"The schema is of the kind {text.kind}, which AvroConverter does not read.",
                code="data.schema_kind",
                suggestion="Use JsonSchemaConverter or ProtobufConverter.",
            )
        return _json(text.text), [_json(used.text) for used in self._client.referenced(text).values()]

    def _new_encoder(self, topic: str, schema: Schema | None) -> _Encoder:
        avro_type = ANYTHING_SCHEMA if schema is None else self._mapping.avro_schema(schema)
        change = anything_of if schema is None else self._mapping.transform(schema)
        text = SchemaText(AVRO, json.dumps(avro_type, separators=(",", ":")))
        written = self._ids.written(topic, _record_name(avro_type), text)
        target, named = self._types(written.schema)
        made = _Encoder(prefix(written.schema_id), parsed_for_writing(target, named), change)
        while len(self._encoders) >= self._cache_size:
            del self._encoders[next(iter(self._encoders))]
        self._encoders[topic, schema] = made
        return made

    def _mismatch(self, target: SchemaText, schema: SchemaText) -> str:
        return find_mismatch(*self._types(target), _json(schema.text))


def _column_plan(avro_type: AvroType, named: list[AvroType], schema: Schema | None) -> ColumnPlan | None:
    from airflow_connect.converters.avro.columns import column_reader
    from airflow_connect.converters.registry.avro_columns import ColumnPlan

    reader = None if schema is None else column_reader(avro_type, named, schema)
    return None if schema is None or reader is None else ColumnPlan(schema, reader)


def _json(text: str) -> AvroType:
    try:
        return json.loads(text)
    except ValueError:
        # Registries also keep a primitive schema as its bare name.
        return text


def _record_name(avro_type: AvroType) -> str | None:
    """Full name of a record, enum or fixed for the subject; other schemas have none."""
    if not isinstance(avro_type, dict):
        return None
    return NamedTypes([avro_type]).node(avro_type, "").full_name or None


def _not_decodable(schema_id: int, data: bytes, error: BaseException) -> DataError:
    if isinstance(error, EOFError | IndexError):
        what = "it ends too early, or a number in it points beyond the data"
    else:
        what = f"{type(error).__name__}"
    return DataError(
        f"The message of {len(data)} bytes is not Avro data of the schema {schema_id}: {what}.",
        code="data.avro",
        suggestion="It was cut off, or written with another schema than the one it names.",
    )
