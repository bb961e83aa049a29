"""Random Protobuf schemas, and messages of them, some with fields in unusual places."""

from __future__ import annotations

from random import Random
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from tests.unit.runtime.executor.random_messages.values import BYTES, NAMES, floating, integer, text

_SCALARS = (
    "int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "float",
    "double", "bool", "string", "bytes",
)  # fmt: skip
_MESSAGES = (
    "google.protobuf.Timestamp", "google.type.Date", "google.type.TimeOfDay", "google.protobuf.StringValue",
    "google.protobuf.Int64Value", "google.protobuf.BoolValue",
)  # fmt: skip
_IMPORTS = ("google/protobuf/timestamp", "google/type/date", "google/type/timeofday", "google/protobuf/wrappers")
_FD = FieldDescriptor
_BITS = {
    _FD.TYPE_INT32: 32, _FD.TYPE_SINT32: 32, _FD.TYPE_SFIXED32: 32, _FD.TYPE_INT64: 64, _FD.TYPE_SINT64: 64,
    _FD.TYPE_SFIXED64: 64,
}  # fmt: skip
_UNSIGNED = {_FD.TYPE_UINT32: 32, _FD.TYPE_FIXED32: 32, _FD.TYPE_UINT64: 63, _FD.TYPE_FIXED64: 63}


def proto(r: Random) -> str:
    """The text of a file whose first message is Event."""
    is_old = r.random() < 0.25
    head = f'syntax = "proto{2 if is_old else 3}"; ' + "".join(f'import "{name}.proto"; ' for name in _IMPORTS)
    return head + _message(r, "Event", is_old=is_old, level=0)


def _message(r: Random, name: str, *, is_old: bool, level: int) -> str:
    parts = []
    for number, field in enumerate(r.sample(NAMES, r.randrange(1, 6)), r.choice([1, 1, 14])):
        label = r.choice(["optional ", "optional ", "required "]) if is_old else r.choice(["", "", "optional "])
        chance, kind, inner = r.random(), r.choice(_SCALARS), f"M{level}_{number}"
        if chance < 0.15 and level < 2:
            parts.append(_message(r, inner, is_old=is_old, level=level + 1))
            parts.append(f"{r.choice(['repeated ', label])}{inner} {field} = {number};")
        elif chance < 0.25:
            parts.append(f"map<{r.choice(['string', 'int64', 'bool'])}, {kind}> {field} = {number};")
        elif chance < 0.35:
            packed = "" if kind in ("string", "bytes") else r.choice(["", " [packed = false]", " [packed = true]"])
            parts.append(f"repeated {kind} {field} = {number}{packed};")
        elif chance < 0.45:
            parts.append(f"enum {inner} {{ A{level}{number} = 0; B{level}{number} = {r.choice([1, 5, -1])}; }}")
            parts.append(f"{label}{inner} {field} = {number};")
        elif chance < 0.55:
            parts.append(
                f"oneof {field} {{ {kind} x{number} = {number}; {r.choice(_MESSAGES)} y{number} = {number + 50}; }}"
            )
        else:
            parts.append(f"{label}{r.choice(_MESSAGES) if chance < 0.7 else kind} {field} = {number};")
    return f"message {name} {{ {' '.join(parts)} }} "


def filled(r: Random, message: Any) -> Any:
    """The message with values in most of its fields."""
    for field in message.DESCRIPTOR.fields:
        if r.random() < (0.02 if field.is_required else 0.3):
            continue
        _fill(r, message, field)
    return message


def _fill(r: Random, message: Any, field: Any) -> None:
    if not field.is_repeated:
        if field.message_type is None:
            setattr(message, field.name, _scalar(r, field))
        else:
            inner = getattr(message, field.name)
            inner.SetInParent()
            _fill_message(r, inner)
        return
    found = getattr(message, field.name)
    for _ in range(r.choice([0, 1, 2])):
        if field.message_type is None:
            found.append(_scalar(r, field))
        elif field.message_type.GetOptions().map_entry:
            key, value = field.message_type.fields
            found[_scalar(r, key)] = _scalar(r, value)
        else:
            _fill_message(r, found.add())


def _fill_message(r: Random, message: Any) -> None:
    name = message.DESCRIPTOR.full_name
    if name == "google.protobuf.Timestamp":
        message.seconds, message.nanos = r.choice([0, -1, 1_700_000_000, 253_402_300_799]), r.choice([0, 999_999_999])
    elif name == "google.type.Date":
        message.year, message.month, message.day = r.choice(
            [(2024, 2, 29), (1969, 12, 31), (1500, 1, 1), (9999, 12, 31)]
        )
    elif name == "google.type.TimeOfDay":
        message.hours, message.minutes = r.choice([0, 23]), r.choice([0, 59])
    else:
        filled(r, message)


def _scalar(r: Random, field: Any) -> Any:
    kind = field.type
    if kind in _BITS:
        return integer(r, _BITS[kind])
    if kind in _UNSIGNED:
        return abs(integer(r, _UNSIGNED[kind]))
    if kind == _FD.TYPE_ENUM:
        return r.choice(field.enum_type.values).number
    if kind == _FD.TYPE_FLOAT:
        return r.choice([0.0, -0.0, 1.5, 1e-45, 3e38, float("nan"), float("inf")])
    others = {_FD.TYPE_DOUBLE: floating, _FD.TYPE_STRING: text, _FD.TYPE_BYTES: lambda r: r.choice(BYTES)}
    return others.get(kind, lambda r: r.random() < 0.5)(r)


def shuffled(r: Random, data: bytes) -> bytes:
    """The message with an unknown field, or another one behind it whose fields count more."""
    return r.choice([data + b"\xf8\x07\x01", b"\xfa\x07\x02hi" + data, data + data])
