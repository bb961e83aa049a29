"""Values that are written in columns, with a real registry: the messages of one by one, read back by both paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from airflow_connect.api import schema as s
from airflow_connect.registry.converters.avro_converter import AvroConverter
from airflow_connect.registry.converters.json_schema_converter import JsonSchemaConverter
from airflow_connect.registry.converters.protobuf_converter import ProtobufConverter
from airflow_connect.runtime.executor.source.columns import python_values
from tests.support.values.columns import arrow_type

if TYPE_CHECKING:
    from tests.integration.registry.conftest import Registry

pytestmark = pytest.mark.integration

ROW = s.struct(
    ("id", s.INT64),
    ("small", s.INT16),
    ("name", s.OPTIONAL_STRING),
    ("price", s.decimal(2, optional=True)),
    ("day", s.date(optional=True)),
    ("clock", s.time(optional=True)),
    ("at", s.timestamp()),
    ("ratio", s.OPTIONAL_FLOAT64),
    ("paid", s.BOOLEAN),
    ("data", s.OPTIONAL_BYTES),
    name="shop.Row",
)
FULL = {
    "id": 1, "small": -5, "name": "é", "price": b"\x96", "day": 19_782, "clock": 1, "at": 1_700_000_000_000,
    "ratio": 0.5, "paid": True, "data": b"\xff",
}  # fmt: skip
SPARSE = dict.fromkeys(FULL) | {"id": -(1 << 63), "small": 7, "at": -1, "paid": False}


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        (AvroConverter, {}),
        (JsonSchemaConverter, {}),
        (JsonSchemaConverter, {"decimal.format": "NUMERIC"}),
        (ProtobufConverter, {"optional.for.nullables": "true"}),
        (ProtobufConverter, {"wrapper.for.nullables": "true"}),
    ],
)
def test_columns_are_registered_once_and_read_back(
    schema_registry: Registry, unique_name: str, kind: Any, config: Mapping[str, str]
) -> None:
    column = pa.array([FULL, SPARSE] * 3, arrow_type(ROW)).slice(1)
    converter, other = kind(), kind()
    for each in (converter, other):
        each.configure({"schema.registry.url": schema_registry.url, **config})

    written = converter.from_columns(unique_name, ROW, column)

    values = python_values(ROW, column)
    assert written.to_pylist() == [other.from_connect(unique_name, ROW, value) for value in values]
    assert schema_registry.versions(f"{unique_name}-value") == [1]
    assert [other.to_connect(unique_name, data).value for data in written.to_pylist()] == values
    pieces = other.to_columns(unique_name, written)
    if config.get("decimal.format") == "NUMERIC":
        assert pieces is None  # Decimals that are numbers are read one by one.
    else:
        assert [python_values(piece.schema, piece.values) for piece in pieces] == [values]
