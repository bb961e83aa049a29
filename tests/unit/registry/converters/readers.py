"""Converters with a made-up registry, and what they read in columns beside what they read record by record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import pyarrow as pa

from airflow_connect.registry.converters.registry_converter import RegistryConverter
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.values.connect_values import same

C = TypeVar("C", bound=RegistryConverter)


def opened(made: C, registry: Any, config: Mapping[str, str]) -> C:
    """A new converter, configured, that asks `registry`; keys have underscores in the place of dots."""
    given = {key.replace("_", "."): value for key, value in config.items()}
    made.configure({"schema.registry.url": "http://127.0.0.1:1", **given})
    made._client = registry
    return made


def reads_in_columns(reader: Any, messages: Sequence[bytes], expected: Sequence[Sequence[Any]] | None) -> bool:
    """Compare; returns whether there are columns.

    Args:
        reader: the converter.
        messages: in the middle of a longer array.
        expected: schema, value and perhaps more of each message; None: record by record, one is an error.
    """
    pieces = reader.to_columns("t", pa.array([b"before", *messages, b"after"], pa.binary())[1:-1])
    if pieces is None:
        return False
    assert expected is not None, messages
    rows = [(piece.schema, value) for piece in pieces for value in python_values(piece.schema, piece.values)]
    assert len(rows) == len(expected)
    for (schema, value), wanted in zip(rows, expected, strict=True):
        assert schema == wanted[0] and same(value, wanted[1]), (value, wanted[1])
    assert not reader.refused_columns
    return True
