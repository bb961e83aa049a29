"""Records as actions of bulk requests.

Source: io.confluent.connect.elasticsearch.DataConverter.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import TYPE_CHECKING, Any, NamedTuple

import orjson

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import DECIMAL, Schema, Type
from airflow_connect.connectors.search import keys
from airflow_connect.connectors.search.keys import SearchKeys as Keys
from airflow_connect.converters.json.documents import schemaless_lines
from airflow_connect.converters.json.writer import WriterOptions, value_writer
from airflow_connect.counting import plural
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.java.numbers import parse_integer

if TYPE_CHECKING:
    from airflow_connect.api.record import SinkRecord
    from airflow_connect.connectors.search.config import DocumentConfig

OPTIONS = WriterOptions()
LONGEST_ID_BYTES = 512
TIMESTAMP = "@timestamp"
_EARLY_YEAR, _EARLY_MS = 1973, 94_694_400_000
"""Seconds since 1970 stay below until the year 4970."""
_ID_TYPES = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.STRING)
_Change = Callable[[Any], Any]


class Action(NamedTuple):
    """An action of a bulk request.

    Attributes:
        lines: with the line feed at the end.
        id: of the document if the server must execute its actions in their order, else "".
    """

    lines: bytes
    id: str


class DocumentMaker:
    """Makes actions of records."""

    def __init__(self, config: DocumentConfig) -> None:
        """`config`: how."""
        self._config = config
        self._writers: dict[tuple[Schema, bool], Callable[[Any], str]] = {}
        self._replaced: tuple[int, str] = (0, "")
        self._early: tuple[int, str] = (0, "")

    def take_notes(self) -> Iterator[str]:
        """Sentences for the report about what was changed since the last call."""
        (count, place), self._replaced = self._replaced, (0, "")
        if count:
            yield (
                f"{plural(count, 'record', 'have')} a field {TIMESTAMP} of their own, in whose place the documents have"
                f" the timestamp of the record. The first is {place}. Set {Keys.timestamp_fields}={TIMESTAMP} to keep"
                " the field."
            )
        (count, place), self._early = self._early, (0, "")
        if count:
            yield (
                f"{plural(count, 'record', 'have')} a number in a field of {Keys.timestamp_fields} that is before"
                f" {_EARLY_YEAR} if it has milliseconds, as the server reads it. Is it a number of seconds? The first"
                f" is {place}."
            )

    def action(self, record: SinkRecord) -> Action | None:
        """The action of a record; None if there is nothing to do.

        Raises:
            DataError: the record cannot become a document.
        """
        kind = self._config.ids_of(record.topic)
        if record.value is None:
            return self._deletion(record, kind)
        document = self._document(record)
        if kind == keys.BY_SERVER:
            operation = b"create" if self._config.is_stream else b"index"
            return Action(b'{"%s":{}}\n%s\n' % (operation, document), "")
        name = document_id(record, kind)
        text = orjson.dumps(name)
        if self._config.upserts:
            lines = b'{"update":{"_id":%s,"retry_on_conflict":%d}}\n{"doc":%s,"doc_as_upsert":true}\n'
            return Action(lines % (text, self._config.conflict_retries, document), name if kind == keys.BY_KEY else "")
        if self._config.is_stream:
            # The first record of a key stays, so later ones must not overtake it.
            return Action(b'{"create":{"_id":%s}}\n%s\n' % (text, document), name if kind == keys.BY_KEY else "")
        return Action(b'{"index":{"_id":%s%s}}\n%s\n' % (text, self._version(record, kind), document), "")

    def _deletion(self, record: SinkRecord, kind: str) -> Action | None:
        if self._config.on_null == keys.FAIL:
            raise no_value(record)
        # Documents whose ids are offsets, or unknown, have no key that could be deleted.
        if self._config.on_null == keys.IGNORE or record.key is None or kind != keys.BY_KEY:
            return None
        name = document_id(record, kind)
        if self._config.upserts:  # Updates count versions themselves, so an offset is not a version for the deletion.
            return Action(b'{"delete":{"_id":%s}}\n' % orjson.dumps(name), name)
        return Action(b'{"delete":{"_id":%s%s}}\n' % (orjson.dumps(name), self._version(record, kind)), "")

    def _version(self, record: SinkRecord, kind: str) -> bytes:
        """Offsets order the records of a key. A document whose id is its offset has one version only."""
        if kind != keys.BY_KEY:
            return b""
        version = record.offset
        if header := self._config.version_header:
            version = _version_in(record, header)
        return b',"version":%d,"version_type":"external"' % version

    def _document(self, record: SinkRecord) -> bytes:
        text = self._json(record)
        if not text.startswith(b"{"):
            raise SchemaError(
                f"The value at {record.where} is not a JSON object, but {_kind_of(text)}.",
                code="search.not_an_object",
                suggestion="Use a transformation such as HoistField, or a converter that gives structs or maps.",
            )
        return self._with_timestamp(record, text) if self._config.is_stream else text

    def _json(self, record: SinkRecord) -> bytes:
        schema, value = record.value_schema, record.value
        if schema is None:
            return schemaless_lines([value])[:-1]
        follows = self._config.has_schema(record.topic)
        write = self._writers.get((schema, follows))
        if write is None:
            write = self._writers[schema, follows] = self._writer(schema, follows=follows)
        return write(value).encode()

    def _writer(self, schema: Schema, *, follows: bool) -> Callable[[Any], str]:
        changed, change = _adapted(schema, compacts=self._config.compacts_maps) if follows else (schema, None)
        write = value_writer(changed, OPTIONS)
        return write if change is None else lambda value: write(change(value))

    def _with_timestamp(self, record: SinkRecord, text: bytes) -> bytes:
        fields = self._config.timestamp_fields
        if not fields and not (isinstance(record.value, dict) and TIMESTAMP in record.value):
            return with_timestamp(text, b"null" if record.timestamp is None else b"%d" % record.timestamp)
        document = json.loads(text)
        if not fields:
            if document[TIMESTAMP] != record.timestamp:
                count, place = self._replaced
                self._replaced = count + 1, place or record.where
            document[TIMESTAMP] = record.timestamp
        elif field := next((name for name in fields if name in document), None):
            found = document[field]
            if isinstance(found, int | float) and 0 < abs(found) < _EARLY_MS:
                count, place = self._early
                self._early = count + 1, place or record.where
            document[TIMESTAMP] = found if isinstance(found, str) else json.dumps(found)
        try:
            return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        except UnicodeEncodeError:  # Half of a surrogate pair, which JSON has as an escape only.
            return json.dumps(document, separators=(",", ":")).encode()


def _kind_of(text: bytes) -> str:
    """What a JSON text is, without its value."""
    kinds = {b'"': "a text", b"[": "an array", b"t": "a boolean", b"f": "a boolean", b"n": "null"}
    return kinds.get(text[:1], "a number")


def no_value(record: SinkRecord) -> DataError:
    """Why a record without value is not written."""
    return DataError(
        f"The record at {record.where} has no value.",
        code="search.null_value",
        suggestion=f"{Keys.on_null}={keys.IGNORE} drops such records, {keys.DELETE} deletes documents.",
    )


def with_timestamp(document: bytes, timestamp: bytes) -> bytes:
    """A document that does not have it yet, with `@timestamp` in front of its other members."""
    rest = document[1:]
    return b'{"@timestamp":%s%s%s' % (timestamp, b"" if rest == b"}" else b",", rest)


def document_id(record: SinkRecord, kind: str) -> str:
    """The id of a record's document, of the kind `BY_OFFSET` or `BY_KEY`.

    Raises:
        DataError: the key is missing, or has no form for ids.
    """
    if kind == keys.BY_OFFSET:
        # The original names: those of two topics that a transformation has joined do not collide.
        return f"{record.original_topic}+{record.original_partition}+{record.offset}"
    key, schema = record.key, record.key_schema
    if key is None:
        raise _wrong_key(record, "is null")
    is_plain = isinstance(key, str | int) and not isinstance(key, bool)
    if not (is_plain if schema is None else schema.type in _ID_TYPES):
        kind_name = type(key).__name__ if schema is None else schema.type.name
        raise _wrong_key(record, f"is of the type {kind_name}")
    name = str(key)
    if not name:
        raise _wrong_key(record, "is empty")
    if any("\ud800" <= letter <= "\udfff" for letter in name):
        raise _wrong_key(record, "has half of a surrogate pair, which UTF-8 does not have")
    if len(name) * 4 > LONGEST_ID_BYTES and len(name.encode()) > LONGEST_ID_BYTES:
        raise _wrong_key(record, f"is longer than {LONGEST_ID_BYTES} bytes")
    return name


def _wrong_key(record: SinkRecord, what: str) -> DataError:
    return DataError(
        f"The key at {record.where} {what}, and cannot be the id of a document.",
        code="search.key",
        suggestion=f"Use keys that are whole numbers, or text of 1 to {LONGEST_ID_BYTES} bytes, or set"
        f" {Keys.ignores_key}=true.",
    )


def _version_in(record: SinkRecord, header: str) -> int:
    found = [h.value for h in record.headers if h.key == header]
    if not found:
        raise DataError(
            f"The record at {record.where} has no header {header}, which {Keys.version_header} names.",
            code="search.version_header",
            suggestion=f"Correct the producer, or remove {Keys.version_header}.",
        )
    try:
        return parse_integer(str(found[-1]), 64)
    except ValueError:
        raise DataError(
            f"The header {header} at {record.where} is not a whole number of 64 bits.",
            code="search.version_header",
            suggestion=f"Correct the producer, or remove {Keys.version_header}.",
        ) from None


def is_adapted(schema: Schema) -> bool:
    """Whether `_adapted` changes values: whether there are Decimals or maps."""
    if schema.name == DECIMAL or schema.type is Type.MAP:
        return True
    parts = [field.schema for field in schema.fields]
    parts += [part for part in (schema.value_schema, schema.key_schema) if part is not None]
    return any(map(is_adapted, parts))


def _adapted(schema: Schema, *, compacts: bool) -> tuple[Schema, _Change | None]:
    """Schema of values as the search server reads them, and what changes them: Decimals are doubles, maps may be lists.

    A change of None leaves values as they are. Defaults are changed, too.
    """
    if not is_adapted(schema):
        return schema, None
    if schema.name == DECIMAL:
        return _with(schemas.FLOAT64, schema, _as_float), _as_float
    if schema.type is Type.STRUCT:
        return _adapted_struct(schema, compacts=compacts)
    element = schema.value_schema
    if element is None:
        return schema, None
    values, change = _adapted(element, compacts=compacts)
    change = change or _same
    if schema.type is Type.ARRAY:
        each = change

        def change_list(value: Any) -> Any:
            return None if value is None else [each(item) for item in value]

        return _with(schemas.array(values), schema, change_list), change_list
    return _adapted_map(schema, values, change, compacts=compacts)


def _adapted_struct(schema: Schema, *, compacts: bool) -> tuple[Schema, _Change]:
    members = [(field.name, *_adapted(field.schema, compacts=compacts)) for field in schema.fields]
    changed = schemas.struct(*((name, part) for name, part, _ in members), name=schema.name, optional=schema.optional)
    changes = {name: change for name, _, change in members if change is not None}

    def change_struct(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return value | {name: change(value[name]) for name, change in changes.items() if name in value}

    return changed, change_struct


def _adapted_map(schema: Schema, values: Schema, change: _Change, *, compacts: bool) -> tuple[Schema, _Change]:
    assert schema.key_schema is not None
    names, change_name = _adapted(schema.key_schema, compacts=compacts)
    if compacts and schema.key_schema.type is Type.STRING:

        def change_members(value: Any) -> Any:
            return None if value is None else {name: change(item) for name, item in value.items()}

        return _with(schemas.map_of(names, values), schema, change_members), change_members
    of_name = change_name or _same
    entry = schemas.struct(("key", names), ("value", values))

    def change_map(value: Any) -> Any:
        return None if value is None else [{"key": of_name(k), "value": change(v)} for k, v in value.items()]

    return _with(schemas.array(entry), schema, change_map), change_map


def _with(changed: Schema, original: Schema, change: _Change) -> Schema:
    default = None if original.default is None else change(original.default)
    return Schema(
        changed.type, original.optional, default=default,
        key_schema=changed.key_schema, value_schema=changed.value_schema,
    )  # fmt: skip


def _as_float(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else value


def _same(value: Any) -> Any:
    return value
