"""Connect's form of a union: a struct with one field for each type, of which one has a value."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.counting import names
from airflow_connect.errors import DataError


def member_of(value: Mapping[str, Any], members: Iterable[str]) -> str | None:
    """The member that has a value; None: none has one.

    Confluent's converters write the first one, and the values of others are lost.

    Raises:
        DataError: several have one.
    """
    found = [name for name in members if value.get(name) is not None]
    if len(found) > 1:
        raise DataError(
            f"A union has values in several of its fields, {names(found)}, but only one can be written.",
            suggestion="Check the transformations: the other fields must be null.",
        )
    return found[0] if found else None
