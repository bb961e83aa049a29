"""Replays what the converters of Kafka Connect 4.3.1 did (tests/data/converters.jsonl)."""

from __future__ import annotations

import base64
import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.converter import SchemaAndValue
from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.primitive_converters import (
    BooleanConverter,
    DoubleConverter,
    FloatConverter,
    IntegerConverter,
    LongConverter,
    ShortConverter,
)
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import ConnectError
from tests.support.session.many_cases import check_each
from tests.support.values.recorded_values import schema_of, value_of
from tests.support.values.value_conversions import convert_value

RECORDINGS = Path(__file__).parents[2] / "data" / "converters.jsonl"
CONVERTERS: dict[str, type] = {
    "org.apache.kafka.connect.json.JsonConverter": JsonConverter,
    "org.apache.kafka.connect.storage.StringConverter": StringConverter,
    "org.apache.kafka.connect.converters.ByteArrayConverter": ByteArrayConverter,
    "org.apache.kafka.connect.storage.SimpleHeaderConverter": SimpleHeaderConverter,
    **{
        f"org.apache.kafka.connect.converters.{converter.__name__}": converter
        for converter in (
            ShortConverter,
            IntegerConverter,
            LongConverter,
            FloatConverter,
            DoubleConverter,
            BooleanConverter,
        )
    },
}
NUMBERS = ("Short", "Integer", "Long", "Float", "Double", "Boolean")
# Operations of org.apache.kafka.connect.data.Values.
CONVERSIONS = {
    "Values.convertToBoolean": Type.BOOLEAN,
    "Values.convertToByte": Type.INT8,
    "Values.convertToShort": Type.INT16,
    "Values.convertToInteger": Type.INT32,
    "Values.convertToLong": Type.INT64,
    "Values.convertToFloat": Type.FLOAT32,
    "Values.convertToDouble": Type.FLOAT64,
    "Values.convertToString": Type.STRING,
    "Values.convertToList": Type.ARRAY,
    "Values.convertToMap": Type.MAP,
}
# What cannot or should not equal Connect: id of the recording -> why, and what we write instead.
ADDRESS = "Java prints the address of a byte array, which differs from run to run; we write its base64"
DATE_IS_DAYS = "a Date is whole days here, one with a time of day cannot exist"
WIDTH = "a Python int has no width: Integer, Long and BigInteger are one type"
STRUCT = (
    "Struct{id=7,s=h\u00e9llo,l=1700000000123,d=2.5,b=true,by=AAEC,ts=Tue Nov 14 22:13:20 UTC 2023,"
    "dec=123.45,arr=[1, 2],m={k=1},in=Struct{x=X,y=9}}"
)
MAP = (
    "{id=7, s=h\u00e9llo, l=1700000000123, d=2.5, b=true, by=AAEC, ts=Tue Nov 14 22:13:20 UTC 2023, "
    "dec=123.45, arr=[1, 2], nul=null, in={x=X, y=9}}"
)
HEADER_MAP = (
    '{"id":7,"s":"h\u00e9llo","l":1700000000123,"d":2.5,"b":true,"by":"AAEC","ts":2023-11-14T22:13:20.123Z,'
    '"dec":123.45,"arr":[1,2],"nul":null,"in":{"x":"X","y":9}}'
)
DIFFERENCES: dict[int, tuple[str, str]] = {
    118: (DATE_IS_DAYS, "86400001"),
    135: (WIDTH, '{"schema":{"type":"int64","optional":false},"payload":1}'),
    168: (WIDTH, "5"),
    363: (ADDRESS, "AP8="),
    364: (ADDRESS, "AP8="),
    378: (ADDRESS, STRUCT),
    416: ("Java's HashMap orders by hash, our maps keep their order; " + ADDRESS, MAP),
    577: (WIDTH, "\0\0\0\0\0\0\0\x01"),
    881: (DATE_IS_DAYS, "238525-03-03"),
    892: ("an int under a Date schema is a Date here, Java tells Integer from Date", "1970-01-02"),
    907: ("Java's HashMap orders by hash, our maps keep their order", HEADER_MAP),
}


def recordings() -> list[dict[str, Any]]:
    with RECORDINGS.open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def name_of(recording: dict[str, Any]) -> str:
    return f"{recording['id']}-{recording['op']}"


