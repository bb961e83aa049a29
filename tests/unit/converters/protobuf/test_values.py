"""Messages to Connect values and back."""

from __future__ import annotations

import base64
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.api.schema import (
    BOOLEAN,
    BYTES,
    DATE,
    DECIMAL,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    TIME,
    TIMESTAMP,
    Schema,
    Type,
    array,
    date,
    decimal,
    map_of,
    struct,
    time,
    timestamp,
)
from airflow_connect.converters.protobuf import names
from airflow_connect.converters.protobuf.files import message_at, open_schema
from airflow_connect.converters.protobuf.from_connect import schema_from_connect
from airflow_connect.converters.protobuf.names import ProtobufOptions
from airflow_connect.converters.protobuf.reading import message_reader
from airflow_connect.converters.protobuf.text_printer import print_proto
from airflow_connect.converters.protobuf.to_connect import schema_to_connect
from airflow_connect.converters.protobuf.writing import fill_message
from airflow_connect.converters.unread import Changed, Unread
from airflow_connect.errors import DataError

HEAD = """syntax = "proto3"; import "google/protobuf/timestamp.proto"; import "google/type/date.proto";
import "google/type/timeofday.proto"; import "confluent/type/decimal.proto"; import "google/protobuf/wrappers.proto";"""


def read(body: str, content: dict[str, Any], head: str = HEAD, **options: Any) -> dict[str, Any]:
    """What a message M with this body and this content is read as; dicts in `content` fill inner messages."""
    message = message_at(open_schema(f"{head} message M {{ {body} }}", {}), [0])
    kind = message_factory.GetMessageClass(message)
    chosen = ProtobufOptions(**options)
    value = message_reader(message, schema_to_connect(message, chosen), chosen)(
        kind.FromString(kind.SerializeToString(kind(**content)))
    )
    assert isinstance(value, dict)
    return value


@pytest.mark.parametrize(
    ("body", "content", "expected"),
    [
        ("int32 a = 1; string b = 2; bool c = 3; bytes d = 4;", {}, {"a": 0, "b": "", "c": False, "d": b""}),
        (
            "uint32 a = 1; fixed32 b = 2;",
            {"a": 4_000_000_000, "b": 4_000_000_000},
            {"a": 4_000_000_000, "b": 4_000_000_000},
        ),
        ("uint64 a = 1; fixed64 b = 2;", {"a": 2**64 - 1, "b": 2**63}, {"a": -1, "b": -(2**63)}),
        ("float a = 1; double b = 2;", {"a": 0.5, "b": 0.1}, {"a": 0.5, "b": 0.1}),
        ("optional int32 a = 1; optional int32 b = 2;", {"b": 0}, {"a": None, "b": 0}),
        ("repeated int32 a = 1; repeated int32 b = 2;", {"a": [1, 2]}, {"a": [1, 2], "b": []}),
        ("map<string, int32> a = 1;", {"a": {"z": 1, "b": 2}}, {"a": {"b": 2, "z": 1}}),
        ("S a = 1; S b = 2; message S { int32 x = 1; }", {"a": {}}, {"a": {"x": 0}, "b": None}),
        ("E a = 1; enum E { X = 0; Y = 5; }", {"a": 5}, {"a": "Y"}),
        ("E a = 1; enum E { X = 0; }", {"a": 7}, {"a": "UNKNOWN_ENUM_VALUE_E_7"}),
        ("E a = 1; enum E { option allow_alias = true; X = 0; Z = 0; }", {}, {"a": "X"}),
        ("oneof o { int32 a = 1; string b = 2; }", {"b": ""}, {"o_0": {"a": None, "b": ""}}),
        ("oneof o { int32 a = 1; }", {}, {"o_0": None}),
        ("google.protobuf.Timestamp a = 1;", {"a": {"seconds": -1, "nanos": 999_999_999}}, {"a": -1}),
        ("google.type.Date a = 1;", {"a": {"year": 2024, "month": 2, "day": 29}}, {"a": 19_782}),
        ("google.type.TimeOfDay a = 1;", {"a": {"hours": 23, "nanos": 1_999_999}}, {"a": 82_800_001}),
        ("confluent.type.Decimal a = 1;", {"a": {"value": b"\xff\x00", "scale": 2}}, {"a": Decimal("-2.56")}),
        ("google.protobuf.StringValue a = 1;", {"a": {"value": "x"}}, {"a": {"value": "x"}}),
    ],
    ids=str,
)
def test_message_read_is_the_value(body: str, content: dict[str, Any], expected: dict[str, Any]) -> None:
    value = read(body, content)
    assert value == expected
    for name, item in value.items():
        if isinstance(item, dict):
            assert list(item) == list(expected[name])


