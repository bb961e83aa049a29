"""Our reader of .proto text against protoc: the same descriptors, and the same texts refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.converters.protobuf.files import MAIN_FILE, open_schema
from airflow_connect.errors import SchemaError
from tests.unit.converters.protobuf.protoc import compiled, facts

P2, P3 = 'syntax = "proto2"; ', 'syntax = "proto3"; '
E23, E24 = 'edition = "2023"; ', 'edition = "2024"; '

DATA = Path(__file__).parents[3] / "data" / "proto"
"""Schemas: files, and folders with a schema and what it imports."""
VALID = sorted(found.name for found in DATA.iterdir())

REFUSED = {
    "syntax twice": P3 + P3,
    "syntax behind a message": "message M { } " + P3,
    "package twice": P3 + "package a; package b;",
    "no semicolon": P3 + "message M { int32 a = 1 }",
    "no number": P3 + "message M { int32 a; }",
    "no name": P3 + "message { }",
    "no closing brace": P3 + "message M { int32 a = 1;",
    "no type": P3 + "message M { a = 1; }",
    "unknown statement": P3 + "nonsense M { }",
    "unknown syntax": 'syntax = "proto4"; message M { }',
    "unknown edition": 'edition = "1999"; message M { }',
    "unknown type": P3 + "message M { Missing m = 1; }",
    "type of an inner scope": P3 + "message M { N n = 1; } message O { message N { } }",
    "missing import": P3 + 'import "none.proto"; message M { }',
    "name twice": P3 + "message M { } message M { }",
    "name of a field twice": P3 + "message M { int32 a = 1; int32 a = 2; }",
    "number twice": P3 + "message M { int32 a = 1; int32 b = 1; }",
    "number 0": P3 + "message M { int32 a = 0; }",
    "negative number": P3 + "message M { int32 a = -1; }",
    "number too large": P3 + "message M { int32 a = 536870912; }",
    "number beyond 32 bits": P3 + "message M { int32 a = 4294967297; }",
    "number is a text": P3 + 'message M { int32 a = "1"; }',
    "number is broken": P3 + "message M { int32 a = 08; }",
    "number is a float": P3 + "message M { int32 a = 1.5; }",
    "enum without values": P3 + "enum E { }",
    "enum value twice": P3 + "enum E { A = 0; A = 1; }",
    "enum value twice in one scope": P3 + "enum E { A = 0; } enum F { A = 0; }",
    "enum of proto3 without zero": P3 + "enum E { A = 1; }",
    "enum value too large": P3 + "enum E { A = 0; B = 2147483648; }",
    "default of an unknown enum value": P2 + "message M { optional E e = 1 [default = B]; enum E { A = 0; } }",
    "default that is no number": P2 + 'message M { optional int32 a = 1 [default = "x"]; }',
    "default that does not fit": P2 + "message M { optional int32 a = 1 [default = 2147483648]; }",
    "default of a message": P2 + 'message M { optional M a = 1 [default = "x"]; }',
    "default in proto3": P3 + "message M { int32 a = 1 [default = 5]; }",
    "required in proto3": P3 + "message M { required int32 a = 1; }",
    "label in a oneof": P3 + "message M { oneof o { repeated int32 a = 1; } }",
    "oneof without fields": P3 + "message M { oneof o { } }",
    "map in a oneof": P3 + "message M { oneof o { map<string, int32> a = 1; } }",
    "map with a label": P3 + "message M { repeated map<string, int32> a = 1; }",
    "map with a key of floats": P3 + "message M { map<float, int32> a = 1; }",
    "map with a key of messages": P3 + "message M { map<M, int32> a = 1; }",
    "map of maps": P3 + "message M { map<string, map<string, int32>> a = 1; }",
    "map entry named twice": P3 + "message M { map<string, int32> a = 1; message AEntry { } }",
    "wrong value of an option": P3 + "message M { int32 a = 1 [deprecated = maybe]; }",
    "wrong feature": E23 + "message M { int32 a = 1 [features.field_presence = NONSENSE]; }",
    "JSON names that meet": P3 + "message M { int32 a_b = 1; int32 aB = 2; }",
    "comment without an end": P3 + "message M { } /* and",
    "text without an end": P3 + 'option java_package = "a; message M { }',
    "text over two lines": P3 + 'option java_package = "a\nb"; message M { }',
    "import of itself": P3 + 'import "schema.proto";',
    "name that begins with a digit": P3 + "message 1M { }",
    "character that has no place": P3 + "message M { int32 a = 1; } €",
    "feature in an old syntax": P3 + "message M { int32 a = 1 [features.field_presence = EXPLICIT]; }",
}

# Nothing in these is read wrongly, and a registry may hold them: whoever let them in reads them, too.
READ_ALL_THE_SAME = {
    "first part found, rest missing": P3 + "package a.b; message b { } message M { b.M m = 1; }",
    "enum alias that is not allowed": P3 + "enum E { A = 0; B = 0; }",
    "default of what repeats": P2 + "message M { repeated int32 a = 1 [default = 5]; }",
    "group in proto3": P3 + "message M { repeated group G = 1 { } }",
    "no label in proto2": P2 + "message M { int32 a = 1; }",
    "label in an edition": E23 + "message M { optional int32 a = 1; }",
    "unknown option": P3 + "message M { int32 a = 1 [nonsense = true]; }",
    "unknown option of one's own": P3 + "message M { int32 a = 1 [(nothing) = 5]; }",
    "number that is reserved": P3 + "message M { reserved 1 to 5; int32 a = 3; }",
    "name that is reserved": P3 + 'message M { reserved "a"; int32 a = 3; }',
    "number of an extension": P2 + "message M { extensions 5 to 9; optional int32 a = 6; }",
    "number of the implementation": P3 + "message M { int32 a = 19000; }",
    "packed texts": P3 + "message M { repeated string a = 1 [packed = true]; }",
    "group with a small letter": P2 + "message M { optional group small = 1 { } }",
    "import of a type through a file that is not public": P3 + 'import "a.proto"; message M { B b = 1; }',
    "unknown word of an edition": E23 + "export message M { }",
}
OTHERS = {"a.proto": P3 + 'import "b.proto"; message A { }', "b.proto": P3 + "message B { }"}


@pytest.mark.parametrize("name", VALID)
def test_schema_is_read_as_protoc_reads_it(name: str, tmp_path: Path) -> None:
    text, others = given(DATA / name)
    expected = compiled(text, others, tmp_path)
    assert expected is not None
    assert facts(open_schema(text, others)) == facts(expected)


def given(path: Path) -> tuple[str, dict[str, str]]:
    """A schema, and what it imports by name."""
    if path.is_file():
        return path.read_text(encoding="utf-8"), {}
    texts = {str(found.relative_to(path)): found.read_text(encoding="utf-8") for found in path.rglob("*.proto")}
    return texts.pop(MAIN_FILE), texts


@pytest.mark.parametrize("name", REFUSED)
def test_what_protoc_refuses_is_refused(name: str, tmp_path: Path) -> None:
    assert compiled(REFUSED[name], OTHERS, tmp_path) is None
    with pytest.raises(SchemaError):
        open_schema(REFUSED[name], OTHERS)


@pytest.mark.parametrize("name", READ_ALL_THE_SAME)
def test_what_protoc_refuses_and_can_be_understood_is_read(name: str, tmp_path: Path) -> None:
    assert compiled(READ_ALL_THE_SAME[name], OTHERS, tmp_path) is None
    open_schema(READ_ALL_THE_SAME[name], OTHERS)
