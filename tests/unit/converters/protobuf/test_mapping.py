"""Message types and Connect schemas, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.api.schema import (
    BOOLEAN,
    BYTES,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    OPTIONAL_INT32,
    STRING,
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
from airflow_connect.converters.protobuf.text_printer import print_proto
from airflow_connect.converters.protobuf.to_connect import schema_to_connect
from airflow_connect.errors import SchemaError


def read(body: str, head: str = 'syntax = "proto3"; package com.acme;', **options: Any) -> Schema:
    """The schema of a message M with this body."""
    message = message_at(open_schema(f"{head} message M {{ {body} }}", {}), [0])
    return schema_to_connect(message, ProtobufOptions(**options))


def field(body: str, **options: Any) -> Schema:
    """The schema of the first field of M."""
    return read(body, **options).fields[0].schema


def shape(schema: Schema) -> tuple[Type, bool, str | None, dict[str, str]]:
    parameters = {k.removeprefix(f"{names.NAMESPACE}."): v for k, v in schema.parameters.items()}
    return schema.type, schema.optional, schema.name, parameters


@pytest.mark.parametrize(
    ("kind", "expected", "parameter"),
    [
        ("int32", Type.INT32, ""),
        ("sint32", Type.INT32, "sint32"),
        ("sfixed32", Type.INT32, "sfixed32"),
        ("uint32", Type.INT64, "uint32"),
        ("fixed32", Type.INT64, "fixed32"),
        ("int64", Type.INT64, ""),
        ("uint64", Type.INT64, "uint64"),
        ("sint64", Type.INT64, "sint64"),
        ("fixed64", Type.INT64, "fixed64"),
        ("sfixed64", Type.INT64, "sfixed64"),
        ("float", Type.FLOAT32, ""),
        ("double", Type.FLOAT64, ""),
        ("bool", Type.BOOLEAN, ""),
        ("string", Type.STRING, ""),
        ("bytes", Type.BYTES, ""),
    ],
)
def test_scalar_field_has_confluents_type(kind: str, expected: Type, parameter: str) -> None:
    parameters = {"Tag": "7", **({"Type": parameter} if parameter else {})}
    assert shape(field(f"{kind} a = 7;")) == (expected, True, None, parameters)


def test_names_are_short_unless_asked_for_in_full() -> None:
    body = "Sub sub = 1; oneof o { int32 a = 2; } Color c = 3; map<string, int32> Labels = 4;"
    body += "message Sub { } enum Color { X = 0; }"
    schema = read(body)
    assert [schema.name, *(f.schema.name for f in schema.fields)] == [
        "M",
        f"{names.UNION_PREFIX}o",
        "Sub",
        "Color",
        "labels",
    ]
    full = read(body, full_names=True)
    assert [full.name, *(f.schema.name for f in full.fields)][:4] == [
        "com.acme.M",
        f"{names.UNION_PREFIX}com.acme.M.o",
        "com.acme.M.Sub",
        "com.acme.M.Color",
    ]


def test_oneof_is_a_struct_before_the_plain_fields() -> None:
    body = "int32 first = 1; oneof choice { string a = 2; int64 b = 3; } oneof other { bool c = 4; }"
    schema = read(body)
    assert [f.name for f in schema.fields] == ["choice_0", "other_1", "first"]
    union = schema.fields[0].schema
    assert union.optional and [(f.name, f.schema.type) for f in union.fields] == [("a", Type.STRING), ("b", Type.INT64)]
    assert [f.name for f in read(body, index_for_unions=False).fields] == ["choice", "other", "first"]
    assert [f.name for f in read(body, flatten_unions=True).fields] == ["a", "b", "c", "first"]
    general = read(body, generalized_sum_types=True).fields[0].schema
    assert (general.name, general.parameters) == ("choice", {names.GENERAL_UNION: "choice"})


def test_enum_is_text_or_a_number_with_its_symbols() -> None:
    body = "Color c = 1; enum Color { RED = 0; BLUE = 5; }"
    symbols = {"Enum": "Color", "Enum.RED": "0", "Enum.BLUE": "5", "Tag": "1"}
    assert shape(field(body)) == (Type.STRING, True, "Color", symbols)
    assert shape(field(body, int_for_enums=True)) == (Type.INT32, True, "Color", symbols)
    general = field(body, generalized_sum_types=True)
    assert general.parameters[f"{names.GENERAL_ENUM}.BLUE"] == "5"


def test_repeated_field_is_a_list_of_optional_elements() -> None:
    schema = field("repeated int32 a = 3;")
    assert shape(schema) == (Type.ARRAY, True, None, {"Tag": "3"})
    assert schema.value_schema == OPTIONAL_INT32


def test_map_has_the_schemas_of_its_entry() -> None:
    native = "map<string, Sub> label_names = 1;"
    spelled_out = "repeated LabelNamesEntry label_names = 1; message LabelNamesEntry { string key = 1; Sub value = 2; }"
    for body in (native, spelled_out):
        schema = field(f"{body} message Sub {{ int32 a = 1; }}")
        assert shape(schema) == (Type.MAP, True, "label_names", {"Tag": "1"})
        assert schema.key_schema is not None and schema.value_schema is not None
        assert shape(schema.key_schema) == (Type.STRING, True, None, {"Tag": "1"})
        assert shape(schema.value_schema) == (Type.STRUCT, True, "Sub", {"Tag": "2"})


def test_optionality_follows_the_options() -> None:
    body = (
        "int32 a = 1; optional int32 b = 2; M2 c = 3; E d = 4; repeated int32 e = 5; message M2 { } enum E { X = 0; }"
    )
    assert [f.schema.optional for f in read(body).fields] == [True] * 5
    nullables = read(body, optional_for_nullables=True)
    assert [f.schema.optional for f in nullables.fields] == [False, True, True, True, True]
    wrapped = read(body, wrapper_for_nullables=True)
    assert [f.schema.optional for f in wrapped.fields] == [False, False, True, True, True]
    old = 'syntax = "proto2";'
    labels = "required int32 a = 1; optional int32 b = 2;"
    assert [f.schema.optional for f in read(labels, old, optional_for_nullables=True).fields] == [False, True]


def test_wrappers_are_structs_or_values() -> None:
    head = 'syntax = "proto3"; import "google/protobuf/wrappers.proto";'
    body = "google.protobuf.UInt32Value a = 1; google.protobuf.StringValue b = 2;"
    assert [f.schema.type for f in read(body, head).fields] == [Type.STRUCT, Type.STRUCT]
    unwrapped = read(body, head, wrapper_for_nullables=True)
    assert [(f.schema.type, f.schema.optional) for f in unwrapped.fields] == [(Type.INT64, True), (Type.STRING, True)]


def test_wrapper_at_the_root_is_a_value_unless_switched_off() -> None:
    file = open_schema(print_proto(schema_from_connect(STRING, ProtobufOptions()).file), {})
    message = file.message_types_by_name["StringValue"]
    assert schema_to_connect(message, ProtobufOptions(), 3) == Schema(Type.STRING, version=3)
    raw = schema_to_connect(message, ProtobufOptions(wrapper_for_raw_primitives=False))
    assert (raw.type, raw.name) == (Type.STRUCT, "StringValue")


def test_well_known_messages_are_logical_types() -> None:
    head = "".join(
        ['syntax = "proto3";']
        + [f'import "{name}";' for name in ("google/type/date.proto", "google/type/timeofday.proto")]
        + [f'import "{name}";' for name in ("google/protobuf/timestamp.proto", "confluent/type/decimal.proto")]
    )
    body = """google.type.Date a = 1; google.type.TimeOfDay b = 2; google.protobuf.Timestamp c = 3;
        confluent.type.Decimal d = 4;
        confluent.type.Decimal e = 5 [(confluent.field_meta) = { params: [{ key: "scale", value: "3" },
                                      { key: "precision", value: "9" }] }];"""
    found = [f.schema for f in read(body, head).fields]
    expected = [date(optional=True), time(optional=True), timestamp(optional=True), decimal(0, optional=True)]
    assert [(s.type, s.name, s.version, s.optional) for s in found[:4]] == [
        (s.type, s.name, s.version, s.optional) for s in expected
    ]
    assert found[4].parameters == {"scale": "3", names.CONNECT_PRECISION: "9", names.TAG: "5"}


def test_message_type_that_contains_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"com\.acme\.M is recursive"):
        read("M child = 1;")
    with pytest.raises(SchemaError, match="is recursive"):
        read("Sub sub = 1; message Sub { repeated M parents = 1; }")


def written(schema: Schema, **options: Any) -> str:
    return print_proto(schema_from_connect(schema, ProtobufOptions(**options)).file)


def test_written_schema_is_a_proto3_file() -> None:
    schema = struct(
        ("id", INT64),
        ("tiny", INT8),
        ("at", timestamp()),
        ("price", decimal(2)),
        ("tags", array(STRING)),
        ("counts", map_of(STRING, INT32)),
        ("sub", struct(("f", FLOAT32), ("d", FLOAT64), name="com.acme.sub")),
        ("raw", BYTES),
        name="com.acme.Order",
    )
    made = schema_from_connect(schema, ProtobufOptions())
    assert made.message == "com.acme.Order"
    assert (
        print_proto(made.file)
        == """syntax = "proto3";
