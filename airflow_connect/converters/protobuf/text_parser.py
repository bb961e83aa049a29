"""A .proto text as a FileDescriptorProto, as protoc's parser makes it: names are resolved when it enters a pool.

Supports proto2, proto3 and editions. Custom options, extensions and services have no meaning for values and are
omitted, except Confluent's `(confluent.field_meta)`, which names Connect types. Source: Protocol Buffers language
specification.
"""

from __future__ import annotations

from typing import Any

from google.protobuf import descriptor_pb2, text_format

from airflow_connect.converters.protobuf import meta
from airflow_connect.converters.protobuf.tokens import Tokens
from airflow_connect.errors import SchemaError

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
    """Parses one text from start to end."""

    def __init__(self, text: str, name: str) -> None:
        self._tokens = Tokens(text)
        self._file = descriptor_pb2.FileDescriptorProto(name=name)

    @property
    def _is_proto3(self) -> bool:
        return bool(self._file.syntax == "proto3")

    def file(self) -> descriptor_pb2.FileDescriptorProto:
        tokens, file = self._tokens, self._file
        if tokens.accept("syntax"):
            self._syntax()
        elif tokens.accept("edition"):
            self._edition()
        while tokens.peek.kind != "end":
            statement = tokens.take().text
            if statement == "package" and not file.package:
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
            elif statement == "service":
                tokens.dotted()
                tokens.skip_block("{", "}")
            elif statement == "extend":
                self._extend(file.message_type)
            elif statement not in (";", *_VISIBILITIES):
                tokens.fail(f"{statement!r} is not a statement here")
        return file

    def _syntax(self) -> None:
        self._tokens.expect("=")
        self._file.syntax = self._tokens.string()
        self._tokens.expect(";")

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
            # Such a file only defines custom options.
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
            if following in _MEMBERS and self._is_member(following):
                tokens.take()
                self._member(message, following)
            else:
                self._field(message, None)
        self._add_synthetic_oneofs(message)

    def _is_member(self, word: str) -> bool:
        """Whether a word begins a member; some are also names of types (`map x = 1;`)."""
        after = self._tokens.peek_after.text
        if word in _VISIBILITIES:
            return after in ("message", "enum")
        return word != "map" or after == "<"

    def _member(self, message: Any, kind: str) -> None:
        tokens = self._tokens
        if kind == "message":
            self._message(message.nested_type.add())
        elif kind == "enum":
            self._enum(message.enum_type.add())
        elif kind == "oneof":
            self._oneof(message)
        elif kind == "extend":
            self._extend(message.nested_type)
        elif kind == "option":
            self._option_statement(message.options)
        elif kind == "map":
            self._map(message)
        elif kind in ("reserved", "extensions"):
            tokens.skip_statement()

    def _extend(self, types: Any) -> None:
        """Extensions are left out, but their groups are message types, which count where messages are numbered."""
        tokens = self._tokens
        tokens.dotted()
        tokens.expect("{")
        left_out = descriptor_pb2.DescriptorProto()
        while not tokens.accept("}"):
            if not tokens.accept(";"):
                self._field(left_out, None)
        types.extend(left_out.nested_type)

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
        """An `optional` of proto3 is a oneof with one member; these follow the real ones."""
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
        """`name = value` for the options that Protocol Buffers itself defines; others are skipped."""
        path = self._option_name()
        self._tokens.expect("=")
        value = self._option_value()
        for part in path[:-1]:
            field = options.DESCRIPTOR.fields_by_name.get(part)
            if field is None or field.message_type is None:
                return
            options = getattr(options, part)
        if path[-1] not in options.DESCRIPTOR.fields_by_name:
            return
        # Text format knows every type of value, and its names of enum values.
        try:
            text_format.Parse(f"{path[-1]}: {value}", options, allow_unknown_extension=True)
        except text_format.ParseError as error:
            self._tokens.fail(f"the option {path[-1]} has a wrong value ({error})")

    def _option_value(self) -> str:
        """The value of an option in text format; text in braces already has it."""
        if self._tokens.peek.text == "{":
            return f"{{ {self._tokens.skip_block('{', '}')} }}"
        value = self._constant()
        return f'"{text_format.text_encoding.CEscape(value, False)}"' if isinstance(value, bytes) else value

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
        """A value: bytes if it is quoted, otherwise its text."""
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
