from __future__ import annotations

import datetime
import json
from decimal import Decimal
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.converters.json.documents import schemaless_lines, to_json_lines
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.formats.json_lines import JsonFormat
from tests.support.session.ids import shown
from tests.support.session.searching import examples


class Sink:
    def __init__(self) -> None:
        self.data = bytearray()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.data += data


def written(values: list[Any], schema: s.Schema | None = None, **options: Any) -> bytes:
    sink = Sink()
    encoder = JsonFormat(**options).open(sink, schema)
    encoder.append(values)
    encoder.spill()
    encoder.finish()
    assert encoder.buffered_bytes == 0
    return bytes(sink.data)


def plain_converter() -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": "false"}, False)
    return converter


def two_steps(messages: list[bytes]) -> bytes:
    """Converter and format, record by record: what `to_json_lines` must equal."""
    converter = plain_converter()
    sink = Sink()
    encoder = JsonFormat().open(sink, None)
    for message in messages:
        encoder.append([converter.to_connect("t", message).value])
    return bytes(sink.data)


def test_format_without_compression_names_json() -> None:
    plain = JsonFormat()
    assert (plain.extension, plain.content_type, plain.content_encoding) == (".json", "application/json", "")


def test_format_with_gzip_names_extension_and_encoding() -> None:
    compressed = JsonFormat(gzip=True)
    assert (compressed.extension, compressed.content_encoding) == (".json.gz", "gzip")


def test_format_unknown_decimal_format_is_refused() -> None:
    with pytest.raises(ConfigError) as caught:
        JsonFormat("HEX")
    assert caught.value.config_path == "json.decimal.format"


def test_append_schemaless_maps_keep_key_order_and_end_with_line_feed() -> None:
    assert (
        written([{"b": 1, "a": None}, [1, 2.5, "x"], None, "é"]) == b'{"b":1,"a":null}\n[1,2.5,"x"]\nnull\n"\xc3\xa9"\n'
    )


def test_append_nothing_writes_nothing() -> None:
    assert written([]) == b""


@pytest.mark.parametrize(
    ("value", "line"),
    [
        (2**64, "18446744073709551616"),
        (-(2**70), "-1180591620717411303424"),
        ({"a": b"\x00\xff"}, '{"a":"AP8="}'),
        ({"a": Decimal("1.50")}, '{"a":1.50}'),
        (Decimal("7E+2"), "7E+2"),
        ({1: "x", False: "y", 2.5: "z"}, '{"1":"x","false":"y","2.5":"z"}'),
        ({"t": datetime.datetime(1970, 1, 2, tzinfo=datetime.UTC)}, '{"t":86400000}'),
        ({"t": datetime.datetime(1970, 1, 1, 0, 0, 1)}, '{"t":1000}'),  # noqa: DTZ001
        ([float("nan"), float("-inf"), None], '["NaN","-Infinity",null]'),
        ({"a": {"b": [None, float("inf")]}}, '{"a":{"b":[null,"Infinity"]}}'),
        ("\ud800", '"\\uD800"'),
        ({"\udfff": "😀"}, '{"\\uDFFF":"😀"}'),
        ((1, 2), "[1,2]"),
        (memoryview(b"ab"), '"YWI="'),
        (1e7, "10000000.0"),
    ],
    ids=shown,
)
def test_append_value_that_needs_the_exact_way_is_written(value: Any, line: str) -> None:
    assert written([value]) == line.encode() + b"\n"
    assert written([{"a": 1}, value, None]) == b'{"a":1}\n' + line.encode() + b"\nnull\n"


@pytest.mark.parametrize("value", [object(), {"a": Decimal("NaN")}, {None: 1}, datetime.date(2024, 1, 1)], ids=shown)
def test_append_value_without_json_form_is_a_data_error(value: Any) -> None:
    with pytest.raises(DataError):
        written([value])


def test_append_value_nested_too_deeply_is_a_data_error() -> None:
    value: list[Any] = []
    for _ in range(100_000):
        value = [value]
    with pytest.raises(DataError, match="nested too deeply"):
        written([value])


def test_append_structs_are_written_as_json_converter_does() -> None:
    schema = s.struct(
        ("id", s.INT32), ("name", s.OPTIONAL_STRING), ("price", s.decimal(2, optional=True)), ("ratio", s.FLOAT64)
    )
    rows = [
        {"id": 1, "name": "😀", "price": Decimal("10.50"), "ratio": 1e10},
        {"id": 2, "name": None, "price": None, "ratio": float("nan")},
    ]
    converter = plain_converter()
    reference = b"".join(converter.from_connect("t", schema, row) + b"\n" for row in rows)
    assert written(rows, schema) == reference
    assert b'"price":"BBo="' in reference
    assert b'"price":10.50' in written(rows, schema, decimal_format="numeric")


