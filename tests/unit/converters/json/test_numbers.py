"""JsonConverter gives one value for one message: first and later, with a fixed schema, in columns, in headers.

It is Java's value (BigDecimal.longValue and its siblings), which tests/data/numbers.jsonl records.
"""

from __future__ import annotations

import base64
import json
from decimal import Decimal
from typing import Any

import orjson
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.schema import Type
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.text import MAX_DEPTH, MAX_NUMBER_DIGITS, has_long_number
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import narrowed, to_float32
from tests.support.session.searching import examples
from tests.support.values.connect_values import same

BITS = {Type.INT8: 8, Type.INT16: 16, Type.INT32: 32, Type.INT64: 64}
EDGES = [0, 1, 2**7, 2**31, 2**32, 10**15, 2**53, 2**63, 2**64, 10**19, 10**25]
FRACTIONS = ["", ".0", ".00", ".5", ".9999999999999999999", ".0000000000000000001", ".4", ".25"]

numbers = st.builds(
    lambda edge, near, fraction, sign: f"{sign}{max(0, edge + near)}{fraction}",
    st.sampled_from(EDGES),
    st.integers(-3, 3),
    st.sampled_from(FRACTIONS),
    st.sampled_from(["", "-"]),
) | st.builds(
    lambda mantissa, fraction, exponent: f"{mantissa}{fraction}e{exponent}",
    st.integers(-(10**20), 10**20),
    st.sampled_from(FRACTIONS),
    st.integers(-30, 70) | st.sampled_from([-(2**31), 2**31 - 60, 400, -400]),
)


def converter(**config: Any) -> JsonConverter:
    made = JsonConverter()
    made.configure({key.replace("_", "."): value for key, value in config.items()}, False)
    return made


def expected(kind: Type, text: str) -> Any:
    exact = Decimal(text)
    if kind in BITS:
        return narrowed(exact, BITS[kind])
    # -0 has no sign in Java; the sign of -0.0 is kept here.
    number = Decimal(int(text)) if text.lstrip("-").isdigit() else exact
    return to_float32(number) if kind is Type.FLOAT32 else float(number)


def outcome(call: Any) -> Any:
    try:
        return call()
    except DataError:
        return "refused"


@settings(max_examples=examples(400), deadline=None)
@given(st.sampled_from([*BITS, Type.FLOAT32, Type.FLOAT64]), numbers)
def test_number_read_in_any_way_is_the_same_and_what_java_reads(kind: Type, text: str) -> None:
    schema = f'{{"type":"struct","fields":[{{"type":"{kind.value}","field":"a"}}]}}'
    message = f'{{"schema":{schema},"payload":{{"a":{text}}}}}'.encode()
    plain = f'{{"a":{text}}}'.encode()
    warm, fixed = converter(), converter(schema_content=schema)
    assert warm.to_connect("t", f'{{"schema":{schema},"payload":{{"a":1}}}}'.encode()).value == {"a": 1}
    found = [
        outcome(lambda: converter().to_connect("t", message).value),
        outcome(lambda: warm.to_connect("t", message).value),
        outcome(lambda: warm.to_connect_header("t", "h", message).value),
        outcome(lambda: fixed.to_connect("t", plain).value),
    ]
    columns = fixed.to_columns("t", pa.array([plain, b'{"a":1}'], pa.binary()))
    if columns is not None:
        found.append(columns[0].values.to_pylist()[0])
    try:
        wanted: Any = {"a": expected(kind, text)}
    except OverflowError:
        wanted = {"a": float("-inf" if text.startswith("-") else "inf")}
    if found[0] == "refused":
        # The exponent, or the scale that comes of it, is beyond 32 bits.
        assert abs(Decimal(text).as_tuple().exponent) > 2**31 - 100  # type: ignore[arg-type]
        wanted = "refused"
    assert all(same(each, wanted) for each in found), (text, wanted, found)


@settings(max_examples=examples(200), deadline=None)
@given(numbers)
def test_schemaless_number_is_the_same_alone_and_in_columns(text: str) -> None:
    plain = converter(schemas_enable="false")
    message = f'{{"a":[{text}]}}'.encode()
    first = outcome(lambda: plain.to_connect("t", message).value)
    envelope = outcome(lambda: converter().to_connect("t", b'{"schema":null,"payload":%b}' % message).value)
    assert same(first, envelope)
    columns = plain.to_columns("t", pa.array([message], pa.binary()))
    if first == "refused":
        assert columns is None
    elif columns is not None:
        assert same(orjson.loads(columns[0].values[0].as_py()), first) or "e" in text or "." in text


@pytest.mark.parametrize(
    ("text", "value"),
    [("9007199254740993.0", 9007199254740993), ("1.9999999999999999", 1), ("1e63", -(2**63)), ("1e64", 0)],
)
def test_whole_numbers_with_a_point_or_an_exponent_keep_their_digits(text: str, value: int) -> None:
    warm = converter()
    message = f'{{"schema":{{"type":"int64"}},"payload":{text}}}'.encode()
    assert [warm.to_connect("t", message).value for _ in range(3)] == [value] * 3


