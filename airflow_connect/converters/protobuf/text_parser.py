"""A .proto text as a FileDescriptorProto, as protoc's parser makes it: names are resolved when it enters a pool.

proto2, proto3 and editions. Options of one's own, extensions and services have no meaning for values and are left
out, but for Confluent's `(confluent.field_meta)`, which names Connect types. Source: Protocol Buffers language
specification.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, text_format

from airflow_connect.api.errors import SchemaError
from airflow_connect.converters.protobuf import meta
from airflow_connect.converters.protobuf.tokens import Tokens

_Field = descriptor_pb2.FieldDescriptorProto
SCALARS = {
    name: getattr(_Field, f"TYPE_{name.upper()}")
    for name in (
        *("double", "float", "int32", "int64", "uint32", "uint64", "sint32", "sint64"),
        *("fixed32", "fixed64", "sfixed32", "sfixed64", "bool", "string", "bytes"),
    )
}
_LABELS = {
    "optional": _Field.LABEL_OPTIONAL,
    "required": _Field.LABEL_REQUIRED,
    "repeated": _Field.LABEL_REPEATED,
}
# Words of edition 2024 before message and enum; what may see a type has no meaning here.
_VISIBILITIES = ("export", "local")
_MEMBERS = ("message", "enum", "oneof", "extend", "reserved", "extensions", "option", "map", ";", *_VISIBILITIES)


def parse_proto(text: str, name: str) -> descriptor_pb2.FileDescriptorProto:
    """The descriptor of the file `name` with this text.

    Raises:
        SchemaError: not the language, with the line.
    """
    try:
        return _Parser(text, name).file()
    except RecursionError as error:
        raise SchemaError(
            f"The Protobuf schema {name} is nested too deeply to be read.", code="data.schema", suggestion="Flatten it."
        ) from error


class _Parser:
    """Goes through one text from the front to the end."""

    def __init__(self, text: str, name: str) -> None:
        self._tokens = Tokens(text)
        self._file = descriptor_pb2.FileDescriptorProto(name=name)

    @property
    def _is_proto3(self) -> bool:
        return bool(self._file.syntax == "proto3")

    def file(self) -> descriptor_pb2.FileDescriptorProto:
        tokens, file = self._tokens, self._file
        while tokens.peek.kind != "end":
            statement = tokens.take().text
            if statement == "syntax":
                tokens.expect("=")
                file.syntax = tokens.string()
                tokens.expect(";")
            elif statement == "edition":
                self._edition()
            elif statement == "package":
                file.package = tokens.dotted()
                tokens.expect(";")
            elif statement == "import":
                self._import()
            elif statement == "message":
                self._message(file.message_type.add())
            elif statement == "enum":
                self._enum(file.enum_type.add())
            elif statement == "option":
                self._option_statement(file.options)
            elif statement in ("service", "extend"):
                tokens.dotted()
                tokens.skip_block("{", "}")
            elif statement not in (";", *_VISIBILITIES):
                tokens.fail(f"{statement!r} is no statement")
        return file

    def _edition(self) -> None:
        self._tokens.expect("=")
        edition = f"EDITION_{self._tokens.string()}"
        if edition not in set(descriptor_pb2.Edition.keys()):
            self._tokens.fail(f"{edition} is not known")
        self._file.syntax = "editions"
        self._file.edition = descriptor_pb2.Edition.Value(edition)
        self._tokens.expect(";")

    def _import(self) -> None:
        kind = self._tokens.accept("public", "weak", "option")
        if kind == "option":
            # Such a file only defines options of one's own.
            self._tokens.skip_statement()
            return
        if kind == "public":
            self._file.public_dependency.append(len(self._file.dependency))
        self._file.dependency.append(self._tokens.string())
        self._tokens.expect(";")

    def _message(self, message: Any) -> None:
        message.name = self._tokens.word()
        self._message_body(message)

    def _message_body(self, message: Any) -> None:
        tokens = self._tokens
        tokens.expect("{")
        while not tokens.accept("}"):
            following = tokens.peek.text
            if following in _MEMBERS:
                tokens.take()
                self._member(message, following)
            else:
                self._field(message, None)
        self._add_synthetic_oneofs(message)

    def _member(self, message: Any, kind: str) -> None:
        tokens = self._tokens
        if kind == "message":
            self._message(message.nested_type.add())
        elif kind == "enum":
            self._enum(message.enum_type.add())
        elif kind == "oneof":
            self._oneof(message)
        elif kind == "extend":
            tokens.dotted()
            tokens.skip_block("{", "}")
        elif kind == "option":
            self._option_statement(message.options)
        elif kind == "map":
            self._map(message)
        elif kind in ("reserved", "extensions"):
            tokens.skip_statement()

    def _field(self, message: Any, oneof_index: int | None) -> None:
        tokens = self._tokens
        field = message.field.add(label=_Field.LABEL_OPTIONAL)
        label = tokens.accept(*_LABELS) if oneof_index is None else ""
        if label:
            field.label = _LABELS[label]
            field.proto3_optional = label == "optional" and self._is_proto3
        if oneof_index is not None:
            field.oneof_index = oneof_index
        if tokens.accept("group"):
            self._group(message, field)
            return
        self._type(field)
        field.name = tokens.word()
        self._number_and_options(field)
        tokens.expect(";")

    def _type(self, field: Any) -> None:
        name = self._tokens.dotted()
        if name in SCALARS:
            field.type = SCALARS[name]
        else:
            field.type_name = name

    def _number_and_options(self, field: Any) -> None:
        self._tokens.expect("=")
        field.number = self._tokens.integer()
        if self._tokens.accept("["):
            self._field_options(field)

    def _group(self, message: Any, field: Any) -> None:
        name = self._tokens.word()
        field.name, field.type, field.type_name = name.lower(), _Field.TYPE_GROUP, name
        self._number_and_options(field)
        group = message.nested_type.add(name=name)
        self._message_body(group)

    def _map(self, message: Any) -> None:
        tokens = self._tokens
        tokens.expect("<")
        field = message.field.add(label=_Field.LABEL_REPEATED)
        entry = message.nested_type.add()
        entry.options.map_entry = True
        for number, name in enumerate(("key", "value"), 1):
            part = entry.field.add(name=name, number=number, label=_Field.LABEL_OPTIONAL)
            self._type(part)
            tokens.expect("," if number == 1 else ">")
        field.name = tokens.word()
        entry.name = "".join(part[:1].upper() + part[1:] for part in field.name.split("_")) + "Entry"
        field.type_name = entry.name
        self._number_and_options(field)
        tokens.expect(";")

    def _oneof(self, message: Any) -> None:
        tokens = self._tokens
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=tokens.word())
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept("option"):
                self._option_statement(message.oneof_decl[index].options)
            elif not tokens.accept(";"):
                self._field(message, index)

    def _add_synthetic_oneofs(self, message: Any) -> None:
        """An `optional` of proto3 is a oneof with one member; these stand behind the real ones."""
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _enum(self, enum: Any) -> None:
        tokens = self._tokens
        enum.name = tokens.word()
        tokens.expect("{")
        while not tokens.accept("}"):
            if tokens.accept("option"):
                self._option_statement(enum.options)
            elif tokens.accept("reserved"):
                tokens.skip_statement()
            elif not tokens.accept(";"):
                value = enum.value.add(name=tokens.word())
                tokens.expect("=")
                value.number = tokens.integer()
                if tokens.peek.text == "[":
                    tokens.skip_block("[", "]")
                tokens.expect(";")

    def _option_statement(self, options: Any) -> None:
        self._option(options)
        self._tokens.expect(";")

    def _option(self, options: Any) -> None:
        """`name = value` for the options that Protocol Buffers itself defines; others are passed over."""
        path = self._option_name()
        self._tokens.expect("=")
        start = self._tokens.peek
        if start.text == "{":
            self._tokens.skip_block("{", "}")
            return
        value = self._constant()
        for part in path[:-1]:
            field = options.DESCRIPTOR.fields_by_name.get(part)
            if field is None or field.message_type is None:
                return
            options = getattr(options, part)
        field = options.DESCRIPTOR.fields_by_name.get(path[-1])
        if field is None:
            return
        # Text format knows every type of value, and its names of enum values.
        text = text_format.text_encoding.CEscape(value, False) if isinstance(value, bytes) else value
        quoted = f'"{text}"' if isinstance(value, bytes) else text
        try:
            text_format.Merge(f"{path[-1]}: {quoted}", options)
        except text_format.ParseError as error:
            self._tokens.fail(f"the option {path[-1]} has a wrong value ({error})")

    def _option_name(self) -> list[str]:
        """Parts of a name such as `features.field_presence` or `(my.option).part`."""
        parts = []
        while True:
            if self._tokens.accept("("):
                parts.append(f"({self._tokens.dotted().lstrip('.')})")
                self._tokens.expect(")")
            else:
                parts.append(self._tokens.word())
            if not self._tokens.accept("."):
                return parts

    def _constant(self) -> str | bytes:
        """A value: bytes for what stands in quotes, else its text."""
        if self._tokens.peek.kind == "text":
            return self._tokens.string_bytes()
        sign = self._tokens.accept("-", "+").replace("+", "")
        text = self._tokens.take().text
        while self._tokens.accept("."):
            text += "." + self._tokens.take().text
        return sign + text

    def _field_options(self, field: Any) -> None:
        tokens = self._tokens
        while True:
            following = tokens.peek.text
            if following == "default":
                tokens.take()
                tokens.expect("=")
                field.default_value = self._default(field)
            elif following == "json_name":
                tokens.take()
                tokens.expect("=")
                field.json_name = tokens.string()
            elif following == "(":
                self._custom_option(field)
            else:
                self._option(field.options)
            if not tokens.accept(","):
                break
        tokens.expect("]")

    def _default(self, field: Any) -> str:
        value = self._constant()
        if isinstance(value, str):
            return value
        if field.type == _Field.TYPE_BYTES:
            return str(text_format.text_encoding.CEscape(value, False))
        return value.decode("utf-8", "replace")

    def _custom_option(self, field: Any) -> None:
        path = self._option_name()
        self._tokens.expect("=")
        if self._tokens.peek.text != "{":
            self._constant()
            return
        text = self._tokens.skip_block("{", "}")
        if path == [f"({meta.FIELD_META})"]:
            try:
                meta.add_to_field(field, text)
            except text_format.ParseError as error:
                self._tokens.fail(f"the option {meta.FIELD_META} cannot be read ({error})")
