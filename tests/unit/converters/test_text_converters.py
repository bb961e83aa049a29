"""StringConverter, ByteArrayConverter, SimpleHeaderConverter and Java's text beyond what is recorded."""

from __future__ import annotations

import datetime
import math
import struct
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.converters.byte_array_converter import ByteArrayConverter
from airflow_connect.converters.java_text import (
    calendar_fields,
    date_text,
    decimal_text,
    double_text,
    epoch_day,
    epoch_ms,
    float_text,
    java_string,
    to_float32,
)
from airflow_connect.converters.simple_header_converter import SimpleHeaderConverter
from airflow_connect.converters.string_converter import StringConverter
from airflow_connect.errors import ConfigError, DataError


@given(st.floats(allow_nan=False))
def test_double_text_reads_back_as_the_same_number(value: float) -> None:
    assert float(double_text(value).replace("Infinity", "inf")) == value


@given(st.floats(allow_nan=False, width=32))
def test_float_text_reads_back_as_the_same_float_and_is_shortest(value: float) -> None:
    text = float_text(value)
    assert to_float32(float(text.replace("Infinity", "inf"))) == value
    if math.isfinite(value):
        assert len(Decimal(text).normalize().as_tuple().digits) <= 9


@pytest.mark.parametrize(
    ("value", "text"),
    [(1e7, "1.0E7"), (9999999.5, "9999999.5"), (1e-3, "0.001"), (9.9e-4, "9.9E-4"), (2e23, "2.0E23"), (-0.0, "-0.0")],
)
def test_double_text_changes_notation_where_java_does(value: float, text: str) -> None:
    assert double_text(value) == text


def test_to_float32_rounds_a_decimal_only_once() -> None:
    middle = Decimal("1.000000059604644775390625")
    above = Decimal("1.000000059604644775390625000000001")
    assert to_float32(float(above)) == 1.0
    assert to_float32(above) == 1.0 + 2**-23
    assert to_float32(middle) == 1.0


def test_decimal_text_has_no_negative_zero() -> None:
    assert decimal_text(Decimal("-0.00")) == "0.00"


