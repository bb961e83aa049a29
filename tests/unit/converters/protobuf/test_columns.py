"""Protobuf in columns is the reference path in columns: equal where it answers, and never where that path refuses."""

from __future__ import annotations

import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from google.protobuf import message_factory
from google.protobuf.message import DecodeError
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.converters.protobuf.columns import column_reader, read_column
from airflow_connect.converters.protobuf.files import message_at, open_schema
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.reading import message_reader
from airflow_connect.converters.protobuf.to_connect import schema_to_connect
from airflow_connect.converters.scan import Scan, padded
from airflow_connect.converters.unread import Unread
from airflow_connect.errors import DataError, SchemaError
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.session.searching import examples
from tests.support.values.connect_values import same
from tests.unit.converters.protobuf.random_messages import ENUM, IMPORTS, contents, message_types

OTHER = b"\xff" * 7
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        name: st.booleans()
        for name in (
            "generalized_sum_types",
            "full_names",
            "int_for_enums",
            "optional_for_nullables",
            "optional_for_proto2",
            "wrapper_for_nullables",
            "wrapper_for_raw_primitives",
            "struct_for_nulls",
            "index_for_unions",
            "flatten_unions",
        )
    },
)


def _scan(messages: list[bytes]) -> Scan:
    """Messages that lie between other bytes."""
    data = OTHER + OTHER.join(messages) + OTHER
    sizes = np.array([len(message) for message in messages], np.int64)
    starts = np.cumsum(sizes + len(OTHER)) - sizes
    return Scan(pa.py_buffer(data), padded(np.frombuffer(data, np.uint8)), starts, starts + sizes)


def columns(message: Any, messages: list[bytes], **options: bool) -> list[Any] | None:
    """Values read in columns."""
    chosen = ProtobufOptions(**options)
    schema = schema_to_connect(message, chosen)
    reader = column_reader(message, schema, chosen)
    assert reader is not None
    column = read_column(reader, _scan(messages))
    if column is None:
        return None
    column.validate(full=True)
    assert len(column) == len(messages)
    return python_values(schema, column)


def one_by_one(message: Any, messages: list[bytes], **options: bool) -> list[Any] | None:
    """Values read one by one; None: one of them is an error, or has something that is left out."""
    chosen = ProtobufOptions(**options, unread=(unread := Unread()))
    read = message_reader(message, schema_to_connect(message, chosen), chosen)
    parse = message_factory.GetMessageClass(message).FromString
    try:
        values = [read(parse(data)) for data in messages]
    except (DecodeError, DataError):
        return None
    return None if unread.found else values


def message_type(body: str, *, syntax: str = "proto3") -> Any:
    """The message type M of a .proto text."""
    return message_at(open_schema(f'syntax = "{syntax}"; {IMPORTS} {ENUM} message M {{ {body} }}', {}), [0])


def check(message: Any, messages: list[bytes], **options: bool) -> bool:
    """Compare both; returns whether there are columns."""
    found = columns(message, messages, **options)
    if found is None:
        return False
    expected = one_by_one(message, messages, **options)
    assert expected is not None, messages
    assert same(found, expected)
    assert [_orders(value) for value in found] == [_orders(value) for value in expected]
    return True


def _orders(value: Any) -> Any:
    """The order of the keys of all maps in a value."""
    if isinstance(value, dict):
        return [(key, _orders(inner)) for key, inner in value.items() if not isinstance(key, float)]
    return [_orders(item) for item in value] if isinstance(value, list) else None


def _is_possible(message: Any, options: dict[str, bool]) -> bool:
    chosen = ProtobufOptions(**options)
    try:
        return column_reader(message, schema_to_connect(message, chosen), chosen) is not None
    except SchemaError:
        return False


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_random_types_and_messages_equal_reference(data: st.DataObject) -> None:
    message, options = data.draw(message_types()), data.draw(OPTIONS)
    made = data.draw(st.lists(contents(message, 10**6), min_size=1, max_size=6))
    if _is_possible(message, options):
        check(message, [one.SerializePartialToString() for one in made], **options)


@settings(max_examples=examples(300), deadline=None)
@given(st.data())
def test_odd_and_damaged_messages_are_none_or_equal_reference(data: st.DataObject) -> None:
    message, options = data.draw(message_types()), data.draw(OPTIONS)
    made = data.draw(st.lists(contents(message, 8), min_size=1, max_size=5))
    messages = [one.SerializePartialToString() for one in made]
    victim = data.draw(st.integers(0, len(messages) - 1))
    messages[victim] = data.draw(_damaged(messages))
    if _is_possible(message, options):
        check(message, messages, **options)


