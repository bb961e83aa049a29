"""Names the fields that a projection to another schema drops: which ones is found out once for each pair of schemas."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from airflow_connect.api.schema import Schema, Type
from airflow_connect.converters.unread import Unread, joined

Finder = Callable[[Any, Unread], None]
"""Adds the names of the fields of a value that hold something and are dropped."""


@lru_cache(maxsize=4096)
def field_finder(source: Schema | None, target: Schema | None, path: str = "") -> Finder | None:
    """A function that names what values of `source` lose as values of `target`; None if they lose nothing.

    Args:
        source: the schema of the values.
        target: the schema to which they are projected.
        path: of the values in their records.
    """
    if source is None or target is None or source == target or source.type is not target.type:
        return None
    if source.type is Type.STRUCT:
        return _finder_in_structs(source, target, path)
    if source.type not in (Type.ARRAY, Type.MAP):
        return None
    of_values = field_finder(source.value_schema, target.value_schema, path)
    if source.type is Type.ARRAY:
        return None if of_values is None else _finder_of_each(of_values, lambda value: value)
    of_keys = field_finder(source.key_schema, target.key_schema, path)
    finders = [
        _finder_of_each(find, part)
        for find, part in ((of_keys, dict.keys), (of_values, dict.values))
        if find is not None
    ]
    return _all_of(finders)


def _finder_in_structs(source: Schema, target: Schema, path: str) -> Finder | None:
    dropped, inner = [], []
    for given in source.fields:
        wanted, place = target.field(given.name), joined(path, given.name)
        find = None if wanted is None else field_finder(given.schema, wanted.schema, place)
        if wanted is None:
            dropped.append((given.name, place))
        elif find is not None:
            inner.append((given.name, find))
    if not dropped and not inner:
        return None

    def find_in_struct(value: Any, unread: Unread) -> None:
        if value is None:
            return
        for name, place in dropped:
            if value.get(name) is not None:
                unread.add(place)
        for name, find in inner:
            find(value.get(name), unread)

    return find_in_struct


def _finder_of_each(find: Finder, part: Callable[[Any], Iterable[Any]]) -> Finder:
    def find_in_each(value: Any, unread: Unread) -> None:
        for item in () if value is None else part(value):
            find(item, unread)

    return find_in_each


def _all_of(finders: Sequence[Finder]) -> Finder | None:
    def find_all(value: Any, unread: Unread) -> None:
        for find in finders:
            find(value, unread)

    return find_all if finders else None