METHODS = ("HasField", "WhichOneof", "SetInParent", "CopyFrom", "SerializeToString", "DESCRIPTOR", "Clear")


def test_fields_with_the_names_of_methods_are_read_and_written() -> None:
    fields = " ".join(f"optional string {name} = {number};" for number, name in enumerate(METHODS, 1))
    body = f"{fields} oneof o {{ int32 a = 20; }} S s = 21; map<string, S> m = 22; message S {{ string CopyFrom = 1; }}"
    content = dict.fromkeys(METHODS, "x") | {"a": 5, "s": {"CopyFrom": "y"}}
    expected = dict.fromkeys(METHODS, "x") | {"o_0": {"a": 5}, "s": {"CopyFrom": "y"}, "m": {}}
    assert read(body, content) == expected
    assert read(body, {"Clear": "x"}) == dict.fromkeys(expected) | {"Clear": "x", "m": {}}

    members = [*((name, Schema(Type.STRING, optional=True)) for name in METHODS), ("s", struct(("CopyFrom", STRING)))]
    schema = struct(*members, ("m", map_of(STRING, struct(("CopyFrom", STRING), name="S"))), name="Row")
    value = dict.fromkeys(METHODS, "x") | {"s": {"CopyFrom": "y"}, "m": {"k": {"CopyFrom": "z"}}}
    assert round_trip(schema, value) == value


def test_options_change_what_is_read() -> None:
    enum = "E a = 1; enum E { X = 0; Y = 5; }"
    assert read(enum, {"a": 5}, int_for_enums=True) == {"a": 5}
    union = "oneof o { int32 a = 1; string b = 2; }"
    assert read(union, {"b": "x"}, flatten_unions=True) == {"a": None, "b": "x"}
    assert read(union, {"b": "x"}, index_for_unions=False) == {"o": {"a": None, "b": "x"}}
    inner = (
        "S a = 1; google.protobuf.Timestamp t = 2; message S { int32 x = 1; S2 y = 2; } message S2 { string z = 1; }"
    )
    assert read(inner, {}, struct_for_nulls=True) == {"a": {"x": 0, "y": {"z": ""}}, "t": None}
    wrapped = "google.protobuf.UInt64Value a = 1; google.protobuf.UInt64Value b = 2;"
    assert read(wrapped, {"a": {"value": 2**64 - 1}}, wrapper_for_nullables=True) == {"a": -1, "b": None}


def test_missing_fields_of_proto2_are_null_unless_switched_off() -> None:
    head, body = 'syntax = "proto2";', "optional int32 a = 1 [default = 5]; optional string b = 2;"
    assert read(body, {}, head) == {"a": None, "b": None}
    assert read(body, {}, head, optional_for_proto2=False) == {"a": 5, "b": ""}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"\x0a\x02x\xff" + b"\x12\x01\xff", {"a": "x\ufffd", "b": ["\ufffd"], "c": {}}),
        (b"\x1a\x06\x0a\x01x\x12\x01\xff", {"a": None, "b": [], "c": {"x": "\ufffd"}}),
        (b"\x1a\x06\x0a\x01\xff\x12\x01x", None),
    ],
)
def test_text_of_proto2_that_is_not_utf8_is_read_as_java_reads_it(data: bytes, expected: Any) -> None:
    body = "optional string a = 1; repeated string b = 2; map<string, string> c = 3;"
    message = message_at(open_schema(f'syntax = "proto2"; message M {{ {body} }}', {}), [0])
    found = message_factory.GetMessageClass(message).FromString(data)
    read_message = message_reader(message, schema_to_connect(message, ProtobufOptions()), ProtobufOptions())
    if expected is not None:
        assert read_message(found) == expected
        return
    with pytest.raises(DataError, match=r"A key of the map M\.c is not valid UTF-8"):
        read_message(found)


