""".proto text: what the parser takes, what it refuses, and what the printer writes."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from google.protobuf.descriptor import FieldDescriptor

from airflow_connect.converters.protobuf import meta
from airflow_connect.converters.protobuf.files import MAIN_FILE, indexes_of, known_file, message_at, open_schema
from airflow_connect.converters.protobuf.text_parser import SCALARS, parse_proto
from airflow_connect.converters.protobuf.text_printer import print_proto
from airflow_connect.errors import SchemaError


def first(text: str, **others: str) -> Any:
    return message_at(open_schema(text, others), [0])


def test_scalar_types_are_all_known() -> None:
    fields = "".join(f"{name} f_{name} = {number};" for number, name in enumerate(SCALARS, 1))
    message = first(f'syntax = "proto3"; message M {{ {fields} }}')
    assert {f.name: f.type for f in message.fields} == {f"f_{name}": number for name, number in SCALARS.items()}


def test_comments_and_odd_spacing_are_passed_over() -> None:
    message = first('/* a */syntax="proto3"// b\n;message/* c ; } */M{int32 a=0x10;//int32 b = 2;\nstring c=010;;}')
    assert [(f.name, f.number) for f in message.fields] == [("a", 16), ("c", 8)]


def test_labels_of_proto2_and_proto3_are_told_apart() -> None:
    old = first('syntax = "proto2"; message M { required int32 a = 1; optional int32 b = 2; repeated int32 c = 3; }')
    assert [(f.is_required, f.is_repeated, f.has_presence) for f in old.fields] == [
        (True, False, True),
        (False, False, True),
        (False, True, False),
    ]
    new = first('syntax = "proto3"; message M { optional int32 a = 1; int32 b = 2; }')
    assert [(f.has_presence, f.containing_oneof is not None) for f in new.fields] == [(True, True), (False, False)]


def test_text_without_syntax_is_proto2() -> None:
    assert first("message M { required int32 a = 1; }").fields[0].is_required


def test_editions_have_the_presence_that_they_say() -> None:
    text = (
        'edition = "2023"; option features.field_presence = IMPLICIT; '
        "message M { int32 a = 1; int32 b = 2 [features.field_presence = EXPLICIT]; }"
    )
    assert [f.has_presence for f in first(text).fields] == [False, True]


def test_words_of_edition_2024_are_passed_over() -> None:
    text = 'edition = "2024"; import option "mine.proto"; export message M { local message N { } N n = 1; }'
    assert first(text).fields[0].message_type.full_name == "M.N"


def test_names_are_resolved_from_the_inside_out() -> None:
    text = """syntax = "proto3"; package com.acme;
        message Outer { Inner a = 1; com.acme.Inner b = 2; .com.acme.Inner c = 3; Outer.Inner d = 4; acme.Inner e = 5;
                        message Inner { Kind kind = 1; enum Kind { NONE = 0; } } }
        message Inner { }"""
    names = [f.message_type.full_name for f in first(text).fields]
    assert names == [
        "com.acme.Outer.Inner",
        "com.acme.Inner",
        "com.acme.Inner",
        "com.acme.Outer.Inner",
        "com.acme.Inner",
    ]


def test_maps_oneofs_groups_and_enums_are_read() -> None:
    message = first("""syntax = "proto2"; message M {
        map<string, Sub> by_name = 1 [deprecated = true];
        oneof choice { option (x) = 1; string a = 2; group Block = 3 { optional int32 inner = 1; } }
        repeated group Many = 4 { optional int32 inner = 1; }
        optional Color color = 5 [default = BLUE];
        extensions 100 to 199, 500 to max;
        reserved 7, 9 to 11; reserved "gone";
        message Sub { } enum Color { option allow_alias = true; RED = -1; BLUE = 2 [(note) = "x]"]; AZURE = 2; }
        extend M { optional int32 more = 100; } }
        extend M { optional string further = 101; }
        service S { rpc Get(M) returns (stream M) { option (y) = {a: 1}; } }""")
    assert message.fields_by_name["by_name"].message_type.GetOptions().map_entry
    assert [f.name for f in message.oneofs_by_name["choice"].fields] == ["a", "block"]
    assert message.fields_by_name["many"].type == FieldDescriptor.TYPE_GROUP
    color = message.fields_by_name["color"]
    assert color.default_value == 2
    assert [(v.name, v.number) for v in color.enum_type.values] == [("RED", -1), ("BLUE", 2), ("AZURE", 2)]


def test_defaults_of_proto2_are_unescaped() -> None:
    message = first(r"""syntax = "proto2"; message M {
        optional string s = 1 [default = "a\n\x41\101\u00e9" ' and more'];
        optional bytes b = 2 [default = "\000\xff"];
        optional double d = 3 [default = -1.5e-3, deprecated = true];
        optional float f = 4 [default = -inf];
        optional bool t = 5 [default = true]; }""")
    assert [f.default_value for f in message.fields] == [
        "a\nAA\u00e9 and more",
        b"\x00\xff",
        -0.0015,
        float("-inf"),
        True,
    ]


def test_notes_of_confluent_are_kept_and_other_options_are_not() -> None:
    file = parse_proto(
        """syntax = "proto3"; import "confluent/meta.proto"; option (my.file) = { a: "}" }; message M {
        int32 a = 1 [(confluent.field_meta) = { doc: "d", params: [ { key: "connect.type", value: "int8" } ] }];
        int32 b = 2 [(my.option).part = 5, (other) = "x", jstype = JS_NUMBER]; }""",
        "m.proto",
    )
    a, b = file.message_type[0].field
    assert meta.params_of(a.options) == {"connect.type": "int8"}
    assert meta.params_of(b.options) == {}
    assert b.options.jstype == 2


def test_imports_come_from_references_and_from_known_files() -> None:
    order = (
        'syntax = "proto3"; import "a/money.proto"; import "google/protobuf/any.proto"; message M { a.Money m = 1; }'
    )
    money = 'syntax = "proto3"; package a; import public "a/unit.proto"; message Money { Unit u = 1; }'
    unit = 'syntax = "proto3"; package a; message Unit { }'
    message = message_at(open_schema(order, {"a/money.proto": money, "a/unit.proto": unit}), [0])
    assert message.fields[0].message_type.fields[0].message_type.full_name == "a.Unit"


def test_missing_import_is_named() -> None:
    with pytest.raises(SchemaError, match=r"imports a/money\.proto"):
        first('syntax = "proto3"; import "a/money.proto"; message M { }')


def test_unknown_type_is_named() -> None:
    with pytest.raises(SchemaError, match="Missing"):
        first('syntax = "proto3"; message M { Missing m = 1; }')


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('syntax = "proto3"\nmessage M { }', "in line 2 ';' is expected before 'message'"),
        ('syntax = "proto3";\nmessage M {\n int32 = 1; }', "in line 3 a name is expected before '='"),
        ('syntax = "proto3"; message M { int32 a = x; }', "a whole number is expected before 'x'"),
        ('syntax = "proto3"; message M { int32 a = 1;', "the text ends too early"),
        ('syntax = "proto3"; message M { int32 a = 1 [deprecated = maybe]; }', "the option deprecated"),
        ("syntax = proto3;", "a text in quotes is expected"),
        ("message M {" * 5000, "nested too deeply"),
        ('edition = "1999";', "EDITION_1999 is not known"),
        ("nonsense;", "'nonsense' is not a statement here"),
        ('{"type":"object"}', "'{' is not a statement here"),
        ("\u20ac ;", "is not a statement"),
        (
            'syntax = "proto3"; message M { int32 a = 1 [(confluent.field_meta) = { what: 1 }]; }',
            "field_meta cannot be read",
        ),
    ],
)
def test_broken_text_is_refused_with_its_line(text: str, said: str) -> None:
    with pytest.raises(SchemaError) as caught:
        parse_proto(text, "x.proto")
    assert said in caught.value.message


def test_schema_in_base64_is_taken_as_a_descriptor() -> None:
    file = parse_proto('syntax = "proto3"; message M { int32 a = 1; }', "other name")
    message = first(base64.b64encode(file.SerializeToString()).decode())
    assert (message.name, message.file.name) == ("M", MAIN_FILE)


def test_indexes_lead_to_messages_and_back() -> None:
    file = open_schema(
        """syntax = "proto3";
        message A { map<string, int32> m = 1; message B { message C { } } message D { } }
        message E { }""",
        {},
    )
    for indexes, name in (([0], "A"), ([0, 0], "A.B"), ([0, 0, 0], "A.B.C"), ([0, 1], "A.D"), ([1], "E")):
        message = message_at(file, indexes)
        assert message.full_name == name
        assert indexes_of(message) == indexes
    assert message_at(file, [2]) is None
    assert message_at(file, [0, 2]) is None
    assert message_at(file, [-1]) is None


def test_printed_text_is_read_as_the_same() -> None:
    text = """syntax = "proto3";
package com.acme;

import "confluent/meta.proto";

message M {
  int32 a = 1 [(confluent.field_meta) = { params: [{ key: "connect.type", value: "int8" }] }];
  optional string b = 2;
  repeated Sub c = 3;
  oneof choice {
    Color color = 4;
    bytes raw = 5;
  }

  message Sub {
    double d = 1;
  }

  enum Color {
    option allow_alias = true;
    RED = 0;
    ROUGE = 0;
  }
}
"""
    assert print_proto(parse_proto(text, "m.proto")) == text


def test_known_wrappers_can_be_printed() -> None:
    text = print_proto(known_file("google/protobuf/wrappers.proto"))
    assert message_at(open_schema(text, {}), [4]).full_name == "google.protobuf.Int32Value"
