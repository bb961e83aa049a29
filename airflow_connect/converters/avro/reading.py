"""Avro schemas as Connect schemas, and decoded Avro values as Connect values.

The meaning is that of Confluent's AvroData, with these differences: a recursive schema is refused, because Connect
schemas here are finite; a decimal on a `fixed` keeps the name of Connect's Decimal, where Confluent fails with
"Mismatched names". As in AvroData, defaults that do not fit their type are omitted with a warning.
Source: io.confluent.connect.avro.AvroData.toConnectSchema and toConnectData.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from airflow_connect.api.schema import DATE, DECIMAL, DECIMAL_SCALE, STRING, TIME, TIMESTAMP, Field, Schema, Type
from airflow_connect.converters.avro.defaults import plain_default
from airflow_connect.converters.avro.named_types import AvroNode, NamedTypes
from airflow_connect.converters.avro.names import (
    ANYTHING,
    AVRO_PROPERTY,
    DEFAULT_NAME,
    DEFAULT_PRECISION,
    ENUM_DEFAULT_PARAMETER,
    ENUM_DOC_PARAMETER,
    FIELD_DEFAULT_PARAMETER,
    FIELD_DOC_PARAMETER,
    FIXED_SIZE_PARAMETER,
    GENERALIZED_UNION,
    GENERALIZED_UNION_NAME,
    MAP_ENTRY,
    NAMESPACE,
    PRECISION_PARAMETER,
    RECORD_DOC_PARAMETER,
    SHORT_ENUM_DOC_PARAMETER,
    SHORT_RECORD_DOC_PARAMETER,
    UNION,
    AvroSettings,
    generalized_branch,
    is_union,
)
from airflow_connect.converters.avro.parsing import AvroType, branch_key, is_null, optional_member
from airflow_connect.converters.avro.read_changes import (
    change_of_array,
    change_of_decimal,
    change_of_integer,
    change_of_map,
    change_of_map_entries,
    change_of_record,
    change_of_single_branch,
    change_of_union,
    optional_change,
)
from airflow_connect.converters.schema_size import SchemaSize
from airflow_connect.converters.time_of_day import read_time
from airflow_connect.converters.value_transform import Transform
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.java.numbers import parse_integer

_LOG = logging.getLogger(__name__)
_SIMPLE = {
    "boolean": Type.BOOLEAN,
    "float": Type.FLOAT32,
    "double": Type.FLOAT64,
    "string": Type.STRING,
    "bytes": Type.BYTES,
    "long": Type.INT64,
}
_LOGICAL_INTS = {"date": (Type.INT32, DATE), "time-millis": (Type.INT32, TIME)}
_LOGICAL_TYPES = {DECIMAL: Type.BYTES, DATE: Type.INT32, TIME: Type.INT32, TIMESTAMP: Type.INT64}
_INTEGER_BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32}
_ABSENT: Any = object()


class ReadPart(NamedTuple):
    """A Connect schema, and the conversion from fastavro's value to a Connect value; None if they are equal."""

    schema: Schema
    change: Transform | None


class ReadSchema(NamedTuple):
    """How values of one Avro schema are read; `schema` None is schemaless, which `anything.read_anything` reads."""

    schema: Schema | None
    change: Transform | None


def read_schema(
    avro_type: AvroType, named: Iterable[AvroType], settings: AvroSettings, version: int | None = None
) -> ReadSchema:
    """The Connect schema of an Avro schema.

    Args:
        avro_type: as JSON.
        named: schemas that it refers to.
        settings: of the converter.
        version: for the schema, if it has no `connect.version`.

    Raises:
        SchemaError: Connect has no such type.
    """
    types = NamedTypes([*named, avro_type])
    if not isinstance(avro_type, list) and types.node(avro_type, "").full_name == ANYTHING:
        return ReadSchema(None, None)
    try:
        return ReadSchema(*_SchemaReader(types, settings).read(avro_type, "", version=version))
    except RecursionError:
        raise _unsupported("it is nested too deeply") from None


@dataclass(slots=True)
class _Draft:
    """A Connect schema under construction."""

    type: Type
    name: str | None = None
    version: int | None = None
    doc: str | None = None
    optional: bool = False
    default: Any = None
    parameters: dict[str, str] = field(default_factory=dict)
    members: list[tuple[str, Schema]] = field(default_factory=list)
    key_schema: Schema | None = None
    value_schema: Schema | None = None
    change: Transform | None = None

    def built(self) -> Schema:
        """The schema."""
        return Schema(
            self.type,
            self.optional,
            self.name,
            self.version,
            self.doc,
            self.parameters,
            self.default,
            tuple(Field(name, index, schema) for index, (name, schema) in enumerate(self.members)),
            self.key_schema,
            self.value_schema,
        )


