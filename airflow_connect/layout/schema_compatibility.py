"""When a new schema starts a new file, and how a record is projected to the schema of the open file.

Only the schema of the value counts. Source: Confluent storage-common (StorageSchemaCompatibility,
SchemaProjector).

| mode | new file when | projection |
|---|---|---|
| NONE | the schemas differ in anything | none |
| BACKWARD, FULL | the record's version is higher, or it cannot be projected | older record to newer schema |
| FORWARD | the record's version is lower, or it cannot be projected | newer record to older schema |
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from enum import Enum
from functools import lru_cache
from typing import Any

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import SchemaError
from airflow_connect.layout.dropped_fields import field_finder

_PROMOTABLE = (Type.INT8, Type.INT16, Type.INT32, Type.INT64, Type.FLOAT32, Type.FLOAT64)
_ENUM_PARAMETERS = (
    "org.apache.kafka.connect.data.Enum",
    "io.confluent.connect.avro.Enum",
    "io.confluent.connect.protobuf.Enum",
)
_METADATA_PARAMETERS = ("connect.record.doc", "connect.record.aliases", "connect.record.namespace")
_FIELD_DOC = "io.confluent.connect.avro.field.doc."

Projection = Callable[[Any], Any]


class StorageSchemaCompatibility(Enum):
    """`schema.compatibility`."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    FORWARD = "FORWARD"
    FULL = "FULL"

    @classmethod
    def of(cls, name: str) -> StorageSchemaCompatibility:
        """The mode called `name`; unknown names mean NONE, as in Confluent's sinks."""
        return cls.__members__.get(name, cls.NONE)

    def should_change_file(self, record_schema: Schema | None, current_schema: Schema | None) -> bool:
        """Whether a record with `record_schema` needs a new file because the open one has `current_schema`.

        Raises:
            SchemaError: exactly one schema is missing, or the mode needs versions and one has none.
        """
        if record_schema is current_schema:
            if self is not StorageSchemaCompatibility.NONE and record_schema is not None:
                self._check_versions(record_schema, record_schema)
            return False
        if record_schema is None or current_schema is None:
            raise SchemaError("Switch between schema-based and schema-less data is not supported")
        return _should_change_file(self, record_schema, current_schema)

    def project(self, record_schema: Schema | None, value: Any, current_schema: Schema | None) -> Any:
        """`value` in the form of `current_schema`: extra fields dropped, missing ones filled, numbers promoted.

        Raises:
            SchemaError: the value cannot be projected.
        """
        if self is StorageSchemaCompatibility.NONE or record_schema is current_schema:
            return value
        if record_schema is None or current_schema is None:
            raise SchemaError("Switch between schema-based and schema-less data is not supported")
        return _projection(record_schema, current_schema)(value)

    def find_dropped(self, record_schema: Schema | None, value: Any, current_schema: Schema | None) -> frozenset[str]:
        """Paths of the fields of `value` that `project` drops although they hold something.

        Which fields are dropped is found out once for each pair of schemas.
        """
        if self is StorageSchemaCompatibility.NONE or record_schema is None or current_schema is None:
            return frozenset()
        find = field_finder(record_schema, current_schema)
        if find is None:
            return frozenset()
        unread = Unread()
        find(value, unread)
        return frozenset(unread.found)

    def _check_versions(self, record_schema: Schema, current_schema: Schema) -> None:
        if record_schema.version is None or current_schema.version is None:
            raise SchemaError(
                f"Schema version required for {self.value} compatibility",
                suggestion="Give the schema a version, or set schema.compatibility=NONE.",
            )


@lru_cache(maxsize=4096)
def _should_change_file(mode: StorageSchemaCompatibility, record_schema: Schema, current_schema: Schema) -> bool:
    if mode is StorageSchemaCompatibility.NONE:
        return record_schema != current_schema
    mode._check_versions(record_schema, current_schema)
    if record_schema == current_schema:
        return False
    if not _can_project(record_schema, current_schema):
        return True
    record_version, current_version = record_schema.version or 0, current_schema.version or 0
    if mode is StorageSchemaCompatibility.FORWARD:
        return record_version < current_version
    return record_version > current_version


def _can_project(source: Schema, target: Schema) -> bool:
    try:
        _projection(source, target)
    except SchemaError:
        return False
    return True


