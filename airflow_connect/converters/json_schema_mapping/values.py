"""Values between Connect and the JSON that goes with a JSON Schema: one function per schema, built once.

Scalars are read and written as JsonConverter does it. Sum types are the plain value, maps with keys that are not
required text are arrays of `{"key":K,"value":V}`, and a missing property is None even where it is required. Source:
io.confluent.connect.json.JsonSchemaData.toConnectData and fromConnectData (8.1).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any

from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.converters.field_errors import in_field
from airflow_connect.converters.json.reader import Reader, ReadOptions, identity_type, scalar_reader
from airflow_connect.converters.json.strict import strict_reader
from airflow_connect.converters.json.text import MISSING, NUMBERS, string_text
from airflow_connect.converters.json.writer import WriterOptions, scalar_writer
from airflow_connect.converters.json_schema_mapping import names
from airflow_connect.converters.json_schema_mapping.names import JsonSchemaOptions
from airflow_connect.converters.map_entries import map_of_entries
from airflow_connect.converters.union_members import member_of
from airflow_connect.converters.unread import joined
from airflow_connect.errors import DataError

_PLAIN = ReadOptions()

Writer = Callable[[Any], str | None]
"""A value to JSON text, or None where the property is to be left out."""

_INTEGERS = (Type.INT8, Type.INT16, Type.INT32, Type.INT64)
_FITS: dict[Type, Callable[[Any], bool]] = {
    **dict.fromkeys(_INTEGERS, lambda node: type(node) is int),
    **dict.fromkeys((Type.FLOAT32, Type.FLOAT64), lambda node: type(node) in NUMBERS),
    Type.BOOLEAN: lambda node: type(node) is bool,
    Type.STRING: lambda node: type(node) is str,
    Type.BYTES: lambda node: type(node) in (str, Decimal),
    Type.ARRAY: lambda node: type(node) is list,
    Type.MAP: lambda node: type(node) in (dict, list),
    Type.STRUCT: lambda node: False,
}


# Reading


def value_reader(schema: Schema, options: ReadOptions = _PLAIN) -> Reader:
    """A function from parsed JSON (`json_text.MISSING` for none) to values of `schema`."""
    is_strict = options.is_strict
    build = _READERS.get(schema.type)
    read = scalar_reader(schema, options) if build is None else build(schema, options)
    if schema.type is Type.STRING and not schema.parameters.keys().isdisjoint((names.ENUM, names.GENERAL_ENUM)):
        read = _enum_text
    if is_strict:
        read = strict_reader(schema, read)
    default, is_optional = schema.default, schema.optional

    def read_nullable(node: Any) -> Any:
        if node is not None and node is not MISSING:
            return read(node)
        if default is not None or node is MISSING or is_optional:
            return default
        raise DataError(
            f"Invalid null value for required {schema.type.name} field.",
            suggestion="If the schema does not list the field as required, set"
            " value.converter.use.optional.for.nonrequired=true (key.converter. for keys). Else make it nullable in the"
            " schema, or give it a default.",
        )

    return read_nullable


def _enum_text(node: Any) -> str:
    """Confluent's converter makes every enum a STRING, and null of each value that is not text."""
    if type(node) is str:
        return node
    raise DataError(
        f"The value of an enum is {_kind(node)}, but Connect has only text for enums.",
        code="data.json_type",
        suggestion='Give the enum its type in the JSON Schema, such as "type": "integer", or correct the producer.',
    )


def _array_reader(schema: Schema, options: ReadOptions) -> Reader:
    assert schema.value_schema is not None
    element = value_reader(schema.value_schema, options)

    def read(node: Any) -> list[Any]:
        if type(node) is list:
            return [element(item) for item in node]
        # As JsonConverter: the values of an object, nothing in a scalar.
        options.changed(node)
        return [element(item) for item in node.values()] if type(node) is dict else []

    return read