@dataclass(frozen=True, slots=True)
class _Use:
    """What the use of a type adds to it: default and doc of the field, and whether null is also allowed."""

    optional: bool = False
    default: Any = _ABSENT
    doc: str | None = None
    version: int | None = None


_PLAIN_USE = _Use()


class _SchemaReader:
    """Reads one schema; tracks the enclosing named types."""

    def __init__(self, types: NamedTypes, settings: AvroSettings) -> None:
        self._types = types
        self._settings = settings
        self._inside: list[str] = []
        self._size = SchemaSize()
        self._unions = 0

    def read(self, avro_type: AvroType, namespace: str, use: _Use = _PLAIN_USE, version: int | None = None) -> ReadPart:
        if version is not None:
            use = _Use(use.optional, use.default, use.doc, version)
        with self._size.part():
            return self._read(avro_type, namespace, use)

    def _read(self, avro_type: AvroType, namespace: str, use: _Use) -> ReadPart:
        if isinstance(avro_type, list):
            return self._read_union(avro_type, namespace, use)
        node = self._types.node(avro_type, namespace)
        if not node.full_name:
            return self._finish(self._draft(node), node, use)
        if node.full_name in self._inside:
            raise _unsupported(f"the type {node.full_name} contains itself")
        self._inside.append(node.full_name)
        draft = self._draft(node)
        self._inside.pop()
        return self._finish(draft, node, use)

    def _draft(self, node: AvroNode) -> _Draft:
        kind = node.kind
        if kind == "int":
            return _int_draft(node)
        if kind == "long" and _logical(node) == "timestamp-millis":
            return _Draft(Type.INT64, TIMESTAMP, 1)
        if kind in ("bytes", "fixed"):
            return _bytes_draft(node)
        if kind in _SIMPLE:
            return _Draft(_SIMPLE[kind])
        if kind == "enum":
            return self._enum_draft(node)
        if kind == "record":
            return self._record_draft(node)
        if kind == "array":
            return self._array_draft(node)
        if kind == "map":
            item = self.read(node.attributes["values"], node.namespace)
            change = None if item.change is None else change_of_map(item.change)
            return _Draft(Type.MAP, key_schema=STRING, value_schema=item.schema, change=change)
        raise _unsupported("standalone null schemas are not supported by this converter")

    def _enum_draft(self, node: AvroNode) -> _Draft:
        settings, short_name = self._settings, node.full_name.rpartition(".")[2]
        draft, parameters = _Draft(Type.STRING), {}
        doc, default = node.attributes.get("doc"), node.attributes.get("default")
        if settings.connect_meta_data and doc is not None:
            short = settings.discard_type_doc_default
            parameters[SHORT_ENUM_DOC_PARAMETER if short else ENUM_DOC_PARAMETER + short_name] = str(doc)
        if settings.connect_meta_data and not settings.discard_type_doc_default and default is not None:
            parameters[ENUM_DEFAULT_PARAMETER + short_name] = str(default)
        name = settings.enum_parameter
        parameters[name] = node.full_name
        for index, symbol in enumerate(node.attributes["symbols"]):
            parameters[f"{name}.{symbol}"] = str(index) if settings.generalized_sum_types else symbol
        draft.parameters = parameters
        return draft

    def _record_draft(self, node: AvroNode) -> _Draft:
        draft, changes = _Draft(Type.STRUCT), {}
        keeps_docs = self._settings.connect_meta_data and not self._settings.discard_type_doc_default
        if keeps_docs and node.attributes.get("doc") is not None:
            draft.parameters[RECORD_DOC_PARAMETER] = str(node.attributes["doc"])
        for member in node.attributes["fields"]:
            name, doc = member["name"], member.get("doc")
            if keeps_docs and doc is not None:
                draft.parameters[FIELD_DOC_PARAMETER + name] = str(doc)
            part = self.read(member["type"], node.namespace, _Use(default=member.get("default", _ABSENT), doc=doc))
            draft.members.append((name, part.schema))
            if part.change is not None:
                changes[name] = part.change
        draft.change = change_of_record(changes) if changes else None
        return draft

    def _array_draft(self, node: AvroNode) -> _Draft:
        items = node.attributes["items"]
        entry = None if isinstance(items, list) else self._types.node(items, node.namespace)
        if entry is not None and _is_map_entry(entry):
            fields = {f["name"]: f["type"] for f in entry.attributes["fields"]}
            if fields.keys() != {"key", "value"} or len(entry.attributes["fields"]) != 2:
                raise _unsupported(
                    "found map encoded as array of key-value pairs, but array elements do not match the expected format"
                )
            key, item = (self.read(fields[name], entry.namespace) for name in ("key", "value"))
            entries = change_of_map_entries(key.change, item.change)
            return _Draft(Type.MAP, key_schema=key.schema, value_schema=item.schema, change=entries)
        part = self.read(items, node.namespace)
        if _takes_no_bytes(part.schema):
            # Otherwise a message of ten bytes could hold more elements than fit into memory.
            raise _unsupported("the elements of an array take no bytes")
        change = None if part.change is None else change_of_array(part.change)
        return _Draft(Type.ARRAY, value_schema=part.schema, change=change)

    def _read_union(self, members: list[AvroType], namespace: str, use: _Use) -> ReadPart:
        if len(members) == 1 and self._settings.flatten_singleton_union:
            part = self.read(members[0], namespace, _Use(doc=use.doc))
            return ReadPart(part.schema, change_of_single_branch(part.change))
        member = optional_member(members)
        if member is not None:
            return self.read(member, namespace, _Use(optional=True, doc=use.doc))
        name, draft = UNION, _Draft(Type.STRUCT)
        if self._settings.generalized_sum_types:
            name = f"{GENERALIZED_UNION_NAME}{self._unions}"
            self._unions += 1
            draft.parameters[GENERALIZED_UNION] = name
        draft.name = name
        branches: dict[str, tuple[str, Transform | None]] = {}
        for index, branch in enumerate(members):
            if is_null(branch):
                draft.optional = True
                continue
            field_name = self._branch_name(self._types.node(branch, namespace), index)
            if any(field_name == known for known, _ in branches.values()):
                raise _unsupported(f"multiple union schemas map to the Connect union field name {field_name}")
            part = self.read(branch, namespace, _Use(optional=True))
            draft.members.append((field_name, part.schema))
            branches[branch_key(index)] = (field_name, part.change)
        draft.change = change_of_union([name for name, _ in draft.members], branches)
        return self._finish(draft, AvroNode("union", {"members": members}, namespace, ""), use)

    def _branch_name(self, node: AvroNode, index: int) -> str:
        if self._settings.generalized_sum_types:
            return generalized_branch(index)
        if node.full_name:
            return node.full_name if self._settings.enhanced_schema else node.full_name.rpartition(".")[2]
        return node.kind

    def _finish(self, draft: _Draft, node: AvroNode, use: _Use) -> ReadPart:
        attributes = {} if node.kind == "union" else node.attributes
        self._add_doc(draft, attributes, use)
        _add_version(draft, attributes, use.version)
        if self._settings.connect_meta_data:
            draft.parameters |= _given_parameters(attributes)
        draft.parameters |= {k: str(v) for k, v in attributes.items() if k.startswith(AVRO_PROPERTY)}
        name = attributes.get("connect.name", node.full_name or None)
        if isinstance(name, str) and not name.startswith(DEFAULT_NAME):
            _add_name(draft, name, is_given="connect.name" in attributes)
        elif name is not None and not isinstance(name, str):
            raise _unsupported(f"invalid schema name: {name}")
        draft.change = _final_change(draft)
        self._add_default(draft, node, use)
        draft.optional |= use.optional
        return ReadPart(draft.built(), optional_change(draft.change) if draft.optional else draft.change)

    def _add_doc(self, draft: _Draft, attributes: dict[str, Any], use: _Use) -> None:
        if not self._settings.discard_type_doc_default:
            if self._settings.connect_meta_data:
                draft.doc = attributes.get("connect.doc")
            return
        doc = attributes.get("doc")
        draft.doc = use.doc if use.doc is not None else doc if doc is not None else attributes.get("connect.doc")
        if self._settings.connect_meta_data and doc is not None:
            draft.parameters[SHORT_RECORD_DOC_PARAMETER] = str(doc)

    def _add_default(self, draft: _Draft, node: AvroNode, use: _Use) -> None:
        given, own = use.default, node.attributes.get("connect.default")
        if given is _ABSENT:
            given = _ABSENT if own is None else own
        elif own is None and self._settings.connect_meta_data and not self._settings.discard_type_doc_default:
            draft.parameters[FIELD_DEFAULT_PARAMETER] = "true"
        if given is _ABSENT or given is None:
            return
        avro_type = node.attributes["members"] if node.kind == "union" else node
        try:
            plain = plain_default(self._types, avro_type, node.namespace, given)
            draft.default = plain if draft.change is None or plain is None else draft.change(plain)
        except (DataError, ArithmeticError, ValueError) as error:
            _LOG.warning("An Avro default is omitted, because it does not fit its type: %s", error)


