"""Hive's types as text, both ways, and the type that holds two."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import SchemaError
from airflow_connect.hive.types import HiveType as T
from airflow_connect.hive.types import array_of, decimal_of, map_of, parse_type, struct_of, widened

PLAIN = st.sampled_from([T("int"), T("bigint"), T("string"), T("timestamp"), decimal_of(38, 2), T("varchar", (10,))])
NAMES = st.from_regex(r"\A[a-z][a-z0-9_]{0,5}\Z")


def _nested(inner):
    return st.one_of(
        inner.map(array_of),
        st.tuples(inner, inner).map(lambda pair: map_of(*pair)),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3).map(lambda fields: struct_of(list(fields.items()))),
    )


TYPES = st.recursive(PLAIN, _nested, max_leaves=8)


@given(TYPES)
def test_text_of_a_type_means_the_type(kind):
    assert parse_type(str(kind)) == kind


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("INT", "int"),
        ("integer", "int"),
        ("decimal", "decimal(10,0)"),
        ("numeric(5,2)", "decimal(5,2)"),
        (" struct< a : int , b : array< string > > ", "struct<a:int,b:array<string>>"),
        ("map<string,struct<x:decimal(3,1)>>", "map<string,struct<x:decimal(3,1)>>"),
        ("uniontype<int,string>", "uniontype<int,string>"),
    ],
)
def test_text_as_people_write_it_is_understood(text, kind):
    assert str(parse_type(text)) == kind


@pytest.mark.parametrize("text", ["", "struct<>", "struct<a>", "array<int", "decimal(x)", "int>", "map<,>", "decimal("])
def test_text_that_is_no_type_is_named(text):
    with pytest.raises(SchemaError, match="not a known Hive type") as refused:
        parse_type(text)
    assert refused.value.code == "hive.type"


@pytest.mark.parametrize(
    ("old", "new", "both"),
    [
        ("int", "bigint", "bigint"),
        ("bigint", "int", "bigint"),
        ("tinyint", "double", "double"),
        ("int", "string", None),
        ("string", "binary", None),
        ("date", "timestamp", None),
        ("decimal(10,2)", "decimal(12,4)", "decimal(12,4)"),
        ("decimal(38,2)", "decimal(38,4)", None),
        ("array<int>", "array<bigint>", "array<bigint>"),
        ("array<int>", "array<string>", None),
        ("map<string,int>", "map<string,float>", "map<string,float>"),
        ("struct<a:int>", "struct<b:string,a:bigint>", "struct<a:bigint,b:string>"),
        ("struct<A:int,c:date>", "struct<a:int>", "struct<A:int,c:date>"),
        ("struct<a:int>", "struct<a:string>", None),
        ("array<struct<a:int>>", "array<struct<a:int,b:int>>", "array<struct<a:int,b:int>>"),
        ("struct<a:int>", "map<string,int>", None),
    ],
)
def test_type_of_two_holds_both_or_there_is_none(old, new, both):
    found = widened(parse_type(old), parse_type(new))
    assert (None if found is None else str(found)) == both


@given(TYPES, TYPES)
def test_type_of_two_takes_in_either_without_a_change(old, new):
    both = widened(old, new)
    if both is not None:
        assert widened(both, old) == both
        assert widened(both, new) == both