@st.composite
def _damaged(draw: st.DrawFn, messages: list[bytes]) -> bytes:
    message = bytearray(draw(st.sampled_from(messages)))
    how = draw(st.sampled_from(["cut", "bytes", "two", "unknown"]))
    if how == "cut":
        del message[draw(st.integers(0, len(message))) :]
    elif how == "two":  # parsers merge both
        message += draw(st.sampled_from(messages))
    elif how == "unknown":
        message += b"\xa8\xf1\x04\x07"
    elif message:
        for _ in range(draw(st.integers(1, 4))):
            message[draw(st.integers(0, len(message) - 1))] = draw(st.sampled_from([0, 1, 2, 8, 10, 127, 128, 255]))
    return bytes(message)


EVERYTHING = """int32 a = 1; optional string b = 2; repeated sint64 c = 3; repeated string d = 4;
map<string, int32> e = 5; Inner f = 6; repeated Inner g = 7; Kind h = 8; google.protobuf.Timestamp i = 9;
google.type.Date j = 10; google.type.TimeOfDay k = 11; oneof m { string n = 12; Inner o = 13; }
map<uint64, Inner> p = 1000; double q = 14;
google.protobuf.StringValue r = 15; confluent.type.Decimal s = 16 [(confluent.field_meta) = {params: [{key: "scale",
value: "2"}]}]; repeated bytes t = 17; repeated double u = 18; repeated Kind v = 19; bool w = 20; float x = 21;
message Inner { int64 y = 1; repeated bool z = 2; }"""


def _everything(n: int) -> dict[str, Any]:
    """Most fields, and some of them only in some of the messages."""
    content: dict[str, Any] = {"a": n, "h": 2, "q": n / 3, "w": True, "x": 0.5, "c": list(range(-n, n)), "v": [0, 2]}
    content |= {"d": ["ü", ""], "e": {"z": 1, "b": n}, "f": {"y": -n}, "g": [{"y": n, "z": [True, False]}, {}]}
    content |= {"i": {"seconds": n, "nanos": 7_000_000}, "j": {"year": 2024, "month": 2, "day": 29}}
    content |= {"k": {"hours": 23, "nanos": 999_999_999}, "p": {2**62: {"y": 1}, 3: {}}, "t": [b"", b"\xff"]}
    if n % 2:
        content |= {"b": "text", "n": "", "r": {"value": ""}, "u": [0.5], "s": {"value": b"\xff\x00", "scale": 2}}
    elif n % 3:
        content |= {"o": {"y": 5}, "r": {"value": "r"}, "s": {"scale": 2}}
    return content


def test_every_kind_of_field_is_a_column() -> None:
    message = message_type(EVERYTHING)
    kind = message_factory.GetMessageClass(message)
    messages = [kind(**_everything(n)).SerializeToString() for n in range(40)]
    found = columns(message, messages)
    assert found is not None
    assert check(message, messages)
    assert found[1]["s"] == Decimal("-2.56") and found[2]["s"] == Decimal("0.00") and found[6]["s"] is None
    assert list(found[1]["e"]) == ["b", "z"] and list(found[1]["p"]) == [3, 2**62]
    assert found[1]["m_0"] == {"n": "", "o": None} and found[2]["m_0"]["o"] == {"y": 5, "z": []}
    assert found[6]["m_0"] is None and found[0]["b"] is None and found[1]["b"] == "text"


@pytest.mark.parametrize("number", [0, 1, 127, 128, 2**31, 2**53, 2**56 - 1, 2**56, 2**63 - 1, 2**63, 2**64 - 1])
def test_numbers_of_every_length_are_read(number: int) -> None:
    message = message_type("uint64 a = 1; repeated uint64 b = 2; int32 c = 3; bool d = 4; sint32 e = 5; uint32 f = 6;")
    varint = _varint(number)
    packed = varint + b"\x01" + varint
    # 32 bits and booleans, too, may be written as longer numbers.
    each = b"\x08" + varint + b"\x12" + bytes([len(packed)]) + packed
    each += b"".join(tag + varint for tag in (b"\x18", b"\x20", b"\x28", b"\x30"))
    # An unsigned number beyond 63 bits changes, and is named: one by one.
    assert check(message, [each, each]) == (number < 2**63)