def _takes_no_bytes(schema: Schema) -> bool:
    """Whether values are encoded in zero bytes: structs of such values, and fixed types of size 0."""
    if schema.optional or is_union(schema):
        return False
    if schema.type is Type.STRUCT:
        return all(_takes_no_bytes(field.schema) for field in schema.fields)
    return schema.parameters.get(FIXED_SIZE_PARAMETER) == "0"


def _int_draft(node: AvroNode) -> _Draft:
    logical, kind = _logical(node), node.attributes.get("connect.type")
    if logical in _LOGICAL_INTS:
        made, name = _LOGICAL_INTS[logical]
        return _Draft(made, name, 1)
    if logical or kind is None:
        return _Draft(Type.INT32)
    if kind not in ("int8", "int16"):
        raise _unsupported(f"the connect.type {kind} of an Avro int is neither int8 nor int16")
    return _Draft(Type(kind))


def _bytes_draft(node: AvroNode) -> _Draft:
    draft = _Draft(Type.BYTES)
    if _logical(node) == "decimal":
        scale, precision = node.attributes.get("scale"), node.attributes.get("precision")
        draft = _Draft(Type.BYTES, DECIMAL, 1)
        draft.parameters[DECIMAL_SCALE] = str(scale) if isinstance(scale, int) else "0"
        if precision is not None and not isinstance(precision, int):
            raise _unsupported("the precision of a decimal must be a JSON integer")
        if precision is not None and precision != DEFAULT_PRECISION:
            draft.parameters[PRECISION_PARAMETER] = str(precision)
    if node.kind == "fixed":
        draft.parameters[FIXED_SIZE_PARAMETER] = str(node.attributes["size"])
    return draft


