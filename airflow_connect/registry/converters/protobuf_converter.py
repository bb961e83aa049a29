"""ProtobufConverter: Protobuf messages with a schema in a Schema Registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from google.protobuf import message_factory
from google.protobuf.message import DecodeError, EncodeError

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Type
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.converters.json.strict import STRICT_TYPES
from airflow_connect.converters.protobuf import files
from airflow_connect.converters.protobuf.from_connect import schema_from_connect
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.reading import ValueReader, message_reader
from airflow_connect.converters.protobuf.text_printer import print_proto
from airflow_connect.converters.protobuf.to_connect import schema_to_connect
from airflow_connect.converters.protobuf.writing import fill_message
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.registry import settings
from airflow_connect.registry.client import PROTOBUF, SchemaText
from airflow_connect.registry.converters.registry_converter import (
    ColumnWriter,
    MessageReader,
    MessageWriter,
    RegistryConverter,
    cache_size_key,
    find_connect_mismatch,
    refusing,
)
from airflow_connect.registry.wire_format import PREFIX_BYTES, prefix

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.registry.converters.id_runs import RunReader

_BOOLEAN_KEYS = (
    ("generalized.sum.type.support", "false", "Represent enums and unions as the Avro and JSON Schema converters do."),
    ("enhanced.protobuf.schema.support", "false", "Keep the package in the names of schemas."),
    ("scrub.invalid.names", "false", "Replace characters that Protobuf does not allow in names."),
    ("int.for.enums", "false", "Read enums as their numbers, not as their symbols."),
    ("optional.for.nullables", "false", "Only fields with the label optional are optional, and are written with it."),
    ("optional.for.proto2", "true", "In proto2, a missing optional field is null, not its default."),
    ("wrapper.for.nullables", "false", "Optional fields are messages of google/protobuf/wrappers.proto."),
    ("wrapper.for.raw.primitives", "true", "Read such a message at the root as its value, not as a struct."),
    ("generate.struct.for.nulls", "false", "A missing message field is a struct of zeros, not null."),
    ("generate.index.for.unions", "true", "Add the number of a oneof to the name of the field that holds it."),
    ("flatten.unions", "false", "The members of a oneof are fields of the struct itself."),
    (STRICT_TYPES, "false", "Refuse messages with fields or enum numbers that their schema does not have."),
)
_NO_REFERENCES_WRITTEN = "Schemas that are written here import only well-known files."


def _own_keys() -> list[ConfigKey]:
    return [
        *(ConfigKey(name, Type.BOOLEAN, default, text) for name, default, text in _BOOLEAN_KEYS),
        cache_size_key(),
        *(
            ConfigKey(name, Type.STRING, "", "Not used.", ignored=_NO_REFERENCES_WRITTEN)
            for name in ("reference.subject.name.strategy", "reference.lookup.only", "skip.known.types")
        ),
    ]


class MessageTypes(NamedTuple):
    """The message types of a registered schema.

    Attributes:
        at: message indexes to the type, a Descriptor; DataError if there is none.
        schema_of: its Connect schema; DataError if it cannot be one, or if the subject does not have it.
    """

    at: Callable[[list[int]], Any]
    schema_of: Callable[[Any], Schema]


class _Target(NamedTuple):
    """A message type to write, and the bytes before its data."""

    message: Any
    start: bytes


class ProtobufConverter(RegistryConverter):
    """io.confluent.connect.protobuf.ProtobufConverter.

    Fields of a message that its schema does not have are left out, and are named in `unread`.
    """

    config_def: ClassVar[ConfigDef] = settings.shared_keys().define(*_own_keys())
    kind: ClassVar[str] = PROTOBUF

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._is_strict = parsed[STRICT_TYPES]
        self.unread = Unread()
        self._run_readers: dict[tuple[str, int], RunReader] = {}
        self._options = ProtobufOptions(
            generalized_sum_types=parsed["generalized.sum.type.support"],
            full_names=parsed["enhanced.protobuf.schema.support"],
            scrub_names=parsed["scrub.invalid.names"],
            int_for_enums=parsed["int.for.enums"],
            optional_for_nullables=parsed["optional.for.nullables"],
            optional_for_proto2=parsed["optional.for.proto2"],
            wrapper_for_nullables=parsed["wrapper.for.nullables"],
            wrapper_for_raw_primitives=parsed["wrapper.for.raw.primitives"],
            struct_for_nulls=parsed["generate.struct.for.nulls"],
            index_for_unions=parsed["generate.index.for.unions"],
            flatten_unions=parsed["flatten.unions"],
        )

    def _file(self, schema: SchemaText) -> Any:
        others = self._client.referenced(schema)
        return files.open_schema(schema.text, {name: other.text for name, other in others.items()})

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Many messages at once; see `ColumnarConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        self.unread.clear()
        return self._read_columns(topic, data)

    def from_columns(self, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
        """Many values at once; see `ColumnarWritingConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        return self._written_columns(topic, schema, values)

    def _column_writer(self, topic: str, schema: Schema) -> ColumnWriter | None:
        """None if parts of the schema, or the schema it is written with, must be written value by value."""
        from airflow_connect.converters.protobuf.column_writing import column_writer

        target, is_own = self._written_as(topic, schema)
        return column_writer(target.message, schema, target.start, self._options) if is_own else None

    def _run_reader(self, topic: str, schema_id: int) -> RunReader | None:
        from airflow_connect.registry.converters.protobuf_columns import run_reader

        key = (topic, schema_id)
        if key not in self._run_readers:
            types = self._types(topic, schema_id, self._registered(schema_id))
            made = run_reader(
                lambda message: _read_indexes(message, PREFIX_BYTES), types, self._options, self._note_without_columns
            )
            self._keep(self._run_readers, key, made)
        return self._run_readers[key]

    def _types(self, topic: str, schema_id: int, registered: SchemaText) -> MessageTypes:
        file = self._file(registered)

        def at(indexes: list[int]) -> Any:
            message = files.message_at(file, indexes)
            if message is None:
                raise _no_message(schema_id, indexes)
            return message

        def schema_of(message: Any) -> Schema:
            version = self._version(topic, message.full_name, schema_id, registered)
            return schema_to_connect(message, self._options, version)

        return MessageTypes(at, schema_of)

    def _open_reader(self, topic: str, schema_id: int, registered: SchemaText) -> MessageReader:
        types = self._types(topic, schema_id, registered)
        options, is_strict = self._options._replace(unread=self.unread), self._is_strict
        # A schema can hold several message types, but nearly always all messages have the same one.
        by_indexes: dict[bytes, MessageReader] = {}

        def read_message(data: bytes) -> SchemaAndValue:
            indexes, end = _read_indexes(data, PREFIX_BYTES)
            key = data[PREFIX_BYTES:end]
            reader = by_indexes.get(key)
            if reader is None:
                message = types.at(indexes)
                try:
                    schema = types.schema_of(message)
                    read = message_reader(message, schema, options)
                    reader = _payload_reader(message, schema_id, schema, read, end, is_strict=is_strict)
                except DataError as error:
                    reader = refusing(error)
                by_indexes[key] = reader
            return reader(data)

        return read_message

    def _open_writer(self, topic: str, schema: Schema) -> MessageWriter:
        options = self._options
        target, _ = self._written_as(topic, schema)
        build = message_factory.GetMessageClass(target.message)

        def write_message(value: Any) -> bytes | None:
            if value is None:
                return None
            message = build()
            fill_message(message, schema, value, options)
            try:
                return bytes(target.start + build.SerializeToString(message, deterministic=True))
            except EncodeError as error:
                raise DataError(
                    f"The value cannot be written as {target.message.full_name}: {error}.",
                    suggestion="Give every required field a value.",
                ) from error

        return write_message

    def _written_as(self, topic: str, schema: Schema) -> tuple[_Target, bool]:
        """The type that values of a schema are written as, and whether it is the one that was made for the schema."""
        made = schema_from_connect(schema, self._options)
        text = SchemaText(PROTOBUF, print_proto(made.file))
        schema_id, registered = self._ids.written(topic, made.message, text)
        return self._target(schema_id, registered, made.message), registered == text

    def _target(self, schema_id: int, registered: SchemaText, name: str) -> _Target:
        file = self._file(registered)
        try:
            message = file.pool.FindMessageTypeByName(name)
        except KeyError as error:
            raise SchemaError(
                f"The Protobuf schema {schema_id} has no message type {name}.",
                code="data.schema_incompatible",
                suggestion="Give the value's schema the name of a message type there (SetSchemaMetadata).",
            ) from error
        return _Target(message, prefix(schema_id) + _written_indexes(files.indexes_of(message)))

    def _find_mismatch(self, target: SchemaText, schema: SchemaText) -> str:
        message = files.message_at(self._file(schema), [0])
        try:
            other = self._file(target).pool.FindMessageTypeByName(message.full_name)
        except KeyError:
            return f"it has no message type {message.full_name}"
        left, right = (schema_to_connect(each, self._options) for each in (other, message))
        return find_connect_mismatch(left, right)


def _payload_reader(
    message: Any, schema_id: int, schema: Schema, read: ValueReader, start: int, *, is_strict: bool
) -> MessageReader:
    """A reader of messages of one type; `start` is where their data begins."""
    kind = message_factory.GetMessageClass(message)
    parse, has_required = kind.FromString, files.may_lack_fields(message)
    name = message.full_name

    def read_payload(data: bytes) -> SchemaAndValue:
        try:
            found = parse(data[start:])
        except DecodeError as error:
            raise DataError(
                f"The message is not a valid {name} of the Protobuf schema {schema_id}: {error}.",
                code="data.truncated",
                suggestion="It was truncated, or written with a schema other than the one it names.",
            ) from error
        # Java's parser refuses such a message, Python's does not.
        if has_required and not kind.IsInitialized(found):
            raise DataError(
                f"The message is not a valid {name} of the Protobuf schema {schema_id}: it does not have the required "
                f"fields {', '.join(kind.FindInitializationErrors(found))}.",
                code="data.truncated",
                suggestion="It was truncated, or written with a schema other than the one it names.",
            )
        if is_strict:
            _refuse_unknown_fields(found, name, schema_id)
        return SchemaAndValue(schema, read(found))

    return read_payload


def _refuse_unknown_fields(found: Any, name: str, schema_id: int) -> None:
    """Unknown fields are in none of the values that are read; in proto2, unknown numbers of an enum are among them."""
    kind = type(found)  # a field may have the name of one of these methods
    size = kind.ByteSize(found)
    kind.DiscardUnknownFields(found)
    lost = size - kind.ByteSize(found)
    if lost:
        raise DataError(
            f"The message of the type {name} has {lost} bytes in fields, or enum numbers of proto2, that the Protobuf "
            f"schema {schema_id} does not have.",
            code="data.unknown_fields",
            suggestion="The producer's type is newer than the schema that its messages name: register the newer schema "
            f"there. Without {STRICT_TYPES}=true, what the schema does not have is left out, as in Kafka Connect.",
        )


# The list of positions between id and data: zigzag varints, first how many; a single 0 is short for [0].
# Source: Confluent Schema Registry, "Wire format", Protobuf.


def _read_indexes(data: bytes, start: int) -> tuple[list[int], int]:
    """The positions, and where they end."""
    count, end = _read_varint(data, start)
    if count == 0:
        return [0], end
    # Each position takes at least a byte.
    if not 0 < count <= len(data) - end:
        raise _broken_indexes()
    indexes = []
    for _ in range(count):
        index, end = _read_varint(data, end)
        indexes.append(index)
    return indexes, end


def _read_varint(data: bytes, start: int) -> tuple[int, int]:
    number = 0
    for position in range(start, min(start + 5, len(data))):
        byte = data[position]
        number |= (byte & 0x7F) << (7 * (position - start))
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), position + 1
    raise _broken_indexes()


def _written_indexes(indexes: list[int]) -> bytes:
    if indexes == [0]:
        return b"\0"
    return b"".join(map(_written_varint, [len(indexes), *indexes]))


def _written_varint(number: int) -> bytes:
    number <<= 1  # zigzag of a number that is never negative
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    made.append(number)
    return bytes(made)


def _broken_indexes() -> DataError:
    return DataError(
        "The message ends within the list of message indexes that follows the schema id, or the list is broken.",
        code="data.truncated",
        suggestion="It was truncated, or not written by a Protobuf serializer of a Schema Registry.",
    )


def _no_message(schema_id: int, indexes: list[int]) -> DataError:
    return DataError(
        f"The message indexes {indexes} do not lead to a message type of the Protobuf schema {schema_id}.",
        code="data.message_indexes",
        suggestion="The message was written with a schema other than the one it names.",
    )
