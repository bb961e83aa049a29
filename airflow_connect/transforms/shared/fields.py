"""Paths to fields, and struct schemas made out of others.

Source of the path syntax: KIP-821 and org.apache.kafka.connect.transforms.field.SingleFieldPath (Kafka 4.3.1).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from airflow_connect.api.config.config_def import ConfigKey, Importance, Type
from airflow_connect.api.config.validators import CaseInsensitiveValidString
from airflow_connect.api.schema import Field, Schema
from airflow_connect.api.schema import Type as SchemaType
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.shared.values import field_value, require_map

FIELD_SYNTAX_VERSION = "field.syntax.version"
_BACKTICK, _DOT, _BACKSLASH = "`", ".", "\\"


class FieldSyntax(Enum):
    """How a path is read: V1 is the name of a top-level field, V2 is dotted, with backticks around odd names."""

    V1 = "V1"
    V2 = "V2"


def field_syntax_version() -> ConfigKey:
    """The key of KIP-821."""
    return ConfigKey(
        FIELD_SYNTAX_VERSION,
        Type.STRING,
        FieldSyntax.V1.value,
        "Defines the version of the syntax to access fields. If set to `V1`, then the field paths are limited to "
        "access the elements at the root level of the struct or map. If set to `V2`, the syntax will support "
        "accessing nested elements. To access nested elements, dotted notation is used. If dots are already included "
        "in the field name, then backtick pairs can be used to wrap field names containing dots. E.g. to access the "
        'subfield `baz` from a field named "foo.bar" in a struct/map the following format can be used: '
        "`` `foo.bar`.baz ``.",
        CaseInsensitiveValidString(*[syntax.value for syntax in FieldSyntax]),
        Importance.HIGH,
    )


class FieldPath:
    """Steps from a struct or a map down to one field."""

    def __init__(self, path: str, syntax: FieldSyntax = FieldSyntax.V1, key: str = "field") -> None:
        """Read `path`, the value of configuration `key`.

        Raises:
            ConfigError: a backtick has no partner, or a path of syntax V2 is empty.
        """
        if syntax is FieldSyntax.V2 and not path:
            raise ConfigError(
                f"Invalid value  for configuration {key}: A path of field syntax V2 has at least one step.",
                suggestion=f"Set {key} to a field, or to the path of a nested one such as address.city.",
                config_path=key,
            )
        self.text = path
        self.steps: tuple[str, ...] = (path,) if syntax is FieldSyntax.V1 else tuple(_nested_steps(path, key))

    @classmethod
    def from_config(cls, config: Mapping[str, Any], key: str = "field") -> FieldPath:
        """From typed values of `key` and `field.syntax.version`."""
        return cls(config[key], FieldSyntax(config[FIELD_SYNTAX_VERSION].upper()), key)

    def field_from(self, schema: Schema) -> Field | None:
        """The field in a STRUCT schema; None when there is none.

        Raises:
            DataError: the path leads through something that is not a struct.
        """
        found: Field | None = None
        for step in self.steps:
            inner = schema if found is None else found.schema
            if inner.type is not SchemaType.STRUCT:
                raise DataError(
                    f"Cannot look up fields on non-struct type: {self.text} leads through a value of type "
                    f"{inner.type.name}.",
                    suggestion="Name a field whose parents are structs.",
                )
            found = inner.field(step)
            if found is None:
                return None
        return found

    def value_from_struct(self, schema: Schema, value: Any, replace_null: bool) -> Any:
        """The field's value; None where it or a struct above it is null, or missing.

        Args:
            schema: of the struct.
            value: the struct, or None.
            replace_null: take the default of a field that is null.
        """
        for step in self.steps:
            if value is None or schema.type is not SchemaType.STRUCT:
                return None
            field = schema.field(step)
            if field is None:
                return None
            value, schema = field_value(value, field, replace_null), field.schema
        return value

    def value_from_map(self, value: Any) -> Any:
        """The value in schemaless maps; None if a step is missing or null.

        Raises:
            DataError: the path leads through something that is not a map.
        """
        for step in self.steps:
            if value is None:
                return None
            value = require_map(None, value, "nested field access").get(step)
        return value


def _nested_steps(path: str, key: str) -> Iterator[str]:
    position = 0
    while position < len(path):
        if path[position] == _BACKTICK:
            step, position = _quoted_step(path, position, key)
            yield step
        else:
            dot = path.find(_DOT, position)
            end = len(path) if dot < 0 else dot
            yield path[position:end]
            position = end + 1
    if path.endswith(_DOT):
        yield ""


def _quoted_step(path: str, opening: int, key: str) -> tuple[str, int]:
    """The step between the backtick at `opening` and its partner, and where the next step begins.

    The partner is the next backtick that a dot or the end follows; before a dot a backslash takes that meaning away
    and is dropped, at the end it makes the pair incomplete. Other backticks and backslashes are part of the name.
    """
    name, start, at = "", opening + 1, opening
    while (at := path.find(_BACKTICK, at + 1)) >= 0:
        escaped = path[at - 1] == _BACKSLASH
        if at == len(path) - 1 and not escaped:
            return name + path[start:at], at + 1
        if path[at + 1 : at + 2] == _DOT:
            if not escaped:
                return name + path[start:at], at + 2
            name, start = name + path[start : at - 1] + _BACKTICK, at + 1
    raise ConfigError(
        f"Incomplete backtick pair in path: [{path}], consider adding a backslash before backtick at position "
        f"{opening} to escape it.",
        config_path=key,
    )


class SchemaCache:
    """New schemas, cached by the old ones.

    Records of a topic have few schemas. Beyond `limit` the oldest entry is removed, so a topic with endless schemas
    costs time, not memory.
    """

    def __init__(self, make: Callable[[Schema], Schema], limit: int = 16) -> None:
        """Remember what `make` gives for up to `limit` schemas."""
        self._make, self._limit = make, limit
        self._made: dict[Schema, Schema] = {}

    def __call__(self, schema: Schema) -> Schema:
        """What `make(schema)` gives."""
        made = self._made.get(schema)
        if made is None:
            if len(self._made) >= self._limit:
                del self._made[next(iter(self._made))]
            made = self._made[schema] = self._make(schema)
        return made

    def or_none(self, schema: Schema) -> Schema | None:
        """The same for columns: None where there is no new schema, so that the record form says why."""
        try:
            return self(schema)
        except DataError:
            return None


def struct_like(source: Schema, members: Iterable[tuple[str, Schema]], **attributes: Any) -> Schema:
    """A STRUCT schema with the name, version, doc and parameters of `source` and other fields.

    As in Connect (SchemaUtil.copySchemaBasics) it is not optional and has no default unless `attributes` say so.

    Raises:
        DataError: two fields have one name, or one has none.
    """
    basics: dict[str, Any] = {
        "name": source.name,
        "version": source.version,
        "doc": source.doc,
        "parameters": source.parameters,
    }
    fields: dict[str, Field] = {}
    for name, schema in members:
        if not name:
            raise DataError("fieldName cannot be null.", suggestion="Give every field of the new schema a name.")
        if name in fields:
            raise DataError(
                f"Cannot create field because of field name duplication {name}.",
                suggestion="Choose a name that no other field of the schema has.",
            )
        fields[name] = Field(name, len(fields), schema)
    return Schema(SchemaType.STRUCT, fields=tuple(fields.values()), **(basics | attributes))


def require_fields(schema: Schema) -> tuple[Field, ...]:
    """Fields of a schema, which must be a STRUCT.

    Raises:
        DataError: it is of another type.
    """
    if schema.type is SchemaType.STRUCT:
        return schema.fields
    raise DataError(
        "Cannot list fields on non-struct type.",
        suggestion="Apply the transformation to records that contain a struct, or skip others with a predicate.",
    )