def _logical(node: AvroNode) -> str:
    """The logical type in lower case; AvroData compares without case."""
    return str(node.attributes.get("logicalType", "")).lower()


def _is_map_entry(node: AvroNode) -> bool:
    is_named = node.full_name == f"{NAMESPACE}.{MAP_ENTRY}"
    return node.kind == "record" and (is_named or node.attributes.get("connect.internal.type") == MAP_ENTRY)


def _add_version(draft: _Draft, attributes: dict[str, Any], of_use: int | None) -> None:
    given = attributes.get("connect.version")
    if given is not None and not isinstance(given, int):
        raise _unsupported(f"invalid Connect version found: {given}")
    if given is not None and draft.version is not None and given != draft.version:
        raise _unsupported(f"mismatched versions: {draft.name} has version {draft.version}, the schema says {given}")
    if draft.version is None:
        draft.version = given if given is not None else of_use


def _given_parameters(attributes: dict[str, Any]) -> dict[str, str]:
    parameters = attributes.get("connect.parameters")
    if parameters is None:
        return {}
    if not isinstance(parameters, dict) or not all(isinstance(v, str) for v in parameters.values()):
        raise _unsupported("connect.parameters must be a JSON object of strings")
    return parameters


def _add_name(draft: _Draft, name: str, is_given: bool) -> None:
    if draft.name is None:
        draft.name = name
    elif draft.name != name and is_given:
        raise _unsupported(f"mismatched names: {draft.name} differs from connect.name {name}")


def _final_change(draft: _Draft) -> Transform | None:
    wanted = _LOGICAL_TYPES.get(draft.name or "")
    if wanted is not None and draft.type is not wanted:
        raise _unsupported(f"{draft.name} needs {wanted.name}, but the Avro type is {draft.type.name}")
    if draft.name == DECIMAL:
        scale = draft.parameters.get(DECIMAL_SCALE, "")
        try:
            return change_of_decimal(parse_integer(scale, 32))
        except ValueError:
            raise _unsupported("invalid Decimal schema: scale parameter not found, or no integer of 32 bits") from None
    if draft.name == TIME:
        return read_time
    bits = _INTEGER_BITS.get(draft.type)
    return change_of_integer(bits) if bits else draft.change


def _unsupported(reason: str) -> SchemaError:
    return SchemaError(
        f"The Avro schema cannot be read as a Connect schema: {reason}.",
        code="data.schema_unsupported",
        suggestion="Change the schema, or keep the bytes with ByteArrayConverter.",
    )
