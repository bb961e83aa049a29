"""Replays what Java 17 and Kafka Connect 4.3.1 made of odd numbers and documents (tests/data/numbers.jsonl)."""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

from airflow_connect.api.config import values as config_values
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.header_text import parse_header_text
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import (
    MAX_DECIMAL_DIGITS,
    narrowed,
    parse_decimal,
    parse_float,
    parse_integer,
    to_float32,
)
from tests.support.values.value_conversions import convert_value

RECORDINGS = Path(__file__).parents[2] / "data" / "numbers.jsonl"
VALUES = {
    "Boolean": Type.BOOLEAN, "Byte": Type.INT8, "Short": Type.INT16, "Integer": Type.INT32, "Long": Type.INT64,
    "Float": Type.FLOAT32, "Double": Type.FLOAT64, "List": Type.ARRAY, "Map": Type.MAP,
}  # fmt: skip
PARSERS: dict[str, Callable[[str], Any]] = {
    "Integer.parseInt": lambda text: parse_integer(text, 32),
    "Long.parseLong": lambda text: parse_integer(text, 64),
    "Float.parseFloat": lambda text: parse_float(text, 32),
    "Double.parseDouble": lambda text: parse_float(text, 64),
    "BigDecimal": parse_decimal,
    "BigDecimal.longValue": lambda text: narrowed(parse_decimal(text), 64),
}
REFUSED = "refused"
OUTCOMES = ("output", "error")
# What docs/compatibility.md lists.
DEEPEST_DOCUMENT, DEEPEST_HEADER = 254, 100


def our_outcome(recording: dict[str, Any]) -> dict[str, Any] | None:
    """What is expected here where it is not what was recorded, else None."""
    if is_beyond_limits(recording):
        return {"error": {}}
    if recording["op"] != "JsonConverter":
        return None
    if "schema.content" in recording["config"] and "output" in recording and is_empty(recording["base64"]):
        return {"output": {"schema": "int32", "value": None}}
    # Jackson refuses the exponent; as a double the number is 0, and only a Decimal would have to hold it.
    found = VANISHED.fullmatch(recording.get("text", ""))
    if "error" in recording and found is not None and float(found[2]) == 0:
        return {"output": {"schema": KINDS.get(found[1], found[1]), "value": ZEROS[found[1] or "double"]}}
    return None


def is_beyond_limits(recording: dict[str, Any]) -> bool:
    is_number = recording["op"] in ("parseString", "BigDecimal") and "repeat" in recording
    if is_number and text_of(recording).count("9") > MAX_DECIMAL_DIGITS:
        return True
    output = recording.get("output")
    value = output.get("value") if isinstance(output, dict) else None
    if not isinstance(value, dict):
        return False
    ((tag, size),) = value.items()
    if tag in ("list_depth", "map_depth"):
        return bool(size > (DEEPEST_HEADER if recording["op"] == "parseString" else DEEPEST_DOCUMENT))
    return tag == "decimal_digits" and bool(size > MAX_DECIMAL_DIGITS)


VANISHED = re.compile(r'(?:\{"schema":\{"type":"([a-z0-9]+)","optional":true\},"payload":)?(-?[0-9.]+e-?[0-9]{10,})\}?')
KINDS = {"double": "float64", "float": "float32"}
ZEROS: dict[str, Any] = {
    **{f"int{bits}": {"int64": "0"} for bits in (8, 16, 32, 64)},
    "double": {"float64": "0.0"},
    "float": {"float32": "0.0"},
    "boolean": False,
    "string": None,
}


def is_empty(document: str) -> bool:
    return not base64.b64decode(document).strip(b"\xef\xbb\xbf\xff\xfe\0 ")


def recordings() -> list[dict[str, Any]]:
    with RECORDINGS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def text_of(recording: dict[str, Any]) -> str:
    if "repeat" in recording:
        return "".join(text * count for text, count in recording["repeat"])
    return str(recording["text"])


