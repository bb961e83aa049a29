"""Random schemas of Connect and of JSON Schema, and JSON for them, some of it of another type or form."""

from __future__ import annotations

import base64
import json
from random import Random
from typing import Any

from tests.unit.runtime.executor.random_messages.values import BYTES, DAYS, NAMES, floating, integer, text, unscaled

_CONNECT = "org.apache.kafka.connect.data."
ODD = (
    "null", "true", "-0", "-0.0", "1.0", "1e5", "1E400", "3.7", "300", "18446744073709551615", "9007199254740993",
    '"x"',
    '"\\ud800"', '"\\u0000"', "[]", "{}", '{"a":1,"a":2}', '"AP8="', '"AP8"', '"!!"', "NaN", "01", '"1"', "1" * 40,
)  # fmt: skip
_SCALARS = ("int8", "int16", "int32", "int64", "float", "double", "boolean", "string", "bytes", "string", "int64")
_DEFAULTS = {"int32": 7, "int64": 8, "double": 2.25, "boolean": True, "string": "d"}
_LOGICAL: list[dict[str, Any]] = [
    {"type": "int32", "name": f"{_CONNECT}Date"},
    {"type": "int32", "name": f"{_CONNECT}Time", "version": 1},
    {"type": "int64", "name": f"{_CONNECT}Timestamp", "version": 1},
    {"type": "bytes", "name": f"{_CONNECT}Decimal", "parameters": {"scale": "2"}},
    {"type": "bytes", "name": f"{_CONNECT}Decimal", "version": 1, "parameters": {"scale": "-2"}},
]


def connect_schema(r: Random, level: int = 0) -> dict[str, Any]:
    """As JsonConverter writes it; a struct at level 0."""
    chance = r.random()
    if level == 0 or (level < 3 and chance < 0.15):
        names = r.sample((*NAMES, "a.b", "é", ""), r.randrange(0 if level else 1, 6))
        made: dict[str, Any] = {
            "type": "struct",
            "fields": [{**connect_schema(r, level + 1), "field": name} for name in names],
        }
    elif level < 3 and chance < 0.25:
        made = {"type": "array", "items": connect_schema(r, level + 1)}
    elif level < 3 and chance < 0.28:
        made = {"type": "map", "keys": {"type": "string"}, "values": connect_schema(r, level + 1)}
    else:
        made = dict(r.choice(_LOGICAL)) if chance < 0.5 else {"type": r.choice(_SCALARS)}
    if r.random() < 0.6:
        made["optional"] = True
    if "name" not in made and made["type"] in _DEFAULTS and r.random() < 0.15:
        made["default"] = _DEFAULTS[made["type"]]
    return made


def json_schema(r: Random, level: int = 0) -> dict[str, Any]:
    """An object at level 0."""
    chance = r.random()
    if level == 0 or (level < 3 and chance < 0.15):
        names = r.sample((*NAMES, "a.b", "é"), r.randrange(0 if level else 1, 6))
        required = [name for name in names if r.random() < 0.6]
        return {
            "type": "object",
            "properties": {name: json_schema(r, level + 1) for name in names},
            "required": required,
        }
    if level < 3 and chance < 0.25:
        return {"type": "array", "items": json_schema(r, level + 1)}
    made: dict[str, Any] = r.choice(
        [
            {"type": "integer"}, {"type": "number"}, {"type": "string"}, {"type": "boolean"}, {"enum": ["a", "b"]},
            {"type": "integer", "connect.type": "int8"}, {"type": "integer", "connect.type": "int32"},
            {"type": "number", "connect.type": "float32"}, {"type": "string", "connect.type": "bytes"},
            {"type": "integer", "connect.type": "int32", "title": f"{_CONNECT}Date", "connect.version": 1},
            {"type": "integer", "connect.type": "int64", "title": f"{_CONNECT}Timestamp", "connect.version": 1},
            {
                "type": "number", "connect.type": "bytes", "title": f"{_CONNECT}Decimal", "connect.version": 1,
                "connect.parameters": {"scale": "2"},
            },
        ]
    )  # fmt: skip
    return {"oneOf": [{"type": "null"}, made]} if r.random() < 0.4 else made


def document(r: Random, schema: dict[str, Any], odd: float) -> str:
    """JSON for either kind of schema; each part of it is another one with the probability `odd`."""
    if r.random() < odd:
        return r.choice(ODD)
    if "oneOf" in schema:
        return document(r, r.choice(schema["oneOf"]), odd)
    if schema.get("optional") and r.random() < 0.2:
        return "null"
    kind = str(schema.get("connect.type") or schema.get("type", ""))
    if kind in ("struct", "object"):
        return _object(r, schema, odd)
    if kind == "array":
        return "[" + ",".join(document(r, schema["items"], odd) for _ in range(r.choice([0, 1, 2]))) + "]"
    if kind == "map":
        keys = [json.dumps(text(r)) for _ in range(r.choice([0, 1, 2]))]
        return "{" + ",".join(f"{key}:{document(r, schema['values'], odd)}" for key in keys) + "}"
    return _scalar(r, kind, str(schema.get("title") or schema.get("name", "")))


def _scalar(r: Random, kind: str, name: str) -> str:
    if kind == "null":
        return "null"
    if kind == "bytes":
        return json.dumps(base64.b64encode(unscaled(r) if name.endswith("Decimal") else r.choice(BYTES)).decode())
    if name.endswith("Time"):
        return str(r.choice([0, 1, 86_399_999]))
    if name.endswith("Date"):
        return str(r.choice(DAYS))
    if kind.startswith("int"):
        return str(integer(r, int(kind.removeprefix("int").removeprefix("eger") or 64)))
    if kind in ("float", "float32", "double", "number"):
        number = floating(r)
        return repr(number) if abs(number) < 1e300 else "2.5"
    if kind == "boolean":
        return r.choice(["true", "false"])
    return json.dumps(text(r) if kind == "string" else r.choice("ab"), ensure_ascii=r.random() < 0.5)


def _object(r: Random, schema: dict[str, Any], odd: float) -> str:
    fields = schema["fields"] if "fields" in schema else [{**s, "field": n} for n, s in schema["properties"].items()]
    members = [(f["field"], document(r, f, odd)) for f in fields if r.random() >= odd]
    if r.random() < odd:
        members += [("unknown", "1"), *members[:1]]
    if r.random() < 0.2:
        r.shuffle(members)
    comma, colon = r.choice([(",", ":"), (", ", ": ")])
    return "{" + comma.join(json.dumps(name) + colon + value for name, value in members) + "}"


def free(r: Random, level: int = 0) -> str:
    """JSON of any form."""
    chance = r.random()
    if level < 3 and chance < (0.9 if level == 0 else 0.2):
        names = r.sample((*NAMES, "", "é"), r.randrange(4))
        return "{" + ",".join(f"{json.dumps(name)}:{free(r, level + 1)}" for name in names) + "}"
    if chance < 0.3:
        return r.choice(ODD)
    return str(integer(r, 64)) if chance < 0.6 else json.dumps(text(r), ensure_ascii=r.random() < 0.5)
