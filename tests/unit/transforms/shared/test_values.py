"""What transformations ask of values, and Java's names for them."""

from __future__ import annotations

import datetime
from decimal import Decimal
from typing import Any

import pytest

from airflow_connect.api import schema as schemas
from airflow_connect.api.record import SinkRecord, SourceRecord
from airflow_connect.api.schema import Schema, Type, map_of, struct
from airflow_connect.errors import DataError
from airflow_connect.transforms.shared.values import (
    inferred_type,
    java_class,
    require_map,
    require_schema,
    require_sink_record,
    require_struct,
)

STRUCT = struct(("a", schemas.INT32))
MAP = map_of(schemas.STRING, schemas.INT32)


@pytest.mark.parametrize(
    ("schema", "value", "name"),
    [
        (None, None, "null"),
        (None, 5, "java.lang.Long"),
        (schemas.INT8, 5, "java.lang.Byte"),
        (schemas.INT16, 5, "java.lang.Short"),
        (schemas.INT32, 5, "java.lang.Integer"),
        (schemas.date(), 5, "java.util.Date"),
        (schemas.timestamp(), 5, "java.util.Date"),
        (None, True, "java.lang.Boolean"),
        (None, 1.5, "java.lang.Double"),
        (schemas.FLOAT32, 1.5, "java.lang.Float"),
        (None, "x", "java.lang.String"),
        (None, b"x", "[B"),
        (None, Decimal(1), "java.math.BigDecimal"),
        (None, [], "java.util.ArrayList"),
        (None, {}, "java.util.HashMap"),
        (MAP, {}, "java.util.HashMap"),
        (STRUCT, {}, "org.apache.kafka.connect.data.Struct"),
        (None, datetime.datetime(2023, 11, 14, tzinfo=datetime.UTC), "java.util.Date"),
    ],
)
def test_java_class_of_each_value_is_named(schema: Schema | None, value: Any, name: str) -> None:
    assert java_class(schema, value) == name


@pytest.mark.parametrize(
    ("value", "kind"),
    [(1, Type.INT64), (True, Type.BOOLEAN), (1.0, Type.FLOAT64), ({}, Type.MAP), (Decimal(1), None), (None, None)],
)
def test_inferred_type_is_what_connect_takes_schemaless_values_for(value: Any, kind: Type | None) -> None:
    assert inferred_type(value) is kind


def test_require_map_and_struct_tell_maps_from_structs() -> None:
    assert require_map(None, {"a": 1}, "testing") == {"a": 1}
    assert require_struct(STRUCT, {"a": 1}, "testing") == {"a": 1}
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[testing\], found: java.util.HashMap"):
        require_struct(MAP, {"a": 1}, "testing")
    with pytest.raises(DataError, match=r"absence of schema for \[testing\], found: java.lang.String"):
        require_map(None, "x", "testing")


def test_require_schema_of_schemaless_raises() -> None:
    assert require_schema(STRUCT, "testing") is STRUCT
    with pytest.raises(DataError, match=r"Schema required for \[testing\]"):
        require_schema(None, "testing")


def test_require_sink_record_of_a_source_raises() -> None:
    record = SinkRecord(topic="t", partition=0, offset=1)
    assert require_sink_record(record, "testing") is record
    source = SourceRecord(topic="t", partition=None, source_partition={}, source_offset={})
    with pytest.raises(DataError, match=r"Only SinkRecord supported for \[testing\]"):
        require_sink_record(source, "testing")
