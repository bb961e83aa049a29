"""JsonConverter: JSON with or without Connect's schema envelope, or with a fixed schema from the configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.converter import NULL, SchemaAndValue, boolean_setting
from airflow_connect.api.schema import Schema
from airflow_connect.converters.json.plain import plain_json
from airflow_connect.converters.json.reader import (
    Reader,
    ReadOptions,
    needs_exact_numbers,
    payload_reader,
    schemaless_payload,
)
from airflow_connect.converters.json.schema import schema_from_json, schema_to_json
from airflow_connect.converters.json.strict import STRICT_TYPES
from airflow_connect.converters.json.text import (
    EXACT_DECODER,
    MAX_DEPTH,
    is_deeper,
    parse_bounded,
    parse_exact,
    parse_fast,
    parse_fragment,
    too_deep,
)
from airflow_connect.converters.json.writer import Writer, WriterOptions, schemaless_text, value_writer
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.java.numbers import parse_integer

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.converters.json.column_writer import ColumnWriter
    from airflow_connect.converters.json.columns import JsonColumns
    from airflow_connect.converters.json.envelope_columns import EnvelopeColumns

SCHEMAS_ENABLE = "schemas.enable"
SCHEMAS_CACHE_SIZE = "schemas.cache.size"
DECIMAL_FORMAT = "decimal.format"
REPLACE_NULL_WITH_DEFAULT = "replace.null.with.default"
SCHEMA_CONTENT = "schema.content"

_ENVELOPE_START = re.compile(r'\s*\{\s*"schema"\s*:\s*')
# Prefixes are tried one after the other; with more of them, parsing the schema is as fast.
_MAX_PREFIXES = 16
_BEFORE_PAYLOAD = re.compile(r'\s*,\s*"payload"\s*:\s*')
_NOT_AN_ENVELOPE = (
    'JsonConverter with schemas.enable requires "schema" and "payload" fields and may not contain additional '
    "fields. If you are trying to deserialize plain JSON data, set schemas.enable=false in your converter "
    "configuration."
)


_KEYS = (
    ConfigKey(
        SCHEMAS_ENABLE, Type.BOOLEAN, True, "Whether messages have a schema, in each message or in schema.content."
    ),
    ConfigKey(SCHEMAS_CACHE_SIZE, Type.INT, 1000, "Number of schemas kept, in each direction."),
    ConfigKey(DECIMAL_FORMAT, Type.STRING, "BASE64", "How decimals are written, BASE64 or NUMERIC; both are read."),
    ConfigKey(REPLACE_NULL_WITH_DEFAULT, Type.BOOLEAN, True, "Whether null becomes the schema's default."),
    ConfigKey(SCHEMA_CONTENT, Type.STRING, "", "The schema of messages that are plain JSON."),
    ConfigKey(
        STRICT_TYPES, Type.BOOLEAN, False, "Refuse values that do not have the type in the schema or do not fit."
    ),
)


class JsonConverter:
    """org.apache.kafka.connect.json.JsonConverter, for records and for headers.

    Configuration, with Connect's defaults:
        schemas.enable (true): messages are `{"schema":S,"payload":P}`; false: plain JSON, schemaless.
        schemas.cache.size (1000): number of schemas kept, in each direction.
        decimal.format (BASE64): how Decimals are written, BASE64 or NUMERIC; both are read.
        replace.null.with.default (true): null becomes the schema's default (KIP-581).
        schema.content (none): a JSON schema; with `schemas.enable` messages are then read as plain payloads with
            that schema (KIP-1054, Kafka 4.2). It is not used for writing.
        strict.types (false; not in Connect): refuse values that do not have the type in the schema or do not fit.

    Members of a message that its schema does not have are left out, and are named in `unread`; so are those whose
    values do not fit their types and become others.

    The same schema text always yields the identical Schema object. Reading keeps the keys of schemaless maps
    in the order of the message; Connect puts them into a HashMap.
    """

    config_def: ClassVar[ConfigDef] = ConfigDef().define(*_KEYS)

    def __init__(self) -> None:
        self.configure({})

    def configure(self, config: Mapping[str, str], is_key: bool = False) -> None:
        """Take the converter's keys.

        Raises:
            ConfigError: a value is not accepted.
        """
        self._envelope = boolean_setting(config, SCHEMAS_ENABLE, True)
        self._cache_size = _cache_size(config)
        self._options = WriterOptions(_is_numeric(config), boolean_setting(config, REPLACE_NULL_WITH_DEFAULT, True))
        self.unread = Unread()
        self._reading = ReadOptions(
            self._options.replace_null, boolean_setting(config, STRICT_TYPES, False), self.unread
        )
        self._schemas: dict[str, Schema | None] = {}
        self._readers: dict[Schema, Reader] = {}
        self._writers: dict[Schema, tuple[str, Writer]] = {}
        self._prefixes: dict[bytes, tuple[Schema, Reader, bool]] = {}
        self._last_prefix = b""
        self._fixed = self._fixed_schema(config) if self._envelope else None
        self._fixed_is_exact = needs_exact_numbers(self._fixed)
        self._columns: JsonColumns | None = None
        self._envelopes: EnvelopeColumns | None = None
        self._column_writers: dict[Schema, ColumnWriter | None] = {}

    def _fixed_schema(self, config: Mapping[str, str]) -> Schema | None:
        content = config.get(SCHEMA_CONTENT)
        if not content:
            return None
        try:
            return self._schema(parse_exact(content.encode("utf-8", "surrogatepass")))
        except DataError as error:
            raise ConfigError(
                f"Failed to parse schema in converter config due to serialization error: {error.message}",
                suggestion='Give a Connect schema as JSON, such as {"type":"struct","fields":[...]}.',
                config_path=SCHEMA_CONTENT,
            ) from error

    # Reading

    def to_connect(self, topic: str, data: bytes | None) -> SchemaAndValue:
        """One message to schema and value; None is a tombstone, (None, None).

        Raises:
            DataError: it is not JSON, not the envelope that `schemas.enable` requires, or its payload contradicts its
                schema.
        """
        if data is None:
            return NULL
        if not self._envelope:
            return SchemaAndValue(None, plain_json(data, is_strict=self._reading.is_strict, unread=self.unread))
        if self._fixed is not None:
            return SchemaAndValue(self._fixed, self._read_fixed(self._fixed, data))
        prefix = self._known_prefix(data)
        if prefix:
            schema, read, exact = self._prefixes[prefix]
            payload = data[len(prefix) : -1]
            try:
                # The prefix, one JSON document and a brace form exactly one envelope.
                return SchemaAndValue(schema, read(parse_fragment(payload) if exact else parse_fast(payload)))
            except (ValueError, RecursionError):
                return self._read_envelope(data)
        return self._read_envelope(data)

    def _known_prefix(self, data: bytes) -> bytes:
        if not data.endswith(b"}"):
            return b""
        if self._last_prefix and data.startswith(self._last_prefix):
            return self._last_prefix
        for prefix in self._prefixes:
            if data.startswith(prefix):
                self._last_prefix = prefix
                return prefix
        return b""

    def _read_fixed(self, schema: Schema, data: bytes) -> Any:
        read = self._reader(schema)
        if not self._fixed_is_exact:
            try:
                return read(parse_fast(data))
            except ValueError:
                pass
        return read(parse_bounded(data, is_strict=self._reading.is_strict, unread=self.unread))

    def _read_envelope(self, data: bytes) -> SchemaAndValue:
        """The exact path, which also caches new schemas."""
        node = parse_exact(data, is_strict=self._reading.is_strict, unread=self.unread)
        if is_deeper(node, MAX_DEPTH + 1):
            raise too_deep()
        if type(node) is not dict or node.keys() != {"schema", "payload"}:
            raise DataError(_NOT_AN_ENVELOPE)
        schema = self._schema(node["schema"])
        if schema is None:
            payload = schemaless_payload(node["payload"], is_strict=self._reading.is_strict, unread=self.unread)
            return SchemaAndValue(None, payload)
        self._learn_prefix(data, schema)
        return SchemaAndValue(schema, self._reader(schema)(node["payload"]))

    def _schema(self, node: Any) -> Schema | None:
        if node is None:
            return None
        key = repr(node)
        schema = self._schemas.get(key)
        if schema is None:
            schema = schema_from_json(node, lambda s, default: payload_reader(s, ReadOptions())(default))
            self._keep(self._schemas, key, schema)
        return schema

    def _reader(self, schema: Schema) -> Reader:
        reader = self._readers.get(schema)
        if reader is None:
            reader = payload_reader(schema, self._reading)
            self._keep(self._readers, schema, reader)
        return reader

    def _learn_prefix(self, data: bytes, schema: Schema) -> None:
        """Cache the text before the payload, so the next message with it need not parse the schema."""
        if self._known_prefix(data):
            return
        try:
            text = data.decode("utf-8")
            start = _ENVELOPE_START.match(text)
            if start is None:
                return
            node, end = EXACT_DECODER.raw_decode(text, start.end())
        except (ValueError, RecursionError):
            return
        before_payload = _BEFORE_PAYLOAD.match(text, end)
        # If the member "schema" occurs twice, the last one counts, so this is not the schema.
        if before_payload is None or self._schema(node) is not schema:
            return
        prefix = text[: before_payload.end()].encode("utf-8")
        while len(self._prefixes) >= _MAX_PREFIXES:
            del self._prefixes[next(iter(self._prefixes))]
        self._prefixes[prefix] = (schema, self._reader(schema), needs_exact_numbers(schema))
        self._last_prefix = prefix

    def _keep(self, cache: dict[Any, Any], key: Any, value: Any) -> None:
        while cache and len(cache) >= max(1, self._cache_size):
            del cache[next(iter(cache))]
        cache[key] = value

    # Reading in columns

    @property
    def known_schemas(self) -> Sequence[Schema | None]:
        """See `ColumnarConverter`."""
        if not self._envelope:
            return (None,)
        return () if self._fixed is None else (self._fixed,)

    @property
    def has_columns(self) -> bool:
        """Whether messages can be columns: not if the fixed schema has a part that cannot."""
        return self._fixed is None or self._fixed_columns() is not None

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Schemaless documents as lines, messages with a schema as its values; None if one is not vectorizable."""
        from airflow_connect.api.columns import ValueColumns

        self.unread.clear()
        if not self._envelope:
            from airflow_connect.converters.json.documents import document_lines

            lines = document_lines(data, is_strict=self._reading.is_strict, unread=self.unread)
            return None if lines is None else [ValueColumns(None, lines)]
        if self._fixed is None:
            return self._envelope_columns().read(data)
        columns = self._fixed_columns()
        values = None if columns is None else columns.read(data)
        return None if values is None else [ValueColumns(self._fixed, values)]

    def _envelope_columns(self) -> EnvelopeColumns:
        if self._envelopes is None:
            from airflow_connect.converters.json.envelope_columns import EnvelopeColumns

            self._envelopes = EnvelopeColumns(self._prefix_of, self.unread, fills_defaults=self._options.replace_null)
        return self._envelopes

    def _prefix_of(self, data: bytes) -> tuple[bytes, Schema] | None:
        """The text before the payload of a message, and its schema; None if there is none, or the message is broken."""
        prefix = self._known_prefix(data)
        if not prefix:
            try:
                node = parse_exact(data)
                schema = self._schema(node["schema"]) if type(node) is dict and "schema" in node else None
            except DataError:
                return None
            if schema is None:
                return None
            self._learn_prefix(data, schema)
            prefix = self._known_prefix(data)
        return (prefix, self._prefixes[prefix][0]) if prefix else None

    def _fixed_columns(self) -> JsonColumns | None:
        if self._columns is None and self._fixed is not None:
            from airflow_connect.converters.json.columns import json_columns

            self._columns = json_columns(self._fixed, self.unread, fills_defaults=self._options.replace_null)
        return self._columns

    # Writing

    def from_connect(self, topic: str, schema: Schema | None, value: Any) -> bytes | None:
        """One message of schema and value; (None, None) is a tombstone.

        Raises:
            DataError: the value does not fit the schema, or has no type in Connect.
        """
        if schema is None:
            if value is None:
                return None
            payload = _schemaless_text(value)
            return (f'{{"schema":null,"payload":{payload}}}' if self._envelope else payload).encode()
        known = self._writers.get(schema)
        if known is None:
            known = self._new_writer(schema)
        payload = known[1](value)
        return (known[0] + payload + "}" if self._envelope else payload).encode()

    def _new_writer(self, schema: Schema) -> tuple[str, Writer]:
        prefix = ""
        if self._envelope:
            text = schema_to_json(schema, lambda s, default: value_writer(s, self._options)(default))
            prefix = f'{{"schema":{text},"payload":'
        known = (prefix, value_writer(schema, self._options))
        self._keep(self._writers, schema, known)
        return known

    # Writing in columns

    def from_columns(self, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
        """The messages of many values, the same as of `from_connect`; None if one is not vectorizable."""
        if schema is None:
            if self._envelope:
                return None
            from airflow_connect.converters.json.message_columns import messages_of_lines

            return messages_of_lines(values)
        if schema not in self._column_writers:
            from airflow_connect.converters.json.column_writer import column_writer

            prefix = self._new_writer(schema)[0]
            found = column_writer(schema, self._options, prefix, "}" if self._envelope else "")
            self._keep(self._column_writers, schema, found)
        write = self._column_writers[schema]
        return None if write is None else write(values)

    # Headers

    def to_connect_header(self, topic: str, name: str, data: bytes | None) -> SchemaAndValue:
        """As `to_connect`."""
        return self.to_connect(topic, data)

    def from_connect_header(self, topic: str, name: str, schema: Schema | None, value: Any) -> bytes | None:
        """As `from_connect`."""
        return self.from_connect(topic, schema, value)


def _schemaless_text(value: Any) -> str:
    try:
        return schemaless_text(value)
    except RecursionError as error:
        raise DataError(
            "A schemaless value cannot be written as JSON: it is nested too deeply.", suggestion="Flatten it."
        ) from error


def _cache_size(config: Mapping[str, str]) -> int:
    text = str(config.get(SCHEMAS_CACHE_SIZE, "1000")).strip()
    try:
        size = parse_integer(text, 32)
    except ValueError:
        size = -1
    if size < 0:
        raise ConfigError(
            f"Invalid value {text} for configuration {SCHEMAS_CACHE_SIZE}: Not a number of type INT.",
            suggestion="Set it to the number of schemas to keep, 0 or more.",
            config_path=SCHEMAS_CACHE_SIZE,
        )
    return size


def _is_numeric(config: Mapping[str, str]) -> bool:
    text = str(config.get(DECIMAL_FORMAT, "BASE64"))
    if text.upper() not in ("BASE64", "NUMERIC"):
        raise ConfigError(
            f"Invalid value {text} for configuration {DECIMAL_FORMAT}: "
            "String must be one of (case insensitive): BASE64, NUMERIC.",
            config_path=DECIMAL_FORMAT,
        )
    return text.upper() == "NUMERIC"
