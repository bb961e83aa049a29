"""Random Protobuf message types, as .proto text, and random messages of them."""

from __future__ import annotations

from typing import Any

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from hypothesis import strategies as st

from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.files import message_at, open_schema

_FD = FieldDescriptor
IMPORTS = """import "google/protobuf/timestamp.proto"; import "google/type/date.proto"; import "confluent/meta.proto";
import "google/type/timeofday.proto"; import "confluent/type/decimal.proto"; import "google/protobuf/wrappers.proto";"""
ENUM = "enum Kind { option allow_alias = true; NONE = 0; LESS = -3; SOME = 2; ALSO = 2; MANY = 2000000000; }"
_KEYS = (
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "bool",
    "string",
)  # fmt: skip
_SCALARS = (*_KEYS, "float", "double", "bytes", "Kind")
_MESSAGES = (
    names.TIMESTAMP_MESSAGE,
    names.DATE_MESSAGE,
    names.TIME_MESSAGE,
    names.DECIMAL_MESSAGE,
    "google.protobuf.StringValue",
    "google.protobuf.Int64Value",
    "google.protobuf.BoolValue",
    "Inner",
)
_NUMBERS = st.one_of(st.integers(1, 15), st.integers(16, 18_999), st.integers(20_000, (1 << 29) - 1))
_INTEGERS: dict[int, tuple[int, int]] = {
    **dict.fromkeys((_FD.TYPE_INT32, _FD.TYPE_SINT32, _FD.TYPE_SFIXED32), (-(1 << 31), (1 << 31) - 1)),
    **dict.fromkeys((_FD.TYPE_INT64, _FD.TYPE_SINT64, _FD.TYPE_SFIXED64), (-(1 << 63), (1 << 63) - 1)),
    **dict.fromkeys((_FD.TYPE_UINT32, _FD.TYPE_FIXED32), (0, (1 << 32) - 1)),
    **dict.fromkeys((_FD.TYPE_UINT64, _FD.TYPE_FIXED64), (0, (1 << 64) - 1)),
}
_KNOWN: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    names.TIMESTAMP_MESSAGE: {
        "seconds": st.integers(-62_135_596_800, 253_402_300_799),
        "nanos": st.integers(0, 999_999_999),
    },
    names.DATE_MESSAGE: {
        "year": st.integers(1583, 9999),
        "month": st.integers(1, 12),
        "day": st.integers(1, 28),
    },
    names.TIME_MESSAGE: {
        "hours": st.integers(0, 23),
        "minutes": st.integers(0, 59),
        "seconds": st.integers(0, 59),
        "nanos": st.integers(0, 999_999_999),
    },
    names.DECIMAL_MESSAGE: {
        "value": st.integers(-(1 << 70), 1 << 70).map(
            lambda n: n.to_bytes((n if n >= 0 else ~n).bit_length() // 8 + 1, "big", signed=True)
        ),
        "precision": st.integers(0, 40),
        "scale": st.just(2),
    },
}
"""Usual values of messages that become a logical type."""


@st.composite
def _fields(draw: st.DrawFn, is_proto3: bool, types: tuple[str, ...], prefix: str) -> str:
    count = draw(st.integers(1, 5))
    numbers = draw(st.lists(_NUMBERS, min_size=count + 4, max_size=count + 4, unique=True))
    lines = []
    for n in range(count):
        name, kind = f"{prefix}{n}", draw(st.sampled_from(types))
        labels = ["optional", "repeated", "map"] + ([""] if is_proto3 else ["required"])
        label = draw(st.sampled_from(labels))
        note = ' [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}]' if kind.endswith("Decimal") else ""
        if kind in ("int32", "sint32") and draw(st.integers(0, 3)) == 0:
            note = ' [(confluent.field_meta) = {params: [{key: "connect.type", value: "int8"}]}]'
        if label == "map":
            key = draw(st.sampled_from(_KEYS))
            kind = "Inner" if kind == "Decimal" else kind  # the note of a map is not that of its values
            lines.append(f"map<{key}, {kind}> {name} = {numbers[n]};")
        else:
            lines.append(f"{label} {kind} {name} = {numbers[n]}{note};")
    if draw(st.booleans()):
        members = [draw(st.sampled_from([t for t in types if not t.endswith("Decimal")])) for _ in range(2)]
        inside = " ".join(f"{kind} {prefix}u{n} = {numbers[count + n]};" for n, kind in enumerate(members))
        lines.append(f"oneof {prefix}union {{ {inside} }}")
    return " ".join(lines)