@given(st.integers(-(2**63) // 1000, 2**63 // 1000))
def test_calendar_fields_round_trip_through_epoch_day(instant_ms: int) -> None:
    t = calendar_fields(instant_ms)
    day_ms = epoch_day(t.year, t.month, t.day) * 86_400_000
    assert day_ms + ((t.hour * 60 + t.minute) * 60 + t.second) * 1000 + t.ms == instant_ms


@given(st.datetimes(datetime.datetime(1582, 10, 15), datetime.datetime(9999, 12, 31)))  # noqa: DTZ001
def test_calendar_fields_after_1582_equal_python(moment: datetime.datetime) -> None:
    t = calendar_fields(epoch_ms(moment))
    assert (t.year, t.month, t.day, t.hour, t.weekday) == (*moment.timetuple()[:4], moment.strftime("%a"))


def test_date_text_before_christ_prints_the_year_of_the_era() -> None:
    assert date_text(epoch_day(0, 1, 1) * 86_400_000).endswith("UTC 0001")


def test_java_string_of_nested_values_uses_the_schema() -> None:
    schema = s.struct(("f", s.FLOAT32), ("d", s.date()), ("m", s.map_of(s.STRING, s.array(s.timestamp()))))
    value = {"f": to_float32(0.1), "d": 0, "m": {"k": [0, None]}}
    day = "Thu Jan 01 00:00:00 UTC 1970"
    assert java_string(schema, value) == f"Struct{{f=0.1,d={day},m={{k=[{day}, null]}}}}"


def string_converter(encoding: str) -> StringConverter:
    converter = StringConverter()
    converter.configure({"converter.encoding": encoding}, True)
    return converter


@pytest.mark.parametrize(
    ("encoding", "data"),
    [("UTF-8", "é😀".encode()), ("ISO-8859-1", b"\xe9?"), ("UTF-16", b"\xfe\xff" + "é😀".encode("utf-16-be"))],
)
def test_string_converter_writes_the_encoding(encoding: str, data: bytes) -> None:
    converter = string_converter(encoding)
    assert converter.from_connect("t", s.STRING, "é😀") == data
    assert converter.from_connect_header("t", "h", s.STRING, "é😀") == data
    assert converter.to_connect_header("t", "h", data).value in ("é😀", "é?")


def test_string_converter_utf16_without_mark_is_big_endian() -> None:
    assert string_converter("UTF-16").to_connect("t", b"\x00a").value == "a"


def test_string_converter_bytes_that_are_no_text_become_replacement_characters() -> None:
    assert StringConverter().to_connect("t", b"a\xff") == (s.OPTIONAL_STRING, "a\ufffd")
    assert StringConverter().to_connect("t", None) == (s.OPTIONAL_STRING, None)


@pytest.mark.parametrize("encoding", ["nope", "hex", "a\0b"])
def test_string_converter_unknown_encoding_is_refused(encoding: str) -> None:
    with pytest.raises(ConfigError) as caught:
        string_converter(encoding)
    assert caught.value.config_path == "converter.encoding"


def test_byte_array_converter_headers_pass_through() -> None:
    converter = ByteArrayConverter()
    converter.configure({}, True)
    assert converter.to_connect_header("t", "h", b"\x00") == (s.OPTIONAL_BYTES, b"\x00")
    assert converter.from_connect_header("t", "h", None, bytearray(b"\x00")) == b"\x00"


def deep_list() -> list[Any]:
    value: list[Any] = []
    for _ in range(5000):
        value = [value]
    return value


@pytest.mark.parametrize("converter", [StringConverter(), SimpleHeaderConverter()], ids=lambda c: type(c).__name__)
def test_value_nested_too_deeply_is_a_data_error(converter: Any) -> None:
    with pytest.raises(DataError, match="nested too deeply"):
        converter.from_connect_header("t", "h", None, deep_list())


def guessed(text: str) -> tuple[s.Schema | None, Any]:
    return SimpleHeaderConverter().to_connect_header("t", "h", text.encode())


def test_header_lists_nested_too_deeply_are_a_data_error() -> None:
    for text in ("[" * 5000, "[" * 101 + "]" * 101, "{1:" * 101 + "1" + "}" * 101):
        with pytest.raises(DataError, match="nested more than 100 times"):
            guessed(text)
    value = guessed("[" * 100 + "]" * 100)[1]
    for _ in range(99):
        (value,) = value
    assert value == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (s.STRING, "")),
        ("2024-02-30", (s.date(), epoch_day(2024, 3, 1))),
        ("2024-13-01", (s.date(), epoch_day(2025, 1, 1))),
        ("1E99999999999", (s.STRING, "1E99999999999")),
        ("+Infinity", (s.STRING, "+Infinity")),
        ("1E400", (s.decimal(-400), Decimal("1E400"))),
        ('["2024-01-02","x"]', (s.Schema(s.Type.ARRAY), [19724, "x"])),
        ("[null]", (s.Schema(s.Type.ARRAY), [None])),
        ('{"a":null}', (s.Schema(s.Type.MAP, key_schema=s.STRING), {"a": None})),
        ('{"a":1,"b":300}', (s.map_of(s.STRING, s.INT16), {"a": 1, "b": 300})),
        ("[1,2.5,3]", (s.array(s.FLOAT32), [1.0, 2.5, 3.0])),
    ],
)
def test_header_text_is_guessed(text: str, expected: tuple[s.Schema, Any]) -> None:
    assert guessed(text) == expected


scalars = st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.text("abc xyz", min_size=1, max_size=6)


@given(scalars | st.lists(st.integers(-128, 127), min_size=1, max_size=4))
def test_header_round_trip_keeps_the_value(value: Any) -> None:
    if value in ("true", "false", "null"):
        return
    converter = SimpleHeaderConverter()
    data = converter.from_connect_header("t", "h", None, value)
    assert converter.to_connect_header("t", "h", data).value == value


@given(st.text(max_size=30) | st.text('0123456789:-+.,[]{}"\\ TZenulr', max_size=30))
def test_header_guess_never_fails(text: str) -> None:
    schema, value = guessed(text)
    assert (schema is None) == (value is None and text.strip() == "null")


@given(st.binary(max_size=4).filter(lambda b: len(b) == 4))
def test_header_float_with_schema_prints_the_float(data: bytes) -> None:
    value = struct.unpack("<f", data)[0]
    written = SimpleHeaderConverter().from_connect_header("t", "h", s.FLOAT32, value)
    assert written == float_text(value).encode()


def test_schemaless_float_is_a_double() -> None:
    """Listed in docs/compatibility.md: Python does not tell Java's Float and Double apart."""
    (narrow,) = struct.unpack("<f", struct.pack("<f", 0.1))
    assert string_converter("UTF-8").from_connect("t", None, narrow) == b"0.10000000149011612"
    assert string_converter("UTF-8").from_connect("t", s.FLOAT32, narrow) == b"0.1"
