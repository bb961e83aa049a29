"""JsonSchemaConverter: JSON with a schema in a Schema Registry."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import orjson

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Type
from airflow_connect.api.config.validators import CaseInsensitiveValidString
from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.converters.json.reader import ReadOptions, needs_exact_numbers
from airflow_connect.converters.json.strict import STRICT_TYPES
from airflow_connect.converters.json.text import MISSING, InexactNumberError, parse_bounded, parse_fast
from airflow_connect.converters.json_schema_mapping.from_connect import schema_from_connect
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.references import References
from airflow_connect.converters.json_schema_mapping.to_connect import schema_to_connect
from airflow_connect.converters.json_schema_mapping.values import value_reader, value_writer
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError, missing_package
from airflow_connect.registry import settings
from airflow_connect.registry.client import JSON, SchemaText
from airflow_connect.registry.converters.registry_converter import (
    ColumnWriter,
    MessageReader,
    MessageWriter,
    RegistryConverter,
    cache_size_key,
    find_connect_mismatch,
)
from airflow_connect.registry.wire_format import PREFIX_BYTES, prefix

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.api.columns import ValueColumns
    from airflow_connect.registry.converters.id_runs import RunReader

ADDITIONAL_PROPERTIES = "object.additional.properties"
OPTIONAL_FOR_NONREQUIRED = "use.optional.for.nonrequired"
DECIMAL_FORMAT = "decimal.format"
GENERALIZED_SUM_TYPES = "generalized.sum.type.support"
IGNORE_DEFAULT = "ignore.default.for.nullables"
FAIL_INVALID = "json.fail.invalid.schema"
_OF_JAVA_OBJECTS = "It is for Java objects, not for Connect's values."

Validate = Callable[[Any], None]


def _own_keys() -> list[ConfigKey]:
    booleans = (
        (ADDITIONAL_PROPERTIES, "true", "Whether written schemas allow properties that they do not name."),
        (OPTIONAL_FOR_NONREQUIRED, "false", "Make properties that are not listed as required optional."),
        (GENERALIZED_SUM_TYPES, "false", "Represent enums and unions as the Avro and Protobuf converters do."),
        (IGNORE_DEFAULT, "false", "Write null, not the default, where a nullable field is null."),
        (FAIL_INVALID, "false", "Validate each message against its JSON Schema; needs the package jsonschema."),
        (STRICT_TYPES, "false", "Refuse values that do not have the type in the schema or do not fit into it."),
    )
    ignored = (
        *("json.fail.unknown.properties", "json.oneof.for.nullables", "json.write.dates.iso8601"),
        *("json.default.property.inclusion", "json.schema.spec.version", "json.key.type", "json.value.type"),
    )
    return [
        *(ConfigKey(name, Type.BOOLEAN, default, text) for name, default, text in booleans),
        ConfigKey(
            DECIMAL_FORMAT,
            Type.STRING,
            "BASE64",
            "How decimals are written, BASE64 or NUMERIC; both are read.",
            CaseInsensitiveValidString("BASE64", "NUMERIC"),
            Importance.LOW,
        ),
        cache_size_key(),
        *(ConfigKey(name, Type.STRING, "", "Not used.", ignored=_OF_JAVA_OBJECTS) for name in ignored),
        ConfigKey(
            "json.indent.output",
            Type.BOOLEAN,
            "false",
            "Not used.",
            ignored="JSON is written on one line, which is the default.",
        ),
        ConfigKey(
            "ignore.modern.dialects",
            Type.BOOLEAN,
            "false",
            "Not used.",
            ignored="All dialects of JSON Schema are read by the same rules.",
        ),
    ]


class JsonSchemaConverter(RegistryConverter):
    """io.confluent.connect.json.JsonSchemaConverter.

    Properties of a message that its schema does not have are left out, and are named in `unread`.
    """

    config_def: ClassVar[ConfigDef] = settings.shared_keys().define(*_own_keys())
    kind: ClassVar[str] = JSON

    def _configure(self, parsed: Mapping[str, Any]) -> None:
        self._validates = parsed[FAIL_INVALID]
        if self._validates:
            _import_jsonschema()
        self._is_strict = parsed[STRICT_TYPES]
        self.unread = Unread()
        self._run_readers: dict[tuple[str, int], RunReader | None] = {}
        self._options = JsonSchemaOptions(
            additional_properties=parsed[ADDITIONAL_PROPERTIES],
            optional_for_nonrequired=parsed[OPTIONAL_FOR_NONREQUIRED],
            generalized_sum_types=parsed[GENERALIZED_SUM_TYPES],
            ignore_default_for_nullables=parsed[IGNORE_DEFAULT],
            numeric_decimals=parsed[DECIMAL_FORMAT].upper() == "NUMERIC",
        )

    @property
    def has_columns(self) -> bool:
        """Whether messages can be columns: not if each one is validated."""
        return not self._validates

    def to_columns(self, topic: str, data: pa.BinaryArray) -> Sequence[ValueColumns] | None:
        """Many messages at once; see `ColumnarConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        self.unread.clear()
        return None if self._validates else self._read_columns(topic, data)

    def from_columns(self, topic: str, schema: Schema | None, values: pa.Array[Any]) -> pa.Array[Any] | None:
        """Many values at once; see `ColumnarWritingConverter`.

        Raises:
            UnavailableError, AccessError: the registry.
        """
        return self._written_columns(topic, schema, values)

    def _column_writer(self, topic: str, schema: Schema) -> ColumnWriter | None:
        """None if values have lists, maps or inner structs, or if each message is validated."""
        from airflow_connect.registry.converters.json_schema_columns import column_writer

        start, _ = self._written_as(topic, schema)
        return None if self._validates else column_writer(schema, self._options, start)

    def _run_reader(self, topic: str, schema_id: int) -> RunReader | None:
        from airflow_connect.registry.converters.json_schema_columns import run_reader

        key = (topic, schema_id)
        if key not in self._run_readers:
            schema = self._schema(topic, schema_id, self._registered(schema_id))
            self._keep(self._run_readers, key, run_reader(schema, self.unread))
        return self._run_readers[key]

    def _references(self, schema: SchemaText) -> References:
        others = self._client.referenced(schema)
        return References(schema.text, {name: other.text for name, other in others.items()})

    def _schema(self, topic: str, schema_id: int, registered: SchemaText) -> Schema:
        references = self._references(registered)
        title = references.root.node.get("title") if isinstance(references.root.node, dict) else None
        return schema_to_connect(references, self._options, self._version(topic, title, schema_id, registered))

    def _open_reader(self, topic: str, schema_id: int, registered: SchemaText) -> MessageReader:
        schema = self._schema(topic, schema_id, registered)
        validate = self._validator(registered) if self._validates else None
        read = value_reader(schema, ReadOptions(is_strict=self._is_strict, unread=self.unread))
        is_exact, is_strict, unread = needs_exact_numbers(schema), self._is_strict, self.unread

        def read_node(node: Any, text: bytes) -> SchemaAndValue:
            if node is MISSING:
                raise DataError(
                    f"The message ends after its schema id {schema_id}: it contains no JSON.",
                    code="data.truncated",
                    suggestion="It was truncated, or not written by a JSON Schema serializer.",
                )
            if validate is not None:
                validate(_parse(text))
            return SchemaAndValue(schema, read(node))

        def read_message(data: bytes) -> SchemaAndValue:
            text = data[PREFIX_BYTES:]
            if not is_exact:
                try:
                    return read_node(_parse(text, is_strict=is_strict, unread=unread), text)
                except InexactNumberError:
                    pass
            return read_node(parse_bounded(text, is_strict=is_strict, unread=unread), text)

        return read_message

    def _open_writer(self, topic: str, schema: Schema) -> MessageWriter:
        start, target = self._written_as(topic, schema)
        validate = self._validator(target) if self._validates else None
        write = value_writer(schema, self._options)

        def write_message(value: Any) -> bytes | None:
            written = write(value)
            if written is None:
                return None
            data = written.encode("utf-8", "surrogatepass")
            if validate is not None:
                validate(_parse(data))
            return start + data

        return write_message

    def _written_as(self, topic: str, schema: Schema) -> tuple[bytes, SchemaText]:
        """What messages of a schema begin with, and the registered schema."""
        text = SchemaText(JSON, schema_from_connect(schema, self._options))
        schema_id, target = self._ids.written(topic, schema.name, text)
        return prefix(schema_id), target

    def _find_mismatch(self, target: SchemaText, schema: SchemaText) -> str:
        left, right = (schema_to_connect(self._references(each), self._options) for each in (target, schema))
        return find_connect_mismatch(left, right)

    def _validator(self, schema: SchemaText) -> Validate:
        jsonschema = _import_jsonschema()
        from referencing import Registry, Resource
        from referencing.jsonschema import DRAFT7

        document = orjson.loads(schema.text)
        others = self._client.referenced(schema).items()
        resources = [
            (name, Resource.from_contents(orjson.loads(other.text), default_specification=DRAFT7))
            for name, other in others
        ]
        kind = jsonschema.validators.validator_for(document, default=jsonschema.Draft7Validator)
        validator = kind(document, registry=Registry().with_resources(resources))

        def validate(node: Any) -> None:
            problem = next(validator.iter_errors(node), None)
            if problem is not None:
                # The message of jsonschema quotes the data, which does not belong in logs.
                raise DataError(
                    f"The JSON at {problem.json_path} violates the rule {problem.validator} of its schema.",
                    code="data.json_schema",
                    suggestion=f"Fix the producer, or set {FAIL_INVALID}=false.",
                )

        return validate


def _parse(data: bytes, *, is_strict: bool = False, unread: Unread | None = None) -> Any:
    try:
        return parse_fast(data)
    except (ValueError, RecursionError):
        return parse_bounded(data, is_strict=is_strict, unread=unread)


def _import_jsonschema() -> Any:
    try:
        import jsonschema
    except ImportError as error:
        raise missing_package(
            "jsonschema",
            "json-schema",
            purpose=f"{FAIL_INVALID}=true",
            where="where the driver and the executors run",
            config_path=FAIL_INVALID,
        ) from error
    return jsonschema