@pytest.mark.parametrize("kind", ["uint64", "fixed64"])
@pytest.mark.parametrize("number", [2**63 - 1, 2**63, 2**64 - 1])
def test_unsigned_number_beyond_63_bits_goes_one_by_one(kind: str, number: int) -> None:
    message = message_type(f"optional {kind} a = 1; repeated {kind} b = 2; map<{kind}, {kind}> c = 3;")
    made = message_factory.GetMessageClass(message)
    for fields in ({"a": number}, {"b": [1, number]}, {"c": {number: 1}}, {"c": {1: number}}):
        assert check(message, [made(**fields).SerializeToString()]) == (number < 2**63)


def _varint(number: int) -> bytes:
    made = bytearray()
    while number >= 0x80:
        made.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*made, number))


@pytest.mark.parametrize(
    "messages",
    [
        [b"\x10\x02\x08\x01", b"\x08\x01\x10\x02"],  # in another order
        [b"\x18\x01\x18\x02\x10\x02\x08\x01"],
        [b"\x18\x01\x18\x02\x18\x03", b"\x1a\x02\x04\x05", b"", b"\x18\x06"],  # packed, and not
        [b"\x22\x01a\x2a\x01b\x22\x00"[:3], b"\x2a\x01b\x2a\x00"],
    ],
)
def test_other_orders_and_both_forms_of_repeated_fields_are_columns(messages: list[bytes]) -> None:
    message = message_type("int32 a = 1; int32 b = 2; repeated int32 c = 3; string d = 4; repeated string e = 5;")
    assert check(message, messages)


@pytest.mark.parametrize(
    "data",
    [
        b"\x08\x01\x08\x02",  # twice
        b"\x18\x01\x08\x01\x18\x02",  # a repeated field in two places
        b"\x1a\x01\x01\x18\x02",  # packed, then not
        b"\x22\x02\x08\x01\x22\x02\x08\x02",  # a message twice: parsers merge both
        b"\x40\x01",  # unknown
        b"\x09" + b"\x00" * 8,  # another wire type
        b"\x88\x00\x01",  # a tag with a byte too many
        b"\x2a\x01\xff",  # not UTF-8
        b"\x2a\x03\xed\xa0\x80",  # half of a surrogate pair
        b"\x2a\x02a",  # truncated
        b"\x1a\x01\x80",  # a packed number without an end
        b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
        b"\x08",
        b"\x30\x05",  # an enum's number without a symbol
        b"\x38\x01\x42\x01a"[:2] + b"\x42\x01a",  # two members of a oneof
        b"\x4a\x02\x08\x01\x4a\x02\x08\x01",  # a key twice
        b"\x4a\x0b\x08" + _varint(2**63),  # a key that is negative in Java
        b"\x52\x02\x10\xff",
        b"\x52\x06\x10\x80\xa8\xd6\xb9\x07",  # nanoseconds beyond a second
        b"\x5a\x05\x08\x08\x10\x01\x18",  # truncated in a message
        b"\x5a\x06\x08\x08\x10\x01\x18\x01",  # the year 8
        b"\x5a\x07\x08\xe7\x0f\x10\x02\x18\x1d",  # no leap year
        b"\x62\x03\x0a\x01\x05",  # a Decimal of another scale
        b"\x62\x06\x0a\x02\x00\x05\x18\x02",  # with a byte too many
    ],
)
def test_odd_message_is_left_to_the_records(data: bytes) -> None:
    message = message_type(
        """int32 a = 1; repeated int32 c = 3; S d = 4; string e = 5; Kind f = 6; oneof u { int32 g = 7; string h = 8; }
        map<uint64, int32> i = 9; google.protobuf.Timestamp j = 10; google.type.Date k = 11; message S { int32 x = 1; }
        confluent.type.Decimal l = 12 [(confluent.field_meta) = {params: [{key: "scale", value: "2"}]}];"""
    )
    assert check(message, [b"\x08\x01", b"", b"\x08\x01"])
    assert columns(message, [b"\x08\x01", data]) is None


@pytest.mark.parametrize(
    ("body", "syntax"),
    [
        ("optional group G = 1 { optional int32 a = 1; }", "proto2"),
        ("Empty a = 1; message Empty {}", "proto3"),
        ("repeated LabelEntry a = 1; message LabelEntry { string key = 1; string value = 2; }", "proto3"),
    ],
)
def test_types_without_columns(body: str, syntax: str) -> None:
    message = message_type(body, syntax=syntax)
    assert column_reader(message, schema_to_connect(message, ProtobufOptions()), ProtobufOptions()) is None