@st.composite
def message_types(draw: st.DrawFn) -> Any:
    """A message type, a Descriptor."""
    is_proto3 = draw(st.booleans())
    head = f'syntax = "{"proto3" if is_proto3 else "proto2"}"; {IMPORTS} {ENUM}'
    inner = draw(_fields(is_proto3, (*_SCALARS, names.TIMESTAMP_MESSAGE), "i"))
    outer = draw(_fields(is_proto3, (*_SCALARS, *_MESSAGES), "f"))
    return message_at(open_schema(f"{head} message M {{ {outer} }} message Inner {{ {inner} }}", {}), [0])


@st.composite
def _values(draw: st.DrawFn, field: Any, odd: int) -> Any:
    """One value of a field; about one in `odd` is unusual."""
    is_odd = draw(st.integers(0, odd)) == odd
    if field.message_type is not None:
        return draw(contents(field.message_type, odd))
    if field.enum_type is not None:
        return draw(st.sampled_from([0, -3, 2, 2_000_000_000, *([77] if is_odd else [])]))
    if field.type in _INTEGERS:
        least, most = _INTEGERS[field.type]
        small = st.integers(0 if least == 0 else -100, 100)
        has_note = bool(field.GetOptions().SerializeToString())
        return draw(small if has_note and not is_odd else st.one_of(st.integers(least, most), small))
    return draw(
        {
            _FD.TYPE_BOOL: st.booleans(),
            _FD.TYPE_STRING: st.text(max_size=8),
            _FD.TYPE_BYTES: st.binary(max_size=8),
            _FD.TYPE_FLOAT: st.floats(width=32),
            _FD.TYPE_DOUBLE: st.floats(),
        }[field.type]
    )


@st.composite
def contents(draw: st.DrawFn, message: Any, odd: int) -> Any:
    """A message of a type; fields that may be missing are, sometimes."""
    made = message_factory.GetMessageClass(message)()
    usual = _KNOWN.get(message.full_name, {})
    for field in message.fields:
        if field.name in usual:
            if draw(st.integers(0, odd)) != odd:
                setattr(made, field.name, draw(usual[field.name]))
        elif field.is_repeated:
            for _ in range(draw(st.integers(0, 3))):
                _add_item(draw, made, field, odd)
        elif draw(st.booleans()):
            value = draw(_values(field, odd))
            if field.message_type is not None:
                getattr(made, field.name).CopyFrom(value)
            elif (
                field.enum_type is None or field.enum_type.values_by_number.get(value) or not field.enum_type.is_closed
            ):
                setattr(made, field.name, value)
    return made


def _add_item(draw: st.DrawFn, made: Any, field: Any, odd: int) -> None:
    items = getattr(made, field.name)
    is_entry = field.message_type is not None and field.message_type.GetOptions().map_entry
    key_field, value_field = field.message_type.fields if is_entry else (None, field)
    value = draw(_values(value_field, odd))
    enum = value_field.enum_type
    if enum is not None and value not in enum.values_by_number and enum.is_closed:
        return
    if is_entry:
        key = draw(_values(key_field, odd))
        if value_field.message_type is not None:
            items[key].CopyFrom(value)
        else:
            items[key] = value
    elif value_field.message_type is not None:
        items.add().CopyFrom(value)
    else:
        items.append(value)