def _map_reader(schema: Schema, options: ReadOptions) -> Reader:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key = value_reader(schema.key_schema, options)
    value = value_reader(schema.value_schema, options)
    if names.has_object_form(schema):

        def read_object(node: Any) -> dict[str, Any]:
            if type(node) is not dict:
                raise _mismatch("Maps with string fields should be encoded as JSON objects, but found", node)
            return {k: value(v) for k, v in node.items()}

        return read_object

    def read_entries(node: Any) -> dict[Any, Any]:
        if type(node) is not list:
            raise _mismatch("Maps with non-string fields should be encoded as JSON array of objects, but found", node)
        entries = map(_checked_entry, node)
        pairs = ((key(entry.get(names.KEY, MISSING)), value(entry.get(names.VALUE, MISSING))) for entry in entries)
        return map_of_entries(pairs, "an array")

    return read_entries


def _checked_entry(entry: Any) -> dict[str, Any]:
    if type(entry) is not dict:
        raise _mismatch("Found invalid map entry instead of object:", entry)
    if len(entry) != 2:
        raise DataError(f"Found invalid map entry, expected length 2 but found {len(entry)}.")
    return entry


def _struct_reader(schema: Schema, options: ReadOptions) -> Reader:
    if names.is_union(schema):
        return _union_reader(schema, options)
    unread, path, known = options.unread, options.path, frozenset(schema.fields_by_name)
    members = [(f.name, identity_type(f.schema), _member_reader(f, options)) for f in schema.fields]

    def read(node: Any) -> dict[str, Any]:
        if type(node) is not dict:
            raise _mismatch("Structs should be encoded as JSON objects, but found", node)
        if unread is not None and not known.issuperset(node):
            unread.add_members(node, known, path)
        get, each = node.get, iter(members)
        try:
            return {name: v if type(v := get(name, MISSING)) is kind else member(v) for name, kind, member in each}
        except DataError as error:
            raise in_field(error, members, each) from error

    return read


def _member_reader(field: Field, options: ReadOptions) -> Reader:
    return value_reader(field.schema, options._replace(path=joined(options.path, field.name)))


def _union_reader(schema: Schema, options: ReadOptions) -> Reader:
    readers = {f.name: value_reader(f.schema, options) for f in schema.fields}
    strict = {f.name: _unchanged_reader(f.schema) for f in schema.fields}
    nothing: dict[str, Any] = dict.fromkeys(readers)

    def read(node: Any) -> dict[str, Any]:
        names_that_fit = _fitting(schema.fields, node)
        if not names_that_fit:
            raise _mismatch("Did not find matching oneof field for data, which is", node)
        if len(names_that_fit) > 1:
            # Confluent's converter takes the first one, even if it changes a value that fits another one as it is.
            for name in names_that_fit:
                with suppress(DataError):
                    strict[name](node)
                    return {**nothing, name: readers[name](node)}
        first = names_that_fit[0]
        return {**nothing, first: readers[first](node)}

    return read


def _unchanged_reader(schema: Schema) -> Reader:
    """Refuses what another type of a union may hold as it is, such as a text that is no symbol of an enum."""
    read = value_reader(schema, ReadOptions(is_strict=True))
    word = next((one for one in (names.ENUM, names.GENERAL_ENUM) if one in schema.parameters), None)
    if schema.type is not Type.STRING or word is None:
        return read

    def read_symbol(node: Any) -> Any:
        if f"{word}.{node}" not in schema.parameters:
            raise _mismatch("The enum of a union does not have the value, which is", node)
        return read(node)

    return read_symbol


def _fitting(fields: Sequence[Field], node: Any) -> list[str]:
    """The simple types that fit, then the structs that share names with the object, those that share most first."""
    found = [f.name for f in fields if _FITS[f.schema.type](node)]
    scores = {f.name: _shared_names(f, node) for f in fields}
    structs = sorted((name for name, score in scores.items() if score >= 0), key=lambda name: -scores[name])
    # Nothing of an object would be left in a struct without any of its names, unless no type has one.
    return [*found, *(name for name in structs if scores[name])] or structs