def test_json_messages_have_no_columns() -> None:
    text = 'syntax = "proto3"; import "google/protobuf/struct.proto"; message M { google.protobuf.Value a = 1; }'
    message = message_at(open_schema(text, {}), [0])
    assert column_reader(message, schema_to_connect(message, ProtobufOptions()), ProtobufOptions()) is None


def test_bytes_after_a_message_are_not_taken_for_its_fields() -> None:
    message = message_type("S a = 1; int32 b = 2; message S { int32 a = 1; int32 b = 2; }")
    assert check(message, [b"\x0a\x02\x08\x01\x10\x05", b"\x0a\x00\x10\x05"])


def test_defaults_of_proto2_are_read() -> None:
    body = """optional int32 a = 1 [default = -5]; optional string b = 2 [default = "ü"]; required Kind c = 3;
    optional Kind d = 4 [default = SOME]; optional bytes e = 5 [default = "x"];
    optional double f = 6 [default = inf];"""
    message = message_type(body, syntax="proto2")
    for optional_for_proto2 in (False, True):
        messages = [b"\x18\x02", b"\x08\x01\x18\x02", b"\x18\x02\x20\x00"]
        assert check(message, messages, optional_for_proto2=optional_for_proto2)
    (first, *_) = columns(message, [b"\x18\x00"], optional_for_proto2=False) or [{}]
    assert first == {"a": -5, "b": "ü", "c": "NONE", "d": "SOME", "e": b"x", "f": float("inf")}


def test_missing_messages_may_be_structs_of_zeros() -> None:
    message = message_type("S a = 1; message S { int32 x = 1; T y = 2; repeated T z = 3; } message T { string t = 1; }")
    assert check(message, [b"", b"\x0a\x00", b"\x0a\x02\x08\x01"], struct_for_nulls=True)
    assert columns(message, [b""], struct_for_nulls=True) == [{"a": {"x": 0, "y": {"t": ""}, "z": []}}]


def test_wrapper_at_the_root_is_its_value() -> None:
    message = open_schema(f'syntax = "proto3"; {IMPORTS}', {}).pool.FindMessageTypeByName("google.protobuf.Int64Value")
    assert check(message, [b"", b"\x08\x05"])
    assert check(message, [b"", b"\x08\x05"], wrapper_for_raw_primitives=False)


def test_null_of_a_required_field_is_left_to_the_records() -> None:
    message = message_type("optional int32 a = 1;")
    assert columns(message, [b"\x08\x01"], wrapper_for_nullables=True) == [{"a": 1}]
    assert columns(message, [b""], wrapper_for_nullables=True) is None


def test_bits_of_not_a_number_are_those_of_the_record_path() -> None:
    message = message_type("float a = 1;")
    schema = schema_to_connect(message, ProtobufOptions())
    reader = column_reader(message, schema, ProtobufOptions())
    assert reader is not None
    for bits in (0x7F800001, 0x7FC00000, 0xFFFFFFFF):
        data = b"\x0d" + struct.pack("<I", bits)
        (value,) = one_by_one(message, [data]) or [{}]
        found = reader(_scan([data])).field(0).to_numpy().view(np.uint32)[0]
        assert found == np.float32(value["a"]).view(np.uint32)


def test_too_many_items_are_left_to_the_records() -> None:
    message = message_type("repeated string a = 1; repeated int32 b = 2;")
    assert check(message, [b"\x0a\x01x" * 1000, b""])
    assert columns(message, [b"\x0a\x01x" * 1001, b""]) is None
    assert check(message, [b"\x12" + _varint(5000) + b"\x07" * 5000])


def test_types_in_types_without_end_are_left_to_the_records() -> None:
    def nested(levels: int) -> Any:
        types = " ".join(f"message T{n} {{ T{n + 1} a = 1; int32 b = 2; }}" for n in range(levels))
        return message_type(f"T0 a = 1; {types} message T{levels} {{ int32 b = 1; }}")

    for levels, has_columns in ((60, True), (66, False)):
        message = nested(levels)
        for options in (ProtobufOptions(), ProtobufOptions(struct_for_nulls=True)):
            reader = column_reader(message, schema_to_connect(message, options), options)
            assert (reader is not None) == has_columns