def test_missing_fields_of_an_edition_are_null_where_presence_is_explicit() -> None:
    body = "int32 a = 1; int32 b = 2 [features.field_presence = IMPLICIT];"
    assert read(body, {}, 'edition = "2023";') == {"a": None, "b": 0}


@pytest.mark.parametrize(
    ("body", "content", "said"),
    [
        ("google.type.Date a = 1;", {"a": {"year": 2023, "month": 2, "day": 29}}, "google.type.Date"),
        ("google.type.Date a = 1;", {"a": {"year": 2023}}, "google.type.Date"),
        ("google.type.TimeOfDay a = 1;", {"a": {"hours": 24}}, "google.type.TimeOfDay"),
        ("google.protobuf.Timestamp a = 1;", {"a": {"seconds": 2**40}}, "google.protobuf.Timestamp"),
        ("google.protobuf.Timestamp a = 1;", {"a": {"nanos": -1}}, "google.protobuf.Timestamp"),
    ],
)
def test_times_that_do_not_exist_are_refused(body: str, content: dict[str, Any], said: str) -> None:
    with pytest.raises(DataError, match="does not exist") as caught:
        read(body, content)
    assert said in caught.value.message


def test_map_with_messages_as_keys_is_refused() -> None:
    body = "repeated MEntry a = 1; message MEntry { S key = 1; int32 value = 2; } message S { int32 x = 1; }"
    with pytest.raises(DataError, match="cannot be held in memory"):
        read(body, {"a": [{"key": {"x": 1}}]})


def round_trip(schema: Schema, value: Any, **options: Any) -> Any:
    """The value written and read by the schema that the text of its own schema gives."""
    chosen = ProtobufOptions(**options)
    made = schema_from_connect(schema, chosen)
    message = open_schema(print_proto(made.file), {}).pool.FindMessageTypeByName(made.message)
    kind = message_factory.GetMessageClass(message)
    target = kind()
    fill_message(target, schema, value, chosen)
    again = schema_to_connect(message, chosen)
    return message_reader(message, again, chosen)(kind.FromString(kind.SerializeToString(target)))


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        (struct(("a", INT8)), {"a": 200.0}),
        (struct(("a", INT32)), {"a": "1"}),
        (struct(("a", INT32)), {"a": 1 << 31}),
        (struct(("a", INT64)), {"a": True}),
        (struct(("a", STRING)), {"a": b"x"}),
        (struct(("a", STRING)), {"a": "\ud800"}),
        (struct(("a", FLOAT64)), {"a": 1}),
        (struct(("a", decimal(2))), {"a": 1.5}),
        (struct(("a", time())), {"a": 86_400_001}),
        (struct(("a", timestamp())), {"a": 1 << 62}),
        (struct(("a", date())), {"a": "2020-01-01"}),
        (struct(("a", array(INT32))), {"a": [None]}),
        (struct(("a", array(INT32))), {"a": 5}),
        (struct(("a", map_of(STRING, INT32))), {"a": [5]}),
        (struct(("a", map_of(STRING, INT32))), {"a": {1: 5}}),
        (struct(("a", struct(("b", INT32)))), {"a": 5}),
        (struct(("a", INT32)), {"b": 5}),
        (INT32, "x"),
    ],
    ids=str,
)
def test_value_that_does_not_fit_its_schema_is_refused(schema: Schema, value: Any) -> None:
    with pytest.raises(DataError):
        round_trip(schema, value)