def test_append_struct_that_does_not_fit_writes_nothing() -> None:
    sink = Sink()
    encoder = JsonFormat().open(sink, s.struct(("id", s.INT32)))
    with pytest.raises(DataError, match="Invalid type for INT32"):
        encoder.append([{"id": 1}, {"id": "x"}])
    assert sink.data == b""


def test_schemaless_lines_over_many_chunks_equal_line_by_line() -> None:
    values = [{"i": i, "f": float("nan") if i % 200 == 7 else i / 3} for i in range(1000)]
    assert schemaless_lines(values) == b"".join(schemaless_lines([v]) for v in values)


TRICKY = [
    b"",
    b" ",
    b"null",
    b'{"a" : 1 }',
    b'{"a":1,"b":2,"a":3}',
    b'{"f":1.0,"g":1e2,"h":1E-7,"i":-0,"j":-0.0,"k":0.1e1}',
    b'{"u":"\\u00e9\\ud83d\\ude00\\/\\u001f\\u0041"}',
    b'"\\ud800"',
    b"9223372036854775807",
    b"9223372036854775808",
    b"18446744073709551615",
    b"[18446744073709551616]",
    b'{"n":-9223372036854775809}',
    b'{"n":123456789012345678901234567890}',
    b"9007199254740993",
    b"1700000000123456789",
    b"1e400",
    b"[-1e400,null]",
    b"1e22",
    b"12345678901234567890.5",
    b"0.12345678901234567890123456789",
    b"007",
    b'{"a":-01.5}',
    b"\xef\xbb\xbf1",
    "é".encode("utf-16"),
    b'"\xc3\xa9\xf0\x9f\x98\x80"',
    b'{"a":1} trailing',
    b"1 2",
    b"[[[[]]]]",
    b'{"a":[{}',
    b"{}]},{}",
    b"1,2",
    b"}",
    b'"',
    b"nan",
    b"tru",
    b"nullx",
    b"\xff",
    b'"\n"',
    b"[" * 1100 + b"]" * 1100,
]
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
messages = (
    st.sampled_from(TRICKY)
    | json_values.map(lambda v: json.dumps(v).encode())
    | json_values.map(lambda v: json.dumps(v, ensure_ascii=False, separators=(",", ":")).encode())
    | json_values.map(lambda v: json.dumps(v, indent=1).encode())
    | st.text(alphabet='{}[]",:01e.-+ \\unatlfsrb9\n', max_size=12).map(str.encode)
    | st.binary(max_size=6)
)


@settings(max_examples=examples(600), deadline=None)
@given(st.lists(messages, max_size=8))
def test_to_json_lines_equals_converter_then_format(batch: list[bytes]) -> None:
    try:
        expected = two_steps(batch)
    except DataError:
        with pytest.raises(DataError):
            to_json_lines(batch)
    else:
        assert to_json_lines(batch) == expected


@pytest.mark.parametrize("message", TRICKY, ids=lambda m: repr(m[:24]))
def test_to_json_lines_tricky_message_among_canonical_ones_equals_two_steps(message: bytes) -> None:
    batch = [b'{"a":1}', message, b'{"b":[1.5,"x"]}']
    try:
        expected = two_steps(batch)
    except DataError:
        with pytest.raises(DataError):
            to_json_lines(batch)
    else:
        assert to_json_lines(batch) == expected


@pytest.mark.parametrize(
    "batch",
    [
        [b'{"a":[{}', b"{}]},{}"],
        [b'{"a":[{}', b"{}]},0,{}"],
        [b"[1", b"2]"],
        [b'{"a":1', b'"b":2},3'],
        [b"1,2", b""],
        [b'"a', b'b"'],
    ],
    ids=shown,
)
def test_to_json_lines_messages_that_are_json_only_together_are_refused(batch: list[bytes]) -> None:
    with pytest.raises(DataError):
        to_json_lines(batch)


def test_to_json_lines_large_batches_and_large_messages_equal_two_steps() -> None:
    small = [orjson.dumps({"i": i, "t": "x" * (i % 50)}) for i in range(1000)]
    large = [orjson.dumps({"i": i, "t": "y" * 700_000}) for i in range(3)]
    batch = small + large + [b'{"odd" : 1}'] + small
    assert to_json_lines(batch) == two_steps(batch)
    assert to_json_lines([]) == b""
