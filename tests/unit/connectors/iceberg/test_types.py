"""Connect's types as columns, and their values read back from a table."""

from __future__ import annotations

from datetime import UTC, date, datetime, time
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import BinaryType, ListType, MapType, NestedField, StructType, TimestampNanoType

from airflow_connect.api.schema import DECIMAL, Schema, Type, array, map_of, struct
from airflow_connect.api.schema import date as date_schema
from airflow_connect.api.schema import decimal as decimal_schema
from airflow_connect.api.schema import time as time_schema
from airflow_connect.api.schema import timestamp as timestamp_schema
from airflow_connect.connectors.iceberg.types import all_optional, file_schema, iceberg_fields, iceberg_type
from airflow_connect.errors import SchemaError
from tests.support.session.many_cases import check_each
from tests.unit.connectors.iceberg.lakes import Lake

ID = "123e4567-e89b-12d3-a456-426614174000"
TEXT, LONG = Schema(Type.STRING), Schema(Type.INT64)
UUID_TEXT = Schema(Type.STRING, name="uuid")
SHORT_DECIMAL = Schema(Type.BYTES, name=DECIMAL, parameters={"scale": "2", "connect.decimal.precision": "5"})


def optional(schema: Schema) -> Schema:
    return Schema(
        schema.type, optional=True, name=schema.name, parameters=schema.parameters, fields=schema.fields,
        key_schema=schema.key_schema, value_schema=schema.value_schema,
    )  # fmt: skip


TYPES: list[tuple[str, Schema, str, Any, Any]] = [
    ("int8", Schema(Type.INT8), "int", -128, -128),
    ("int16", Schema(Type.INT16), "int", 32767, 32767),
    ("int32", Schema(Type.INT32), "int", -(2**31), -(2**31)),
    ("int64", LONG, "long", 2**63 - 1, 2**63 - 1),
    ("float32", Schema(Type.FLOAT32), "float", 1.5, 1.5),
    ("float64", Schema(Type.FLOAT64), "double", 0.1, 0.1),
    ("boolean", Schema(Type.BOOLEAN), "boolean", False, False),
    ("string", TEXT, "string", "", ""),
    ("bytes", Schema(Type.BYTES), "binary", b"\0", b"\0"),
    ("decimal", decimal_schema(2), "decimal(38, 2)", Decimal("-1.23"), Decimal("-1.23")),
    ("short", SHORT_DECIMAL, "decimal(5, 2)", Decimal("999.99"), Decimal("999.99")),
    ("hundreds", decimal_schema(-2), "decimal(38, 0)", Decimal("12E2"), Decimal(1200)),
    ("date", date_schema(), "date", -1, date(1969, 12, 31)),
    ("time", time_schema(), "time", 86_399_999, time(23, 59, 59, 999000)),
    ("timestamp", timestamp_schema(), "timestamptz", -1, datetime(1969, 12, 31, 23, 59, 59, 999000, tzinfo=UTC)),
    ("uuid", UUID_TEXT, "uuid", ID, UUID(ID)),
    ("debezium", Schema(Type.STRING, name="io.debezium.data.Uuid"), "uuid", ID, UUID(ID)),
]


def test_every_type_has_its_column() -> None:
    fields = iceberg_fields(struct(*((name, schema) for name, schema, *_ in TYPES)), all_optional=False)
    assert [(f.name, str(f.field_type)) for f in fields] == [(name, kind) for name, _, kind, *_ in TYPES]


@pytest.mark.parametrize("around", ["column", "struct", "list", "map"])
def test_every_type_is_read_back(tmp_path: Path, around: str) -> None:
    wrap: dict[str, Any] = {
        "column": (lambda s: s, lambda v: v, lambda v: v),
        "struct": (lambda s: optional(struct(("q", s))), lambda v: {"q": v}, lambda v: {"q": v}),
        "list": (lambda s: optional(array(optional(s))), lambda v: [v, None], lambda v: [v, None]),
        "map": (lambda s: optional(map_of(s, optional(s))), lambda v: {v: v}, lambda v: [(v, v)]),
    }
    of_schema, of_value, of_read = wrap[around]
    schema = struct(*((name, of_schema(inner)) for name, inner, *_ in TYPES))
    given = {name: of_value(value) for name, _, _, value, _ in TYPES}
    lake = Lake(tmp_path)
    staged = lake.put([given, {} if around != "column" else given], schema)
    assert lake.refusals.errors == []
    assert [file.records for file in staged] == [2]
    # With pyarrow: pyiceberg reads a null map as an empty one.
    first, second = pq.read_table(staged[0].token["path"].removeprefix("file://")).to_pylist()
    assert first == {name: of_read(read) for name, *_, read in TYPES}
    assert second == (first if around == "column" else dict.fromkeys(first))
    assert len(lake.rows()) == 2