def play(recording: dict[str, Any]) -> Any:
    if recording["op"] in CONVERSIONS:
        return convert_value(CONVERSIONS[recording["op"]], None, value_of(None, recording["input"]))
    converter = CONVERTERS[recording["class"]]()
    config = recording.get("config", {})
    operation = recording["op"]
    if operation.endswith("Header"):
        converter.configure(config)
    else:
        converter.configure(config, False)
    if operation.startswith("to"):
        return play_reading(converter, recording)
    schema = schema_of(recording["input"]["schema"])
    value = value_of(schema, recording["input"]["value"])
    if operation == "fromConnectHeader":
        return converter.from_connect_header("t", "h", schema, value)
    return converter.from_connect("t", schema, value)


def play_reading(converter: Any, recording: dict[str, Any]) -> SchemaAndValue:
    if "input_text" in recording:
        text = recording["input_text"]
        return converter.to_connect_header("t", "h", None if text is None else text.encode())
    data = recording["input"]
    first = converter.to_connect("t", None if data is None else base64.b64decode(data["base64"]))
    # The second message takes the fast way, by the schema text that the first one taught.
    second = converter.to_connect("t", None if data is None else base64.b64decode(data["base64"]))
    assert same(first, second)
    assert first.schema is second.schema
    return first


def same(left: Any, right: Any) -> bool:
    """Equality that also tells 1 from 1.0 and True, 0.0 from -0.0, and 1.0 from 1.00."""
    if isinstance(left, Schema):
        return left == right
    if isinstance(left, Decimal | float):
        return type(left) is type(right) and repr(left) == repr(right)
    if isinstance(left, dict):
        return isinstance(right, dict) and left.keys() == right.keys() and all(same(left[k], right[k]) for k in left)
    if isinstance(left, list | tuple):
        return isinstance(right, list | tuple) and len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def expected(recording: dict[str, Any]) -> Any:
    output = recording["output"]
    if recording["op"] in CONVERSIONS:
        return value_of(None, output)
    if recording["op"].startswith("from"):
        return None if output is None else base64.b64decode(output["base64"])
    if output is None:
        return SchemaAndValue(None, None)
    schema = schema_of(output["schema"])
    return SchemaAndValue(schema, value_of(schema, output["value"]))


def message_of(error: dict[str, Any]) -> str:
    """The words of an error; `Values` was called by reflection, which wraps it."""
    return str(error["message"] or error["cause_message"])


def comparable(message: str) -> str:
    """The words of an error without what only a JVM says, and without punctuation at the end."""
    message = re.sub("Java class class .* does", "does", message)
    if message.startswith("Unable to convert"):
        # The type in parentheses is Java's; a byte array is printed as its address, here as its base64.
        return re.sub(r"\[B@\w+", "AP8=", re.sub(r" \([^()]*\)", "", message))
    return message.split(":")[0].split(" class ")[0].rstrip(". ")


@pytest.mark.parametrize("operation", sorted({recording["op"] for recording in recordings()}))
def test_recordings_replayed_equal_connect(operation: str) -> None:
    of_operation = [recording for recording in recordings() if recording["op"] == operation]
    check_each(of_operation, name_of, check_recording)


def check_recording(recording: dict[str, Any]) -> None:
    if recording["id"] in DIFFERENCES:
        _, ours = DIFFERENCES[recording["id"]]
        assert play(recording) == ours.encode()
    elif "error" in recording:
        with pytest.raises(ConnectError) as caught:
            play(recording)
        assert comparable(message_of(recording["error"])) in comparable(caught.value.message)
    else:
        actual = play(recording)
        assert same(actual, expected(recording)), (actual, expected(recording))


def test_recordings_cover_every_operation() -> None:
    played = {(r.get("class", "").rpartition(".")[2], r["op"]) for r in recordings()}
    assert played == {
        ("JsonConverter", "toConnectData"),
        ("JsonConverter", "fromConnectData"),
        ("StringConverter", "toConnectData"),
        ("StringConverter", "fromConnectData"),
        ("ByteArrayConverter", "toConnectData"),
        ("ByteArrayConverter", "fromConnectData"),
        ("SimpleHeaderConverter", "toConnectHeader"),
        ("SimpleHeaderConverter", "fromConnectHeader"),
        *((f"{name}Converter", operation) for name in NUMBERS for operation in ("toConnectData", "fromConnectData")),
        *(("", operation) for operation in CONVERSIONS),
    }