def _shared_names(field: Field, node: Any) -> int:
    if field.schema.type is not Type.STRUCT or type(node) is not dict:
        return -1
    return len(field.schema.fields_by_name.keys() & node.keys())


_READERS: dict[Type, Callable[[Schema, ReadOptions], Reader]] = {
    Type.ARRAY: _array_reader,
    Type.MAP: _map_reader,
    Type.STRUCT: _struct_reader,
}


def _mismatch(message: str, node: Any) -> DataError:
    return DataError(f"{message} {_kind(node)}.", suggestion="The message does not fit the schema that it names.")


def _kind(node: Any) -> str:
    return {dict: "OBJECT", list: "ARRAY", str: "STRING", bool: "BOOLEAN", type(None): "NULL"}.get(type(node), "NUMBER")


# Writing


def value_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    """A function from values of `schema` to JSON text; None for a null that is neither optional nor has a default."""
    build = _WRITERS.get(schema.type)
    write = scalar_writer(schema, WriterOptions(options.numeric_decimals)) if build is None else build(schema, options)
    if schema.default is not None and not options.ignore_default_for_nullables:
        null = write(schema.default)
    else:
        null = "null" if schema.optional else None
    return lambda value: null if value is None else write(value)


def _array_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.value_schema is not None
    element = value_writer(schema.value_schema, options)

    def write(value: Any) -> str:
        if not isinstance(value, list | tuple):
            raise _invalid(schema, value)
        return "[" + ",".join([element(item) or "null" for item in value]) + "]"

    return write


def _map_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    assert schema.key_schema is not None
    assert schema.value_schema is not None
    key, item = value_writer(schema.key_schema, options), value_writer(schema.value_schema, options)
    is_object = names.has_object_form(schema)

    def write(value: Any) -> str:
        if not isinstance(value, dict):
            raise _invalid(schema, value)
        pairs = [(key(k), item(v) or "null") for k, v in value.items()]
        if not is_object:
            return "[" + ",".join([f'{{"key":{k or "null"},"value":{v}}}' for k, v in pairs]) + "]"
        if any(k is None for k, _ in pairs):
            raise _invalid(schema.key_schema or schema, None)
        return "{" + ",".join([f"{k}:{v}" for k, v in pairs]) + "}"

    return write


def _struct_writer(schema: Schema, options: JsonSchemaOptions) -> Writer:
    members = [(f.name, string_text(f.name), value_writer(f.schema, options)) for f in schema.fields]
    known, writers = schema.fields_by_name.keys(), {name: member for name, _, member in members}
    is_union = names.is_union(schema)

    def write(value: Any) -> str | None:
        if type(value) is not dict:
            raise _invalid(schema, value)
        if not value.keys() <= known:
            unknown = ", ".join(map(repr, sorted(map(str, value.keys() - known))))
            raise DataError(
                f"Mismatching schema: the struct holds {unknown}, the schema does not.",
                suggestion="Add the fields to the schema.",
            )
        if is_union:
            held = member_of(value, known)
            if held is None:
                return "null" if schema.optional else None
            return writers[held](value[held])
        texts = [(label, member(value.get(name))) for name, label, member in members]
        return "{" + ",".join([f"{label}:{text}" for label, text in texts if text is not None]) + "}"

    return write


_WRITERS: dict[Type, Callable[[Schema, JsonSchemaOptions], Writer]] = {
    Type.ARRAY: _array_writer,
    Type.MAP: _map_writer,
    Type.STRUCT: _struct_writer,
}


def _invalid(schema: Schema, value: Any) -> DataError:
    return DataError(
        f"Invalid type for {schema.type.name}: {type(value).__name__}.",
        suggestion="The value does not fit its schema: check the source and the transformations.",
    )
