"""Values with the numbers of their schemas, which the two sides of a connection have agreed on.

A schema crosses once, beside the first frame that has a value of it; each side numbers its own. Null without a schema
has no bytes. `helper/src/org/airflowconnect/host/DataConverter.java` is the other side.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.converter import NULL, SchemaAndValue
from airflow_connect.api.schema import Schema
from airflow_connect.errors import DataError
from airflow_connect.jvm.data.schemas import schema_json, schema_of
from airflow_connect.jvm.data.values import decode, encode, from_tree, to_tree

MOST_KNOWN = 10_000
"""Schemas. A transformation may make one for each record, and neither side shall keep all of them."""


class DataWriter:
    """Values on their way to a host."""

    def __init__(self) -> None:
        """No schema is known to the host yet."""
        self._numbers: dict[Schema, int] = {}
        self._fresh: list[dict[str, Any] | None] = []

    def write(self, schema: Schema | None, value: Any) -> bytes | None:
        """The bytes of a value; None is null without a schema.

        Raises:
            DataError: the value does not fit the schema, or has no form in Java.
        """
        if schema is None:
            return None if value is None else encode((None, to_tree(None, value)))
        tree = to_tree(schema, value)
        number = self._numbers.get(schema)
        if number is None:
            self._fresh.append(schema_json(schema))
            number = self._numbers[schema] = len(self._numbers)
        return encode((number, tree))

    def take_fresh(self) -> list[dict[str, Any] | None]:
        """The schemas that the next request has to tell, in the order of their numbers.

        None before them: the host forgets those of earlier requests. All values of these requests were written before.
        """
        taken, self._fresh = self._fresh, []
        if len(self._numbers) >= MOST_KNOWN:
            self._numbers.clear()
            self._fresh.append(None)
        return taken


class DataReader:
    """Values that come from a host."""

    def __init__(self) -> None:
        """The host has told of no schema yet."""
        self._schemas: list[Schema | DataError] = []

    def learn(self, schemas: Iterable[Mapping[str, Any] | None]) -> None:
        """Take the schemas of a reply. One that Python cannot hold keeps its number; `read` tells.

        None before them: those of earlier replies are not needed any more.
        """
        for schema in schemas:
            if schema is None:
                self._schemas.clear()
            else:
                self._schemas.append(_schema_or_error(schema))

    def read(self, data: bytes | None) -> SchemaAndValue:
        """Schema and value of such bytes.

        Raises:
            DataError: Python cannot hold the value, or its schema.
        """
        if data is None:
            return NULL
        number, tree = decode(data)
        schema = None if number is None else self._schemas[number]
        if isinstance(schema, DataError):
            raise schema
        return SchemaAndValue(schema, from_tree(schema, tree))


def _schema_or_error(json: Mapping[str, Any]) -> Schema | DataError:
    try:
        return schema_of(json)
    except DataError as error:
        return error