package com.acme;

import "confluent/meta.proto";
import "confluent/type/decimal.proto";
import "google/protobuf/timestamp.proto";

message Order {
  int64 id = 1;
  int32 tiny = 2 [(confluent.field_meta) = { params: [{ key: "connect.type", value: "int8" }] }];
  google.protobuf.Timestamp at = 3;
  confluent.type.Decimal price = 4 [(confluent.field_meta) = { params: [{ key: "scale", value: "2" }] }];
  repeated string tags = 5;
  repeated ConnectDefault1Entry counts = 6;
  subMessage sub = 7;
  bytes raw = 8;

  message ConnectDefault1Entry {
    string key = 1;
    int32 value = 2;
  }

  message subMessage {
    float f = 1;
    double d = 2;
  }
}
"""
    )


def test_written_nullables_follow_the_options() -> None:
    schema = struct(("a", Schema(Type.STRING, True)), ("b", Schema(Type.INT16, True)), name="M")
    assert "optional string a = 1;" in written(schema, optional_for_nullables=True)
    wrapped = written(schema, wrapper_for_nullables=True)
    assert "google.protobuf.StringValue a = 1;" in wrapped and "google.protobuf.Int32Value b = 2 [" in wrapped
    assert 'import "google/protobuf/wrappers.proto";' in wrapped


def test_given_tags_are_kept_and_others_go_around_them() -> None:
    tagged = Schema(Type.INT32, parameters={names.TAG: "1"})
    union = struct(("x", INT32), ("y", INT32), name=f"{names.UNION_PREFIX}choice")
    text = written(struct(("a", INT32), ("b", tagged), ("choice_0", union), name="M"))
    assert [line.strip() for line in text.splitlines() if "=" in line][1:] == [
        "int32 a = 2;",
        "int32 b = 1;",
        "int32 x = 3;",
        "int32 y = 4;",
    ]


def test_types_of_one_name_with_other_fields_get_numbers() -> None:
    one, other = struct(("a", INT32), name="S"), struct(("b", INT32), name="S")
    text = written(struct(("x", one), ("y", other), ("z", one), name="M"))
    assert [line.strip() for line in text.splitlines() if line.startswith("  S")] == [
        "S x = 1;",
        "S2 y = 2;",
        "S z = 3;",
    ]


def test_schema_without_a_name_gets_one() -> None:
    assert schema_from_connect(struct(("a", BOOLEAN)), ProtobufOptions()).message == "ConnectDefault1"


def test_invalid_names_are_scrubbed_where_asked_for() -> None:
    schema = struct(("my field", INT32), ("1st", INT32), ("_x", INT32), ("gr\u00fcn", INT32), name="a b.C-D")
    made = schema_from_connect(schema, ProtobufOptions(scrub_names=True))
    assert made.message == "a_b.C_D"
    assert [f.name for f in made.file.message_type[0].field] == ["my_field", "x1st", "x_x", "gr_C3_BCn"]


@pytest.mark.parametrize(
    "schema",
    [
        array(INT32),
        map_of(STRING, INT32),
        decimal(2),
        struct(("a", array(array(INT32)))),
        struct(("a", array(map_of(STRING, INT32)))),
        struct(("a", map_of(STRING, array(INT32)))),
    ],
)
def test_what_protobuf_cannot_hold_is_refused(schema: Schema) -> None:
    with pytest.raises(SchemaError, match="Protobuf cannot represent"):
        schema_from_connect(schema, ProtobufOptions())


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (INT16, "Int32Value"),
        (INT64, "Int64Value"),
        (FLOAT32, "FloatValue"),
        (FLOAT64, "DoubleValue"),
        (BOOLEAN, "BoolValue"),
        (STRING, "StringValue"),
        (BYTES, "BytesValue"),
    ],
)
def test_value_that_is_no_struct_is_a_wrapper(schema: Schema, message: str) -> None:
    assert schema_from_connect(schema, ProtobufOptions()).message == f"google.protobuf.{message}"


def test_field_with_the_name_of_a_union_is_refused() -> None:
    text = 'syntax = "proto3"; message M { oneof paid { string card = 1; } string paid_0 = 2; }'
    message = message_at(open_schema(text, {}), [0])
    with pytest.raises(SchemaError, match="type M has a oneof and a field that both become the field paid_0"):
        schema_to_connect(message, ProtobufOptions())
    found = schema_to_connect(message, ProtobufOptions(flatten_unions=True))
    assert [field.name for field in found.fields] == ["card", "paid_0"]
