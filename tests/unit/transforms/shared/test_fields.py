"""Paths to fields, new struct schemas, and the cache that holds them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.api import schema as schemas
from airflow_connect.api.schema import Schema, Type, struct
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.transforms.shared.fields import FieldPath, FieldSyntax, SchemaCache, require_fields, struct_like

INNER = struct(("x", Schema(Type.STRING, True, default="dx")), ("y", schemas.INT32), optional=True)
OUTER = struct(("id", schemas.INT64), ("in", INNER), name="rec", version=3)


def nested(path: str) -> FieldPath:
    return FieldPath(path, FieldSyntax.V2)


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a", ("a",)),
        ("a.b.c", ("a", "b", "c")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b.c`", ("a", "b.c")),
        ("`a`b`.c", ("a`b", "c")),
        (r"`a\`.b`.c", ("a`.b", "c")),
        ("a`b.c", ("a`b", "c")),
        ("a.", ("a", "")),
        ("..a", ("", "", "a")),
        ("``", ("",)),
    ],
)
def test_path_nested_syntax_is_cut_into_steps(path: str, steps: tuple[str, ...]) -> None:
    assert nested(path).steps == steps


@given(st.text(alphabet="ab.`\\", max_size=8))
def test_path_of_the_first_syntax_is_one_step(path: str) -> None:
    assert FieldPath(path).steps == (path,)


@given(st.lists(st.text(alphabet="ab.", min_size=1, max_size=4), min_size=1, max_size=4))
def test_path_of_quoted_names_gives_the_names(names: list[str]) -> None:
    assert nested(".".join(f"`{name}`" for name in names)).steps == tuple(names)


@given(st.text(alphabet="ab.`\\", min_size=1, max_size=10))
def test_path_any_text_gives_steps_or_an_error_that_names_the_key(path: str) -> None:
    error = None
    try:
        assert nested(path).steps
    except ConfigError as caught:
        error = caught
    assert error is None or (error.config_path == "field" and f"[{path}]" in error.message)


def test_path_empty_of_nested_syntax_raises() -> None:
    with pytest.raises(ConfigError, match="at least one step"):
        nested("")


def test_field_from_nested_struct_is_found() -> None:
    field = nested("in.y").field_from(OUTER)
    assert field is not None and field.schema == schemas.INT32
    assert nested("in.nope").field_from(OUTER) is None
    assert FieldPath("in.y").field_from(OUTER) is None
    with pytest.raises(DataError, match=r"non-struct type: id\.y leads through a value of type INT64"):
        nested("id.y").field_from(OUTER)


@pytest.mark.parametrize(
    ("value", "replace_null", "expected"),
    [
        ({"id": 1, "in": {"x": "X", "y": 2}}, True, "X"),
        ({"id": 1, "in": {"x": None, "y": 2}}, True, "dx"),
        ({"id": 1, "in": {"x": None, "y": 2}}, False, None),
        ({"id": 1, "in": None}, True, None),
        (None, True, None),
    ],
)
def test_value_from_struct_null_on_the_way_is_null(
    value: dict | None, replace_null: bool, expected: str | None
) -> None:
    assert nested("in.x").value_from_struct(OUTER, value, replace_null) == expected


def test_value_from_map_missing_is_null_and_other_than_maps_raise() -> None:
    assert nested("a.b").value_from_map({"a": {"b": 1}}) == 1
    assert nested("a.b").value_from_map({"a": {}}) is None
    assert nested("a.b").value_from_map({}) is None
    with pytest.raises(DataError, match=r"for \[nested field access\], found: java.lang.Long"):
        nested("a.b").value_from_map({"a": 1})


def test_struct_like_copies_name_version_doc_and_parameters_only() -> None:
    source = Schema(Type.STRUCT, True, "n", 4, "d", {"p": "q"}, {"a": 1}, struct(("a", schemas.INT32)).fields)
    made = struct_like(source, [("b", schemas.STRING)])
    assert made == Schema(Type.STRUCT, False, "n", 4, "d", {"p": "q"}, fields=struct(("b", schemas.STRING)).fields)
    assert struct_like(source, [], optional=True).optional


@pytest.mark.parametrize(("names", "message"), [(("a", "a"), "field name duplication a"), (("",), "cannot be null")])
def test_struct_like_bad_names_raise(names: tuple[str, ...], message: str) -> None:
    with pytest.raises(DataError, match=message):
        struct_like(OUTER, [(name, schemas.INT32) for name in names])


def test_require_fields_of_other_types_raises() -> None:
    assert require_fields(OUTER) == OUTER.fields
    with pytest.raises(DataError, match="Cannot list fields on non-struct type"):
        require_fields(schemas.STRING)


def test_cache_makes_each_schema_once_and_forgets_the_oldest() -> None:
    made = []

    def make(schema: Schema) -> Schema:
        made.append(schema)
        return schema

    cache = SchemaCache(make, limit=2)
    first, second, third = (Schema(Type.STRING, version=number) for number in range(3))
    for schema in (first, second, Schema(Type.STRING, version=0), third, second, first):
        assert cache(schema) == schema
    assert made == [first, second, third, first]
