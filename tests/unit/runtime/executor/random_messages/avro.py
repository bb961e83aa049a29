"""Random Avro schemas, and values in Avro's binary encoding, some of them invalid."""

from __future__ import annotations

import json
import struct
from random import Random
from typing import Any

from tests.unit.runtime.executor.random_messages.values import BYTES, DAYS, NAMES, floating, integer, text, unscaled

_CONNECT = "org.apache.kafka.connect.data."
_ANNOTATED: list[Any] = [
    {"type": "int", "connect.type": "int8"},
    {"type": "int", "connect.type": "int16"},
    {"type": "int", "connect.default": 5},
    {"type": "string", "connect.default": "q", "connect.parameters": {"a": "b"}},
    {"type": "long", "connect.name": f"{_CONNECT}Timestamp", "connect.version": 1},
    {"type": "bytes", "connect.name": f"{_CONNECT}Decimal", "connect.parameters": {"scale": "-2"}},
]
_LOGICAL = {
    "date": "int", "time-millis": "int", "time-micros": "long", "timestamp-millis": "long", "timestamp-micros": "long",
    "local-timestamp-millis": "long", "uuid": "string",
}  # fmt: skip
_PLAIN = ("int", "long", "float", "double", "boolean", "string", "bytes")


class AvroSchemas:
    """Makes schemas; each named type has a name of its own."""

    def __init__(self, r: Random) -> None:
        self._r = r
        self._names = 0

    def _name(self) -> str:
        self._names += 1
        return f"N{self._names}"

    def record(self, level: int = 0) -> dict[str, Any]:
        r = self._r
        fields = []
        for name in r.sample(NAMES, r.randrange(0 if level else 1, 5)):
            kind = self._any(level + 1)
            field = {"name": name, "type": kind}
            if isinstance(kind, list) and kind[0] == "null" and r.random() < 0.5:
                field["default"] = None
            fields.append(field)
        space = {"namespace": "a.b"} if r.random() < 0.3 else {}
        return {"type": "record", "name": self._name(), "fields": fields, **space}

    def other_version(self, schema: dict[str, Any]) -> dict[str, Any]:
        """The same with another field, or without one."""
        made: dict[str, Any] = json.loads(json.dumps(schema))
        if len(made["fields"]) > 1 and self._r.random() < 0.5:
            made["fields"].pop()
        else:
            made["fields"].insert(0, {"name": "extra", "type": ["null", "string"], "default": None})
        return made

    def _any(self, level: int) -> Any:
        r, chance = self._r, self._r.random()
        if level < 3 and chance < 0.4:
            inner = self._any(level + 1)
            if chance < 0.25 and not isinstance(inner, list):
                return ["null", inner] if r.random() < 0.7 else [inner, "null"]
            if chance < 0.32:
                return {"type": "array", "items": inner}
            return {"type": "map", "values": inner} if chance < 0.35 else self.record(level)
        if chance < 0.5:
            name = r.choice(sorted(_LOGICAL))
            return {"type": _LOGICAL[name], "logicalType": name}
        if chance < 0.6:
            kind: Any = r.choice(["bytes", {"type": "fixed", "name": self._name(), "size": 9}])
            decimal = {"logicalType": "decimal", "precision": 21, "scale": r.choice([0, 2, 21])}
            return {"type": "bytes", **decimal} if kind == "bytes" else {**kind, **decimal}
        if chance < 0.7:
            return {"type": "enum", "name": self._name(), "symbols": ["a", "b", "D_1"]}
        return r.choice(_ANNOTATED) if chance < 0.75 else r.choice(_PLAIN)


def encoded(r: Random, schema: Any, odd: float) -> bytes:
    """A value; each part of it is invalid with the probability `odd`."""
    if isinstance(schema, list):
        branch = r.randrange(len(schema)) if r.random() >= odd else len(schema)
        return _long(branch) + (encoded(r, schema[branch], odd) if branch < len(schema) else b"")
    kind = schema if isinstance(schema, str) else schema["type"]
    facts = schema if isinstance(schema, dict) else {}
    if kind == "record":
        return b"".join(encoded(r, field["type"], odd) for field in schema["fields"])
    if kind in ("array", "map"):
        return _block(r, kind, schema, odd)
    if kind == "fixed":
        return r.choice([0, 5, -5, 10**15]).to_bytes(schema["size"], "big", signed=True)
    if kind == "enum":
        return _long(r.randrange(len(schema["symbols"])) if r.random() >= odd else 9)
    return _scalar(r, kind, facts, odd)


def _scalar(r: Random, kind: str, facts: dict[str, Any], odd: float) -> bytes:
    if kind == "null":
        return b""
    if kind == "boolean":
        return r.choice([b"\0", b"\1"]) if r.random() >= odd else b"\2"
    if kind == "int":
        return _long(_int(r, facts, odd))
    if kind == "long":
        return _long(integer(r, 64))
    if kind in ("float", "double"):
        number = floating(r)
        if kind == "double":
            return struct.pack("<d", number)
        return struct.pack("<f", number if abs(number) < 1e38 or number in (float("inf"), float("-inf")) else 1.5)
    is_decimal = facts.get("logicalType") == "decimal" or facts.get("connect.name") == f"{_CONNECT}Decimal"
    data = unscaled(r) if is_decimal else r.choice(BYTES)
    if kind == "string":
        data = text(r).encode() if r.random() >= odd else b"a\xc3"
    return _long(len(data)) + data


def _int(r: Random, facts: dict[str, Any], odd: float) -> int:
    if facts.get("logicalType") == "time-millis":
        return r.choice([0, 1, 86_399_999]) if r.random() >= odd else 86_400_001
    if facts.get("logicalType") == "date":
        return r.choice(DAYS)
    bits = int(facts.get("connect.type", "int32").removeprefix("int"))
    return integer(r, bits) if r.random() >= odd else 2**31


def _block(r: Random, kind: str, schema: Any, odd: float) -> bytes:
    if kind == "array":
        items = [encoded(r, schema["items"], odd) for _ in range(r.choice([0, 1, 2, 3]))]
    else:
        keys = r.sample([b"a", b"", b"\xc3\xa9", b'"'], r.choice([0, 1, 2]))
        keys += keys[:1] if r.random() < odd else []
        items = [_long(len(key)) + key + encoded(r, schema["values"], odd) for key in keys]
    body = b"".join(items)
    if items and r.random() < 0.05:  # with its size
        return _long(-len(items)) + _long(len(body)) + body + b"\0"
    return (_long(len(items)) + body if items else b"") + b"\0"


def _long(number: int) -> bytes:
    number = number << 1 if number >= 0 else (-number << 1) - 1
    made = bytearray()
    while number > 127:
        made.append(number & 127 | 128)
        number >>= 7
    made.append(number)
    return bytes(made)