MARKS = [b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf\xef\xbb\xbf1", b"\xff\xfe\xff\xfe1\0"]


@pytest.mark.parametrize("data", MARKS)
def test_document_of_marks_only_or_with_two_of_them_is_broken(data: bytes) -> None:
    for config in ({"schemas_enable": "false"}, {}, {"schema_content": '{"type":"int32","optional":true}'}):
        with pytest.raises(DataError, match="serialization error"):
            converter(**config).to_connect("t", data)
    assert converter(schemas_enable="false").to_columns("t", pa.array([data, b"1"], pa.binary())) is None


DEEP = "[" * (MAX_DEPTH + 1) + "]" * (MAX_DEPTH + 1)
LONG = "0." + "1" * MAX_NUMBER_DIGITS


@pytest.mark.parametrize("inside", [DEEP, LONG, "1" * (MAX_NUMBER_DIGITS + 1)], ids=["deep", "fraction", "integer"])
@pytest.mark.parametrize("member", ["a", "unknown"])
def test_document_beyond_a_limit_is_refused_in_every_way(inside: str, member: str) -> None:
    schema = json.dumps({"type": "struct", "fields": [{"type": "double", "field": "a", "optional": True}]})
    plain = f'{{"{member}":{inside}}}'.encode()
    message = b'{"schema":%b,"payload":%b}' % (schema.encode(), plain)
    warm, fixed = converter(), converter(schema_content=schema)
    warm.to_connect("t", b'{"schema":%b,"payload":{}}' % schema.encode())
    for read, data in (
        (converter(), message), (warm, message), (fixed, plain), (converter(schemas_enable="false"), plain),
    ):  # fmt: skip
        with pytest.raises(DataError, match=r"nested too deeply|exceeds the maximum allowed"):
            read.to_connect("t", data)
        if read.has_columns:
            assert read.to_columns("t", pa.array([data], pa.binary())) is None


@pytest.mark.parametrize("number", ["1" * 1001, "0." + "7" * 1000, f"{'1' * 334}.{'2' * 333}e{'3' * 334}"])
def test_number_of_too_many_digits_is_found_wherever_it_begins(number: str) -> None:
    for place in range(40):
        assert has_long_number(f'{{"a":"{"x" * place}","b":{number},"c":"{"y" * (40 - place)}"}}'.encode())


def test_digits_of_ordinary_records_are_no_long_number() -> None:
    row = {"price": 18_237.25, "lat": 52.520008123456, "at": "2026-01-02T03:04:05.678Z", "id": 9_007_199_254_740_991}
    assert not has_long_number(json.dumps([row] * 2000).encode())
    # Twenty sampled digits alone decide nothing.
    assert not has_long_number(b"1" * 332 + b" " + b"1" * 332)


CONSTANTS = [f"{sign}{name}" for name in ("NaN", "Inf", "Infinity") for sign in ("", "-")]
AMOUNT = json.dumps({"type": "struct", "fields": [{"type": "double", "field": "a", "optional": True}]})


@pytest.mark.parametrize("constant", CONSTANTS)
@pytest.mark.parametrize("member", ['"a":%s', '"unknown":%s', '"unknown": [1, %s]', '"unknown":{"b":\t%s}'])
def test_constant_that_is_no_json_is_refused_alone_and_in_columns(constant: str, member: str) -> None:
    fixed = converter(schema_content=AMOUNT)
    message = f"{{{member % constant}}}".encode()
    with pytest.raises(DataError, match="serialization error"):
        fixed.to_connect("t", message)
    assert fixed.to_columns("t", pa.array([b'{"a":1}', message, b'{"a":2}'], pa.binary())) is None


def test_text_that_looks_like_a_constant_stays_in_columns() -> None:
    fixed = converter(schema_content=AMOUNT)
    messages = [b'{"a":1,"unknown":": NaN"}', b'{"a":2,"unknown":",Infinity"}']
    (columns,) = fixed.to_columns("t", pa.array(messages, pa.binary())) or ()
    assert columns.values.to_pylist() == [{"a": 1.0}, {"a": 2.0}]


def test_number_that_rounds_to_infinity_is_refused_by_strict_types_in_columns_too() -> None:
    message = b'{"a":1.7976931348623159e308}'
    strict = converter(schema_content=AMOUNT, strict_types="true")
    with pytest.raises(DataError, match="number out of range"):
        strict.to_connect("t", message)
    assert strict.to_columns("t", pa.array([message], pa.binary())) is None


def test_values_at_the_limits_are_read_and_written() -> None:
    plain = converter(schemas_enable="false")
    deepest = b"[" * MAX_DEPTH + b"]" * MAX_DEPTH
    assert plain.from_connect("t", None, plain.to_connect("t", deepest).value) == deepest
    longest = b"1" * MAX_NUMBER_DIGITS
    assert plain.to_connect("t", longest).value == narrowed(int(longest), 64)


def test_schema_nested_too_deeply_is_a_data_error() -> None:
    schema = '{"type":"array","items":' * s.MAX_SCHEMA_DEPTH + '{"type":"int32"}' + "}" * s.MAX_SCHEMA_DEPTH
    with pytest.raises(DataError, match="nested more than 100 levels"):
        converter().to_connect("t", f'{{"schema":{schema},"payload":[]}}'.encode())


@pytest.mark.parametrize("size", [1900, 4096])
def test_large_decimals_are_read_and_written(size: int) -> None:
    made = converter()
    written = made.from_connect("t", s.decimal(2), Decimal("1.00"))
    assert written is not None
    message = written.replace(b'"ZA=="', b'"%b"' % base64.b64encode(b"\x7f" * size))
    for _ in range(2):
        found = made.to_connect("t", message)
        assert made.from_connect("t", found.schema, found.value) == message
    too_large = written.replace(b'"ZA=="', b'"%b"' % base64.b64encode(b"\x7f" * 4097))
    with pytest.raises(DataError, match="4097 bytes is too large"):
        made.to_connect("t", too_large)