def test_enum_written_by_symbol_or_number() -> None:
    symbols = {names.ENUM: "Color", f"{names.ENUM}.RED": "0", f"{names.ENUM}.BLUE": "5"}
    text = struct(("c", Schema(Type.STRING, name="Color", parameters=symbols)))
    assert round_trip(text, {"c": "BLUE"}) == {"c": "BLUE"}
    with pytest.raises(DataError, match="not a symbol"):
        round_trip(text, {"c": "GREEN"})
    number = struct(("c", Schema(Type.INT32, name="Color", parameters=symbols)))
    assert round_trip(number, {"c": 5}, int_for_enums=True) == {"c": 5}


def test_union_is_written_as_the_member_that_is_set() -> None:
    union = struct(("a", INT32), ("b", STRING), name=f"{names.UNION_PREFIX}choice", optional=True)
    schema = struct(("choice_0", union))
    assert round_trip(schema, {"choice_0": {"a": None, "b": "x"}}) == {"choice_0": {"a": None, "b": "x"}}
    assert round_trip(schema, {"choice_0": None}) == {"choice_0": None}
    with pytest.raises(DataError, match="Cannot find non-null field"):
        round_trip(schema, {"choice_0": {"a": None, "b": None}})
    with pytest.raises(DataError, match="several of its fields, a, b"):
        round_trip(schema, {"choice_0": {"a": 0, "b": "x"}})


def test_default_takes_the_place_of_a_null() -> None:
    assert round_trip(struct(("a", replace(INT32, default=7))), {"a": None}) == {"a": 7}


VALUES: dict[Schema, st.SearchStrategy[Any]] = {
    INT8: st.integers(-128, 127),
    INT16: st.integers(-(1 << 15), (1 << 15) - 1),
    INT32: st.integers(-(1 << 31), (1 << 31) - 1),
    INT64: st.integers(-(1 << 63), (1 << 63) - 1),
    Schema(Type.INT64, parameters={names.TYPE: "uint64"}): st.integers(-(1 << 63), (1 << 63) - 1),
    Schema(Type.INT64, parameters={names.TYPE: "fixed32"}): st.integers(0, (1 << 32) - 1),
    FLOAT32: st.floats(width=32, allow_nan=False),
    FLOAT64: st.floats(allow_nan=False),
    BOOLEAN: st.booleans(),
    STRING: st.text(st.characters(codec="utf-8"), max_size=6),
    BYTES: st.binary(max_size=6),
    decimal(3): st.integers(-(10**30), 10**30).map(lambda n: Decimal((int(n < 0), tuple(map(int, str(abs(n)))), -3))),
    date(): st.integers(-719_162, 2_932_896),
    time(): st.integers(0, 86_399_999),
    timestamp(): st.integers(-62_135_596_800_000, 253_402_300_799_999),
}
FIELD_NAMES = ("a", "b_c", "D", "e1")
SCALARS = st.integers(0, len(VALUES) - 1).map(list(VALUES).__getitem__)
MAP_KEYS = st.booleans().map(lambda text: STRING if text else INT32)


def member_schemas(inner: st.SearchStrategy[Schema]) -> st.SearchStrategy[Schema]:
    fields = st.lists(inner, max_size=4).map(lambda schemas: list(zip(FIELD_NAMES, schemas, strict=False)))
    structs = st.builds(lambda f, n: struct(*f, name=n), fields, st.none() | st.sampled_from(["com.acme.S", "T", "a"]))
    simple = st.one_of(SCALARS, structs)
    return st.one_of(structs, st.builds(array, simple), st.builds(map_of, MAP_KEYS, simple))


SCHEMAS = st.recursive(SCALARS, member_schemas, max_leaves=8).map(
    lambda s: (
        s if s.type is Type.STRUCT or (s in VALUES and s.name is None and not s.parameters) else struct(("root", s))
    )
)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    # Without this shell hypothesis writes all of the strategy into its report, and warns that it is too long.
    return draw(SCHEMAS)