@lru_cache(maxsize=4096)
def _projection(source: Schema, target: Schema) -> Projection:
    """Function from values of `source` to values of `target`; the schemas themselves are checked here."""
    if source == target:
        return _identity
    _check_compatible(source, target)
    required = _required_projection(source, target)
    if source.optional and not target.optional:
        if target.default is None:
            raise SchemaError("Writer schema is optional, however, target schema does not provide a default value.")
        missing = target.default
    else:
        missing = None
    return lambda value: missing if value is None else required(value)


def _check_compatible(source: Schema, target: Schema) -> None:
    if source.type is not target.type and not _is_promotable(source.type, target.type):
        raise SchemaError(f"Schema type mismatch. source type: {source.type.name} and target type: {target.type.name}")
    if source.name != target.name:
        raise SchemaError(f"Schema name mismatch. source name: {source.name} and target name: {target.name}")
    if not source.parameters or not target.parameters:
        return  # Connect compares parameters only if both schemas have some.
    theirs, ours = _significant(source.parameters), _significant(target.parameters)
    if _is_enum(source) and _is_enum(target):
        if not theirs.items() <= ours.items():
            raise SchemaError(
                f"Schema parameters mismatch. Source parameter: {dict(source.parameters)} is not a subset of"
                f" target parameters: {dict(target.parameters)}"
            )
    elif theirs != ours:
        raise SchemaError(
            f"Schema parameters not equal. source parameters: {dict(source.parameters)}"
            f" and target parameters: {dict(target.parameters)}"
        )


def _is_promotable(source: Type, target: Type) -> bool:
    if source not in _PROMOTABLE or target not in _PROMOTABLE:
        return False
    return _PROMOTABLE.index(source) <= _PROMOTABLE.index(target)


def _is_enum(schema: Schema) -> bool:
    return any(name in schema.parameters for name in _ENUM_PARAMETERS)


def _significant(parameters: Mapping[str, str]) -> dict[str, str]:
    """Parameters without documentation and aliases, which do not change what a value means."""
    return {
        name: value
        for name, value in parameters.items()
        if name not in _METADATA_PARAMETERS and not name.startswith(_FIELD_DOC)
    }


def _required_projection(source: Schema, target: Schema) -> Projection:
    if target.type is Type.STRUCT:
        return _struct_projection(source, target)
    if target.type is Type.ARRAY:
        element = _projection(_member(source.value_schema), _member(target.value_schema))
        return lambda values: [element(value) for value in values]
    if target.type is Type.MAP:
        key = _projection(_member(source.key_schema), _member(target.key_schema))
        value = _projection(_member(source.value_schema), _member(target.value_schema))
        return lambda entries: {key(k): value(v) for k, v in entries.items()}
    if target.type is source.type:
        return _identity
    if target.type is Type.FLOAT32:
        return _to_float32
    return float if target.type is Type.FLOAT64 else _identity


def _struct_projection(source: Schema, target: Schema) -> Projection:
    fields: list[tuple[str, Projection]] = []
    for wanted in target.fields:
        given = source.field(wanted.name)
        if given is not None:
            fields.append((wanted.name, _field_projection(wanted.name, given.schema, wanted.schema)))
        elif wanted.schema.default is not None:
            fields.append((wanted.name, _constant(wanted.schema.default)))
        elif wanted.schema.optional:
            fields.append((wanted.name, _constant(None)))
        else:
            raise SchemaError(f"Required field `{wanted.name}` is missing from source schema: {source.name}")
    return lambda value: {name: project(value.get(name)) for name, project in fields}


def _field_projection(name: str, source: Schema, target: Schema) -> Projection:
    try:
        project = _projection(source, target)
    except SchemaError as error:
        raise SchemaError(f"Error projecting {name}: {error.message}", suggestion=error.suggestion) from error
    if source.default is None:
        return project
    # Connect's Struct reads an unset field as the field's default.
    return lambda value: project(source.default if value is None else value)


def _member(schema: Schema | None) -> Schema:
    if schema is None:
        raise SchemaError("An array or map schema lacks the schema of its members.")
    return schema


def _identity(value: Any) -> Any:
    return value


def _constant(value: Any) -> Projection:
    return lambda _struct: value


def _to_float32(value: float) -> float:
    """The nearest 32-bit float, as Java's `Number.floatValue`."""
    rounded: float = struct.unpack("<f", struct.pack("<f", value))[0]
    return rounded
