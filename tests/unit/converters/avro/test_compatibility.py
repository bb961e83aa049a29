"""Which Avro schema reads data of which: the specification's schema resolution."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.converters.avro.compatibility import find_mismatch


def _record(*fields: dict[str, Any], name: str = "n.R", **more: Any) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


A, B = {"name": "a", "type": "int"}, {"name": "b", "type": "string"}
RED, RED_BLUE = ({"type": "enum", "name": "E", "symbols": symbols} for symbols in (["RED"], ["RED", "BLUE"]))
OF_A, OF_B = (_record({"name": "r", "type": _record(field, name="I")}) for field in (A, B))
LIST = _record({"name": "next", "type": ["null", "n.R"], "default": None}, A)


@pytest.mark.parametrize(
    ("reader", "writer"),
    [
        ("int", "int"),
        ("long", "int"),
        ("double", "long"),
        ("bytes", "string"),
        (["null", "string"], "string"),
        (["null", "int"], ["null", "int"]),
        (["null", "long"], ["int", "null"]),
        (_record(A), _record(A, B)),
        (_record(A, {**B, "default": ""}), _record(A)),
        (_record({"name": "x", "aliases": ["a"], "type": "long"}), _record(A)),
        (_record(A, aliases=["old.Name"]), _record(A, name="Name")),
        (_record(A, name="m.R"), _record(A)),
        (RED_BLUE, RED),
        ({**RED, "default": "RED"}, RED_BLUE),
        ({"type": "array", "items": "long"}, {"type": "array", "items": "int"}),
        ({"type": "map", "values": "string"}, {"type": "map", "values": "bytes"}),
        (LIST, LIST),
    ],
)
def test_find_mismatch_readable_data_has_none(reader: Any, writer: Any) -> None:
    assert find_mismatch(reader, [], writer) == ""


@pytest.mark.parametrize(
    ("reader", "writer", "says"),
    [
        ("int", "long", "the value is long and would be read as int"),
        ("string", ["null", "string"], "the value is null and would be read as string"),
        (["null", "int"], "string", "may have the type string, which the union does not have"),
        (_record(A, B), _record(A), "the value lacks the field b, which has no default"),
        (OF_A, OF_B, "the field r lacks the field a"),
        (_record(A), _record(A, name="Other"), "has the name Other, not n.R"),
        (RED, RED_BLUE, "lacks BLUE"),
        ({"type": "fixed", "name": "F", "size": 2}, {"type": "fixed", "name": "F", "size": 3}, "another size"),
        ({"type": "array", "items": "int"}, {"type": "array", "items": "string"}, r"the value\[\] is string"),
    ],
)  # fmt: skip
def test_find_mismatch_unreadable_data_names_the_place(reader: Any, writer: Any, says: str) -> None:
    import re

    assert re.search(says, find_mismatch(reader, [], writer))


def test_find_mismatch_referenced_types_of_the_reader_are_known() -> None:
    reader = _record({"name": "r", "type": "x.Inner"})
    writer = _record({"name": "r", "type": _record(A, name="x.Inner")})
    assert find_mismatch(reader, [_record(A, name="x.Inner")], writer) == ""