def play(recording: dict[str, Any]) -> list[Any]:
    """Outcomes that must all be the recorded one."""
    op = recording["op"]
    if op == "JsonConverter":
        data = base64.b64decode(recording["base64"]) if "base64" in recording else text_of(recording).encode()
        converter = JsonConverter()
        converter.configure(recording["config"], False)
        # The second message takes the fast way, by the schema text that the first one taught.
        return [outcome(lambda: converter.to_connect("t", data)) for _ in range(2)]
    if op == "parseString":
        return [outcome(lambda: parse_header_text(text_of(recording)))]
    if op == "ConfigDef":
        kind = config_values.Type(recording["type"])
        return [outcome(lambda: config_values.parse_type("k", recording["text"], kind))]
    if op in PARSERS:
        return [outcome(lambda: PARSERS[op](text_of(recording)))]
    target = VALUES[op.removeprefix("Values.convertTo")]
    return [outcome(lambda: convert_value(target, *plain(recording["input"])))]


def outcome(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except (DataError, ValueError, config_values.InvalidValueError):
        return REFUSED


def plain(tagged: Any) -> tuple[Schema | None, Any]:
    """Schema, where the value has a type of its own, and value of a question."""
    if tagged is None or isinstance(tagged, bool | str):
        return None, tagged
    ((tag, raw),) = tagged.items()
    if tag == "float32":
        return Schema(Type.FLOAT32), to_float32(float(raw))
    kinds: dict[str, Callable[[Any], Any]] = {
        "float64": float, "decimal": Decimal, "list": lambda items: [plain(item)[1] for item in items],
    }  # fmt: skip
    return None, kinds.get(tag, int)(raw)


def is_as_recorded(found: Any, tagged: Any) -> bool:
    """Whether a value of ours is the recorded one; a zero has no sign here."""
    if tagged is None or isinstance(tagged, bool):
        return found is tagged
    if isinstance(tagged, str):
        return str(found) == tagged
    ((tag, raw),) = tagged.items()
    if tag.startswith("float"):
        wanted = float(raw) if tag == "float64" else to_float32(float(raw))
        return type(found) is float and (found == wanted or (math.isnan(found) and math.isnan(wanted)))
    if tag == "decimal":
        unscaled, _, scale = raw.partition("e-")
        sign, digits, exponent = found.as_tuple()
        number = int("".join(map(str, digits))) * (-1 if sign else 1)
        return type(found) is Decimal and (number, exponent) == (int(unscaled), -int(scale))
    if tag == "decimal_digits":
        return type(found) is Decimal and len(found.as_tuple().digits) == int(raw)
    if tag == "list":
        return type(found) is list and all(map(is_as_recorded, found, raw)) and len(found) == len(raw)
    if tag == "map":
        return type(found) is dict and all(is_as_recorded(found[key], value) for key, value in raw)
    if tag == "date":
        return found in (raw, raw // 86_400_000)
    if tag.startswith("int"):
        return type(found) is int and found == int(raw)
    if tag == "text_length":
        return type(found) is str and len(found) == raw
    depth = 0
    while isinstance(found, list | dict):
        depth, found = depth + 1, next(iter(found.values() if isinstance(found, dict) else found), None)
    return tag in ("list_depth", "map_depth") and depth == raw


def matches(recording: dict[str, Any], found: Any) -> bool:
    if "error" in recording:
        return found is REFUSED
    output = recording["output"]
    if isinstance(output, str):  # the text of a number
        if recording["op"] in ("Float.parseFloat", "Double.parseDouble") or recording.get("type") == "DOUBLE":
            return is_as_recorded(found, {"float32" if "Float" in recording["op"] else "float64": output})
        return type(found) is int and str(found) == output
    if isinstance(output, dict) and "schema" in output:
        if found is REFUSED:
            return False
        schema = None if found.schema is None else found.schema.name or found.schema.type.name.lower()
        return schema == output["schema"] and is_as_recorded(found.value, output["value"])
    return is_as_recorded(found, output)


def test_recorded_numbers_replayed_equal_java() -> None:
    wrong = []
    for recording in recordings():
        ours = our_outcome(recording)
        wanted = recording if ours is None else {k: v for k, v in recording.items() if k not in OUTCOMES} | ours
        wrong += [(wanted, str(found)) for found in play(recording) if not matches(wanted, found)]
    assert not wrong, "\n".join(str(each)[:420] for each in wrong)