def test_documentation_and_optional_parts_of_the_schema_are_kept() -> None:
    schema = struct(
        ("a", Schema(Type.INT32, doc="the number")), ("l", array(TEXT)), ("m", map_of(TEXT, optional(LONG)))
    )  # fmt: skip
    a, texts, numbers = iceberg_fields(schema, all_optional=False)
    assert (a.doc, a.required) == ("the number", True)
    assert isinstance(texts.field_type, ListType) and texts.field_type.element_required
    assert isinstance(numbers.field_type, MapType) and not numbers.field_type.value_required


def test_everything_can_be_optional_except_keys_of_maps() -> None:
    inner = struct(("x", LONG), ("l", array(struct(("y", LONG)))), ("m", map_of(TEXT, struct(("z", LONG)))))
    fields = iceberg_fields(struct(("s", inner)), all_optional=False)
    for made in (
        iceberg_fields(struct(("s", inner)), all_optional=True),
        all_optional(StructType(*fields)).fields,  # type: ignore[attr-defined]
    ):
        assert "required=True" not in repr(made)
        assert all(
            not field.required for field in IcebergSchema(*made)._lazy_id_to_field.values() if field.name != "key"
        )


def test_types_that_iceberg_does_not_have_are_refused() -> None:
    wide = Schema(Type.BYTES, name=DECIMAL, parameters={"scale": "2", "connect.decimal.precision": "39"})
    cases = [decimal_schema(39), wide, struct(), array(struct()), map_of(TEXT, decimal_schema(40))]

    def check(schema: Schema) -> None:
        with pytest.raises(SchemaError, match=r"a\.b"):
            iceberg_type(struct(("b", schema)), "a", all_optional=False)

    check_each(cases, repr, check)


def test_files_have_the_ids_of_the_table() -> None:
    table = IcebergSchema(
        NestedField(7, "a", ListType(8, StructType(NestedField(9, "b", BinaryType(), required=False)), True)),
    )
    column = file_schema(table).field("a")
    element = column.type.value_field
    assert (column.metadata, element.metadata, element.type.field("b").metadata) == tuple(
        {b"PARQUET:field_id": number} for number in (b"7", b"8", b"9")
    )
    assert (column.nullable, element.nullable) == (True, False)


def test_column_that_cannot_be_written_is_refused_by_name() -> None:
    table = IcebergSchema(NestedField(1, "at", TimestampNanoType(), required=False))
    with pytest.raises(SchemaError, match="The column at has the type timestamp_ns"):
        file_schema(table)


def test_times_outside_of_the_day_are_refused_also_as_keys_of_maps(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    day = 86_400_000
    keyed = struct(("m", map_of(time_schema(), TEXT)))
    lake.put([{"m": {day: "a"}}, {"m": {0: "b"}}, {"m": {-1: "c"}}], keyed)
    assert [offset for offset, _ in lake.refusals.errors] == [0, 2]
    assert lake.rows() == [{"m": [(time(0), "b")]}]


def test_uuid_that_is_none_is_refused_and_a_table_with_uuids_can_be_empty(tmp_path: Path) -> None:
    lake = Lake(tmp_path)
    schema = struct(("u", UUID_TEXT), ("s", optional(struct(("u", UUID_TEXT)))))
    lake.put([{"u": "x", "s": None}, {"u": ID, "s": None}, {"u": ID, "s": {"u": ID}}], schema)
    assert [offset for offset, _ in lake.refusals.errors] == [0]
    assert lake.rows() == [{"u": UUID(ID), "s": None}, {"u": UUID(ID), "s": {"u": UUID(ID)}}]
    assert pa.types.is_fixed_size_binary(lake.arrow().schema.field("u").type.storage_type)
