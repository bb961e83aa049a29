"""Columns by table, as `incrementing.column.mapping` and `timestamp.columns.mapping` have them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from airflow_connect.api.config.values import invalid
from airflow_connect.java.patterns.compiled import JavaPattern, compile_java_pattern
from airflow_connect.java.patterns.nodes import PatternError

Mapped = tuple[tuple[JavaPattern, tuple[str, ...]], ...]
"""Patterns of full names of tables, with their columns."""
INCREMENTING_MAPPING, TIMESTAMP_MAPPING = "incrementing.column.mapping", "timestamp.columns.mapping"
_MAPPED = re.compile(r"(?P<pattern>.+):(?P<columns>[^:]+)")


def column_by_table(items: Sequence[str]) -> Mapped:
    """The items of `incrementing.column.mapping`.

    Raises:
        InvalidValueError: an item is not `regex:column`.
    """
    return _mapped(INCREMENTING_MAPPING, items)


def columns_by_table(items: Sequence[str]) -> Mapped:
    """The items of `timestamp.columns.mapping`.

    Raises:
        InvalidValueError: an item is not `regex:[column|column]`.
    """
    return _mapped(TIMESTAMP_MAPPING, items)


def check_mapping(name: str, value: Any) -> None:
    """Raise InvalidValueError if an item of one of both keys is not valid."""
    _mapped(name, value or ())


def _mapped(name: str, items: Sequence[str]) -> Mapped:
    found = []
    for item in items:
        matched = _MAPPED.fullmatch(item)
        columns = matched["columns"].strip() if matched else ""
        if name == TIMESTAMP_MAPPING:
            is_list = columns.startswith("[") and columns.endswith("]")
            listed = tuple(part.strip() for part in columns[1:-1].split("|")) if is_list else ()
        else:
            listed = (columns,)
        if matched is None or not listed or not all(listed):
            form = "regex:[column|column]" if name == TIMESTAMP_MAPPING else "regex:column"
            raise invalid(name, item, f"Write it as {form}")
        try:
            found.append((compile_java_pattern(matched["pattern"].strip()), listed))
        except PatternError as error:
            raise invalid(name, item, f"It has no valid regular expression: {error}") from None
    return tuple(found)
