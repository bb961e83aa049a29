"""A size limit for schemas while they are read from a registry or a message.

A schema may use a part of itself many times. In a Connect schema each use is a copy, so thirty types, each of which
uses the previous one twice, would be a billion structs.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from airflow_connect.api.schema import MAX_SCHEMA_DEPTH
from airflow_connect.errors import SchemaError

MAX_PARTS = 100_000


class SchemaSize:
    """Counts the parts of one schema, and tracks how deeply the reader is nested."""

    def __init__(self) -> None:
        """Starts at zero."""
        self._parts = 0
        self._level = 0

    @contextmanager
    def part(self) -> Iterator[None]:
        """Begin to read one part.

        Raises:
            SchemaError: there are too many parts, or it is nested too deeply.
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
