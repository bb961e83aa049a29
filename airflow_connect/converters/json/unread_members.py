"""Finds the members of JSON objects that their schema does not have, where Arrow has read the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.unread import Unread, joined

Finder = Callable[[Any], None]


def member_finder(schema: Schema, unread: Unread, path: str = "") -> Finder | None:
    """A function that names such members of a parsed value; None if values of `schema` hold no objects.

    Args:
        schema: of structs and arrays of them; maps are not looked into.
        unread: gets the names.
        path: of the value in its message.
    """
    if schema.type is Type.ARRAY and schema.value_schema is not None:
        find = member_finder(schema.value_schema, unread, path)
        return None if find is None else _in_array(find)
    if schema.type is not Type.STRUCT:
        return None
    known = frozenset(schema.fields_by_name)
    found = ((f.name, member_finder(f.schema, unread, joined(path, f.name))) for f in schema.fields)
    inner = [(name, find) for name, find in found if find is not None]

    def find_in_object(node: Any) -> None:
        if type(node) is not dict:
            return
        if not known.issuperset(node):
            unread.add_members(node, known, path)
        for name, find in inner:
            find(node.get(name))

    return find_in_object


def _in_array(find: Finder) -> Finder:
    def find_in_array(node: Any) -> None:
        if type(node) is list:
            for item in node:
                find(item)

    return find_in_array