def value_of(schema: Schema) -> st.SearchStrategy[Any]:
    if schema.type is Type.ARRAY and schema.value_schema:
        return st.lists(value_of(schema.value_schema), max_size=3)
    if schema.type is Type.MAP and schema.key_schema and schema.value_schema:
        return st.dictionaries(value_of(schema.key_schema), value_of(schema.value_schema), max_size=3)
    if schema.type is Type.STRUCT:
        return st.fixed_dictionaries({f.name: value_of(f.schema) for f in schema.fields})
    return VALUES[schema]


@settings(deadline=None)
@given(st.data())
def test_value_written_and_read_is_the_same(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    value = data.draw(value_of(schema))
    assert round_trip(schema, value) == value


@settings(deadline=None)
@given(st.data())
def test_nullable_value_written_and_read_is_the_same(data: st.DataObject) -> None:
    fields = list(zip(FIELD_NAMES, data.draw(st.lists(SCALARS, max_size=4)), strict=False))
    schema = struct(*((name, replace(inner, optional=True)) for name, inner in fields))
    value = data.draw(st.fixed_dictionaries({name: st.none() | VALUES[inner] for name, inner in fields}))
    assert round_trip(schema, value, optional_for_nullables=True) == value
    assert round_trip(schema, value, wrapper_for_nullables=True) == value


def test_logical_types_are_all_covered() -> None:
    assert {schema.name for schema in VALUES} == {None, DECIMAL, DATE, TIME, TIMESTAMP}


STRUCT_HEAD = 'syntax = "proto3"; import "google/protobuf/struct.proto";'
OF_JSON = {"b": {"x": [1.5, None, True, "ü"]}, "a": 3}


@pytest.mark.parametrize(
    ("body", "content", "expected"),
    [
        ("int32 id = 1; google.protobuf.Struct s = 2;", {"id": 1}, {"id": 1, "s": None}),
        ("google.protobuf.Struct s = 1;", {"s": OF_JSON}, {"s": '{"a": 3.0, "b": {"x": [1.5, null, true, "ü"]}}'}),
        ("google.protobuf.Struct s = 1;", {"s": {}}, {"s": "{}"}),
        ("google.protobuf.ListValue l = 1;", {"l": [1, "a"]}, {"l": '[1.0, "a"]'}),
        ("google.protobuf.Value v = 1;", {"v": {"string_value": "a"}}, {"v": '"a"'}),
        (
            "repeated google.protobuf.Struct s = 1;",
            {"s": [{}, {"a": None}]},
            {"s": ["{}", '{"a": null}']},
        ),
        (
            "map<string, google.protobuf.Struct> m = 1;",
            {"m": {"k": {"fields": {"a": {"string_value": "b"}}}}},
            {"m": {"k": '{"a": "b"}'}},
        ),
        ("oneof o { google.protobuf.Struct s = 1; int32 n = 2; }", {"n": 5}, {"o_0": {"s": None, "n": 5}}),
    ],
)
def test_messages_that_hold_json_are_read_as_text(body: str, content: Any, expected: Any) -> None:
    assert read(body, content, STRUCT_HEAD) == expected


def test_number_of_a_value_that_json_does_not_have_is_refused() -> None:
    with pytest.raises(DataError, match=r"google\.protobuf\.Value cannot be written as JSON"):
        read("google.protobuf.Value v = 1;", {"v": {"number_value": float("nan")}}, STRUCT_HEAD)


@pytest.mark.parametrize(("bits", "value"), [(8, 127), (8, -128), (16, -32768)])
def test_integer_within_its_connect_type_is_read(bits: int, value: int) -> None:
    assert read(SMALL.format(bits), {"a": value}, SMALL_HEAD) == {"a": value}


@pytest.mark.parametrize(("bits", "value"), [(8, 128), (8, 300), (8, -129), (16, 32768), (16, -(1 << 31))])
def test_integer_beyond_its_connect_type_is_an_error(bits: int, value: int) -> None:
    with pytest.raises(DataError, match=f"A Protobuf integer is {value}, beyond the {bits} bits of its type"):
        read(SMALL.format(bits), {"a": value}, SMALL_HEAD)


SMALL_HEAD = 'syntax = "proto3"; import "confluent/meta.proto";'
SMALL = 'int32 a = 1 [(confluent.field_meta) = {{params: [{{key: "connect.type", value: "int{}"}}]}}];'


def test_fields_that_a_message_type_does_not_have_are_named() -> None:
    known = """syntax = "proto2"; import "google/protobuf/timestamp.proto"; message M { optional In in = 1;
      repeated In list = 2; optional E e = 3; optional google.protobuf.Timestamp at = 4; map<string, In> map = 5;
      extensions 100 to 200; message In { optional int32 n = 1; } enum E { A = 0; } }
      extend M { optional int32 x = 100; }"""
    wider = known.replace("int32 n = 1;", "int32 n = 1; optional string m = 2;").replace("A = 0;", "A = 0; B = 1;")
    wider = wider.replace("optional In in", "optional string top = 9; optional In in")
    kind, other = (message_at(open_schema(text, {}), [0]) for text in (known, wider))
    unread = Unread()
    options = ProtobufOptions(unread=unread)
    read_message = message_reader(kind, schema_to_connect(kind, options), options)

    def left_out(data: bytes = b"", **content: Any) -> set[str]:
        unread.clear()
        written: bytes = message_factory.GetMessageClass(other)(**content).SerializeToString()
        read_message(message_factory.GetMessageClass(kind).FromString(written + data))
        return unread.found

    assert left_out(**{"in": {"n": 1}, "list": [{"n": 1}], "e": "A"}, at={"seconds": 1}) == set()
    assert left_out(top="x", **{"in": {"m": ""}}) == {"field 9 of M", "field 2 of M.In"}
    assert left_out(list=[{"n": 1}, {"m": "x"}]) == left_out(map={"a": {"m": "x"}}) == {"field 2 of M.In"}
    assert left_out(e="B") == {"numbers without a symbol in M.e"}
    assert left_out(b"\xa0\x06\x01") == {"field 100 of M"}
    assert left_out(b"\x22\x02\x18\x01") == {"field 3 of google.protobuf.Timestamp"}


def test_unsigned_numbers_that_become_negative_are_named() -> None:
    text = """syntax = "proto3"; import "google/protobuf/wrappers.proto"; message M { uint64 a = 1; fixed64 b = 2;
      repeated uint64 list = 3; map<string, fixed64> map = 4; oneof o { uint64 c = 5; } uint32 small = 6;
      google.protobuf.UInt64Value wrapped = 7; }"""
    kind = message_at(open_schema(text, {}), [0])
    unread = Unread()
    options = ProtobufOptions(unread=unread)
    read_message = message_reader(kind, schema_to_connect(kind, options), options)

    def changed(**content: Any) -> set[str]:
        unread.clear()
        read_message(message_factory.GetMessageClass(kind)(**content))
        assert all(type(name) is Changed for name in unread.found)
        return unread.found

    half = 1 << 63
    fits = {"a": half - 1, "b": half - 1, "list": [0, half - 1], "map": {"x": 1}, "small": (1 << 32) - 1}
    assert changed(**fits, c=half - 1, wrapped={"value": half - 1}) == set()
    assert changed(a=half, b=half) == {"M.a", "M.b"}
    assert changed(list=[1, half], map={"x": half}, c=half) == {"M.list", "M.MapEntry.value", "M.c"}
    assert changed(wrapped={"value": half}) == {"google.protobuf.UInt64Value.value"}


def test_extensions_that_the_schema_declares_are_named() -> None:
    file = descriptor_pb2.FileDescriptorProto(name="m.proto", syntax="proto2")
    file.message_type.add(name="M").extension_range.add(start=100, end=200)
    file.extension.add(name="x", number=100, extendee="M", type=5, label=1)
    kind = message_at(open_schema(base64.b64encode(file.SerializeToString()).decode(), {}), [0])
    unread = Unread()
    options = ProtobufOptions(unread=unread)
    read_message = message_reader(kind, schema_to_connect(kind, options), options)
    read_message(message_factory.GetMessageClass(kind).FromString(b"\xa0\x06\x01"))
    assert unread.found == {"the extension x"}
