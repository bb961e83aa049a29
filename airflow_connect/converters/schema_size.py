"""A bound for schemas while they are read from a registry or a message.

A schema may name a part of itself many times. Read as a Connect schema each use is a copy, so that thirty types of
which each uses the one before twice would be a billion structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_connect.api.errors import SchemaError
from airflow_connect.api.schema import MAX_SCHEMA_DEPTH

MAX_PARTS = 100_000


class SchemaSize:
    """Counts the parts of one schema, and how deep the reader is inside of it."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._parts = 0
        self._level = 0

    @contextmanager
    def part(self) -> Iterator[None]:
        """One part is being read.

        Raises:
            SchemaError: it is one too many, or lies too deep.
        """
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise _refused(f"it has more than {MAX_PARTS} parts")
        if self._level == MAX_SCHEMA_DEPTH:
            raise _refused(f"it is nested more than {MAX_SCHEMA_DEPTH} levels")
        self._level += 1
        try:
            yield
        finally:
            self._level -= 1


def _refused(why: str) -> SchemaError:
    return SchemaError(
        f"The schema cannot be read as a Connect schema: {why}.",
        code="data.schema_unsupported",
        suggestion="Flatten it, or pass the topic through with ByteArrayConverter.",
    )
