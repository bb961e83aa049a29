"""JSON Schema documents as Connect schemas.

Source: io.confluent.connect.json.JsonSchemaData.toConnectSchema (8.1). Two intended differences: the properties of an
object keep the order of the document (there they have the order of a hash map), and a recursive document is refused,
because Connect schemas here are trees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.schema import STRING, Field, Schema, Type
from airflow_connect.converters.json.text import MISSING
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.json_schema_mapping.references import References, SchemaPart
from airflow_connect.converters.json_schema_mapping.values import value_reader
from airflow_connect.converters.schema_size import SchemaSize
from airflow_connect.errors import SchemaError

_NUMBER_TYPES = {
    "int8": Type.INT8,
    "int16": Type.INT16,
    "int32": Type.INT32,
    "int64": Type.INT64,
    "float32": Type.FLOAT32,
    "float64": Type.FLOAT64,
    "bytes": Type.BYTES,
}
_OWN_WORDS = {"title", "description", "default", "$id", "id", "$schema", names.CONNECT_INDEX, names.CONNECT_TYPE}
_OWN_WORDS |= {names.CONNECT_VERSION, names.CONNECT_PARAMETERS}
# Keywords that belong to one type, for schemas that omit the type.
_TELLING_WORDS = (
    ("object", {"properties", "required", "minProperties", "maxProperties", "additionalProperties", "dependencies"}),
    ("array", {"items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains"}),
    ("number", {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}),
    ("string", {"minLength", "maxLength", "pattern", "format"}),
)
_COMBINED = ("oneOf", "anyOf", "allOf")


def schema_to_connect(references: References, options: JsonSchemaOptions, version: int | None = None) -> Schema:
    """The Connect schema of a document.

    Args:
        references: the document, and those that it refers to.
        options: of the converter.
        version: of the document in its subject; `connect.version` goes before it.

    Raises:
        SchemaError: a part of the document cannot be represented as a Connect schema.
    """
    try:
        return _Reading(references, options).schema(references.root, version, False)
    except (TypeError, AttributeError) as error:
        raise SchemaError(
            f"The JSON Schema has a keyword with a value of the wrong type: {error}.",
            code="data.schema",
            suggestion="Compare it with the rules of JSON Schema.",
        ) from error
    except RecursionError as error:
        raise SchemaError(
            "The JSON Schema is nested too deeply to be read.", code="data.schema", suggestion="Flatten it."
        ) from error


@dataclass
class _Reading:
    """One pass over a document; `unions` counts the sum types seen, `entered` the references on the way."""

    references: References
    options: JsonSchemaOptions
    size: SchemaSize = field(default_factory=SchemaSize)
    unions: int = 0
    entered: tuple[int, ...] = ()

    def schema(self, part: SchemaPart, version: int | None, optional: bool) -> Schema:
        with self.size.part():
            return self._of_any(part, version, optional)

    def _of_any(self, part: SchemaPart, version: int | None, optional: bool) -> Schema:
        node = part.node
        if not isinstance(node, dict):
            raise _unsupported(node)
        if isinstance(node.get("$ref"), str):
            return self._within(self._referred(part), version, optional)
        pieces = self._pieces(part)
        if len(pieces) == 1:
            return self._one(part, pieces[0], version, optional)
        return self._all_of(part, [SchemaPart(piece, part.base) for piece in pieces], version, optional)

    def _referred(self, part: SchemaPart) -> SchemaPart:
        return self.references.find(part.node["$ref"], part.base)

    def _within(self, target: SchemaPart, version: int | None, optional: bool) -> Schema:
        if id(target.node) in self.entered:
            raise SchemaError(
                "The JSON Schema is recursive, which is not supported.",
                code="data.schema_recursive",
                suggestion="Pass the topic through with ByteArrayConverter.",
            )
        before = self.entered
        self.entered = (*before, id(target.node))
        try:
            return self.schema(target, version, optional)
        finally:
            self.entered = before

    def _pieces(self, part: SchemaPart) -> list[dict[str, Any]]:
        """The node itself, or the combination of its keywords, which must all apply."""
        node = part.node
        kinds = [word for word in ("enum", "const", *_COMBINED) if word in node]
        types = _types(node)
        if len(kinds) + len(types) == 1 and not isinstance(node.get("type"), list):
            return [node]
        bare = {word: value for word, value in node.items() if word not in _OWN_WORDS}
        pieces = [{word: bare[word]} for word in kinds]
        plain = {word: value for word, value in bare.items() if word not in kinds}
        if isinstance(node.get("type"), list):
            plain = {"anyOf": [{**plain, "type": kind} for kind in types]}
            return [*pieces, plain] if pieces else [{**node, **plain, "type": None}]
        return [*pieces, *({**plain, "type": kind} for kind in types)]

    def _one(self, part: SchemaPart, node: dict[str, Any], version: int | None, optional: bool) -> Schema:
        """A node of one kind, with its own title, description and default."""
        part = SchemaPart(node, part.base)
        if "allOf" in node:
            return self._all_of(part, [SchemaPart(member, part.base) for member in node["allOf"]], version, optional)
        sum_word = "oneOf" if "oneOf" in node else "anyOf" if "anyOf" in node else ""
        if sum_word:
            parts = [SchemaPart(member, part.base) for member in node[sum_word]]
            others = [part for part in parts if not _is_null(part.node)]
            if len(parts) == 2 and len(others) == 1:
                return self.schema(others[0], version, True)
            made = self._union(others, len(others) < len(parts))
        elif "enum" in node:
            made = self._enum(node["enum"])
        else:
            made = self._plain(part)
        return self._described(made, node, version, optional)

    def _plain(self, part: SchemaPart) -> Schema:
        node = part.node
        kind = next(iter(_types(node)), "")
        connect_type = node.get(names.CONNECT_TYPE)
        if kind == "boolean":
            return Schema(Type.BOOLEAN)
        if kind == "string":
            return Schema(Type.BYTES if connect_type == "bytes" else Type.STRING)
        if kind in ("integer", "number"):
            if connect_type is None:
                return Schema(Type.INT64 if kind == "integer" else Type.FLOAT64)
            if connect_type in _NUMBER_TYPES:
                return Schema(_NUMBER_TYPES[connect_type])
            raise SchemaError(f"The JSON Schema has the unsupported {names.CONNECT_TYPE} {connect_type}.")
        if kind == "array":
            return self._array(part)
        if kind == "object":
            return self._object(part)
        raise _unsupported(node)

    def _array(self, part: SchemaPart) -> Schema:
        items = part.node.get("items")
        if not isinstance(items, dict):
            raise SchemaError(
                "Array schema did not specify the items type.",
                code="data.schema",
                suggestion='Add "items" with one schema for all items.',
            )
        if part.node.get(names.CONNECT_TYPE) == "map" and isinstance(items.get("properties"), dict):
            key, value = (
                self.schema(SchemaPart(items["properties"].get(word), part.base), None, False)
                for word in (names.KEY, names.VALUE)
            )
            return Schema(Type.MAP, key_schema=key, value_schema=value)
        return Schema(Type.ARRAY, value_schema=self.schema(SchemaPart(items, part.base), None, False))

    def _object(self, part: SchemaPart) -> Schema:
        node = part.node
        if node.get(names.CONNECT_TYPE) == "map":
            value = self.schema(SchemaPart(node.get("additionalProperties"), part.base), None, False)
            return Schema(Type.MAP, key_schema=STRING, value_schema=value)
        properties = list((node.get("properties") or {}).items())
        positions = {name: _index(part, position) for position, (name, part) in enumerate(properties)}
        properties.sort(key=lambda item: positions[item[0]])
        required = node.get("required") or ()
        return self._struct([(name, SchemaPart(member, part.base), name in required) for name, member in properties])

    def _struct(self, members: list[tuple[str, SchemaPart, bool]]) -> Schema:
        """Members are (name, schema, whether it is required)."""
        fields = []
        for index, (name, part, required) in enumerate(members):
            optional = self.options.optional_for_nonrequired and not required
            fields.append(Field(name, index, self.schema(part, None, optional)))
        return Schema(Type.STRUCT, fields=tuple(fields))

    def _enum(self, symbols: list[Any]) -> Schema:
        general = self.options.generalized_sum_types
        word = names.GENERAL_ENUM if general else names.ENUM
        # JSON enums have no name.
        parameters = {word: ""}
        for index, symbol in enumerate(symbols):
            text = names.ENUM_NULL if symbol is None else _java_text(symbol)
            parameters[f"{word}.{text}"] = str(index) if general else text
        return Schema(Type.STRING, parameters=parameters)

    def _union(self, parts: list[SchemaPart], optional: bool) -> Schema:
        if self.options.generalized_sum_types:
            name, field = f"{names.GENERAL_UNION_NAME}{self.unions}", names.GENERAL_UNION_FIELD
            parameters = {names.GENERAL_UNION: name}
            self.unions += 1
        else:
            name, field, parameters = names.ONE_OF, f"{names.ONE_OF}.field.", {}
        fields = tuple(Field(f"{field}{n}", n, self.schema(part, None, True)) for n, part in enumerate(parts))
        return Schema(Type.STRUCT, optional, name, parameters=parameters, fields=fields)

    def _described(self, made: Schema, node: dict[str, Any], version: int | None, optional: bool) -> Schema:
        """Title, description, version, parameters and default of a node."""
        own_version = node.get(names.CONNECT_VERSION)
        parameters = node.get(names.CONNECT_PARAMETERS) or {}
        made = replace(
            made,
            name=made.name or _text(node, "title"),
            version=own_version if type(own_version) is int else version,
            doc=_text(node, "description"),
            parameters={**made.parameters, **{str(k): str(v) for k, v in parameters.items()}},
        )
        default = node.get("default", MISSING)
        if default is not MISSING and default is not None:
            made = replace(made, default=value_reader(made)(default))
        return replace(made, optional=True) if optional else made

    def _all_of(self, whole: SchemaPart, parts: list[SchemaPart], version: int | None, optional: bool) -> Schema:
        """The combination of all parts: the properties of all, or else the part that determines the type."""
        members: dict[str, tuple[str, SchemaPart, bool]] = {}
        for part in parts:
            self._collect(part, members, ())
        if members:
            made = self._struct(list(members.values()))
            return replace(made, optional=True) if optional else made
        for is_wanted in _PRECEDENCE:
            for part in parts:
                if isinstance(part.node, dict) and is_wanted(part.node) and _gives_type(part.node, parts):
                    return self.schema(part, version, optional)
        raise _unsupported(whole.node)

    def _collect(
        self, part: SchemaPart, members: dict[str, tuple[str, SchemaPart, bool]], entered: tuple[int, ...]
    ) -> None:
        node = part.node
        if not isinstance(node, dict) or id(node) in entered:
            return
        with self.size.part():
            self._collect_parts(part, members, (*entered, id(node)))

    def _collect_parts(
        self, part: SchemaPart, members: dict[str, tuple[str, SchemaPart, bool]], entered: tuple[int, ...]
    ) -> None:
        node = part.node
        if isinstance(node.get("$ref"), str):
            self._collect(self._referred(part), members, entered)
            return
        for inner in node.get("allOf") or ():
            self._collect(SchemaPart(inner, part.base), members, entered)
        required = node.get("required") or ()
        for name, schema in (node.get("properties") or {}).items():
            members[name] = (name, SchemaPart(schema, part.base), name in required)


def _has(*words: str) -> Callable[[dict[str, Any]], bool]:
    return lambda node: any(word in node for word in words)


def _is_of(*kinds: str) -> Callable[[dict[str, Any]], bool]:
    return lambda node: not _has("enum", "const", *_COMBINED)(node) and any(kind in kinds for kind in _types(node))


# Sum types before enums before plain types, as in JsonSchemaData.allOfToConnectSchema.
_PRECEDENCE: tuple[Callable[[dict[str, Any]], bool], ...] = (
    _has("oneOf", "anyOf"),
    _has("allOf"),
    _has("enum"),
    _is_of("number", "integer"),
    _is_of("string"),
    _has("$ref"),
    _is_of("array", "object", "boolean"),
)


def _gives_type(node: dict[str, Any], parts: list[SchemaPart]) -> bool:
    """Whether a part determines the type: an enum does not if there are numbers or a const, whose type counts."""
    others = [part.node for part in parts if isinstance(part.node, dict)]
    if "enum" in node:
        return not any(map(_is_of("number", "integer", "boolean", "array", "object"), others)) and not any(
            "const" in other for other in others
        )
    return True


def _types(node: dict[str, Any]) -> list[str]:
    """The JSON types that a node names, or that its other keywords imply."""
    kind = node.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return [str(item) for item in kind]
    return [name for name, words in _TELLING_WORDS if not words.isdisjoint(node)]


def _is_null(node: Any) -> bool:
    return isinstance(node, dict) and node.get("type") == "null"


def _index(node: Any, position: int) -> int:
    index = node.get(names.CONNECT_INDEX) if isinstance(node, dict) else None
    return index if type(index) is int else position


def _text(node: dict[str, Any], word: str) -> str | None:
    found = node.get(word)
    return found if isinstance(found, str) else None


def _java_text(symbol: Any) -> str:
    if isinstance(symbol, bool):
        return "true" if symbol else "false"
    return str(symbol)


def _unsupported(node: Any) -> SchemaError:
    shown = "without a type" if isinstance(node, dict) else f"that is {type(node).__name__}"
    if isinstance(node, dict) and isinstance(node.get("type"), str):
        shown = f"of type {node['type']}"
    return SchemaError(
        f"Unsupported schema type: the JSON Schema has a part {shown}, for which there is no Connect schema.",
        code="data.schema",
        suggestion="Give each part a type: boolean, integer, number, string, array, object, or a oneOf of these.",
    )
