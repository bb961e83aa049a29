"""Tables with a name mapping: a field finds its column by each of the column's names."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyiceberg.schema import Schema as IcebergSchema
from pyiceberg.types import ListType, LongType, NestedField, StructType

from airflow_connect.api.schema import Schema, Type, array, struct
from airflow_connect.connectors.iceberg.field_names import NAME_MAPPING
from airflow_connect.errors import IcebergError
from tests.unit.connectors.iceberg.lakes import TABLE, Lake

LONG = Schema(Type.INT64)
INNER = StructType(NestedField(4, "x", LongType(), required=False))
COLUMNS = IcebergSchema(
    NestedField(1, "order_id", LongType(), required=False),
    NestedField(2, "lines", ListType(3, INNER, element_required=False), required=False),
)
MAPPING = [
    {"field-id": 1, "names": ["id", "order_id"]},
    {"field-id": 2, "names": ["items"], "fields": [{"field-id": 3, "names": ["element"], "fields": [
        {"field-id": 4, "names": ["count", "x"]}]}]},
]  # fmt: skip
VALUES = struct(("id", LONG), ("items", array(struct(("count", LONG)))))


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake(tmp_path)


def create(lake: Lake, mapping: object = MAPPING) -> None:
    properties = {"format-version": "2", NAME_MAPPING: mapping if isinstance(mapping, str) else json.dumps(mapping)}
    lake.create(COLUMNS, properties=properties)


def columns(lake: Lake) -> list[str]:
    return [field.name for field in lake.table(TABLE).schema().fields]


@pytest.mark.parametrize("evolves", ["false", "true"])
def test_fields_go_to_the_columns_that_have_their_names(lake: Lake, evolves: str) -> None:
    create(lake)
    lake.set(**{"iceberg.tables.evolve-schema-enabled": evolves})
    lake.put([{"id": 1, "items": [{"count": 2}]}], VALUES)

    assert (lake.refusals.errors, lake.notes) == ([], ())
    assert lake.rows() == [{"order_id": 1, "lines": [{"x": 2}]}]
    assert columns(lake) == ["order_id", "lines"]


def test_column_that_is_renamed_still_gets_its_field(lake: Lake) -> None:
    create(lake, [{"field-id": 1, "names": ["order_id"]}])
    lake.put([{"order_id": 1}], struct(("order_id", LONG)))
    with lake.table(TABLE).update_schema() as update:
        update.rename_column("order_id", "number")
    lake.put([{"order_id": 2}], struct(("order_id", LONG)))

    assert sorted(row["number"] for row in lake.rows()) == [1, 2]
    assert columns(lake) == ["number", "lines"]


def test_two_fields_of_one_column_are_refused(lake: Lake) -> None:
    create(lake)
    schema = struct(("id", LONG), ("order_id", LONG))
    lake.put([{"id": 1, "order_id": 2}], schema)
    (told,) = lake.refusals.errors

    assert "The fields id and order_id would be the same column." in str(told[1])
    assert lake.rows() == []


def test_name_of_two_columns_is_refused(lake: Lake) -> None:
    create(lake, [{"field-id": 1, "names": ["a"]}, {"field-id": 2, "names": ["a"]}])
    lake.put([{"a": 1}], struct(("a", LONG)))
    (told,) = lake.refusals.errors

    assert "has a for the columns order_id and lines" in str(told[1])


def test_mapping_that_cannot_be_read_ends_the_task(lake: Lake) -> None:
    create(lake, "{")
    with pytest.raises(IcebergError, match=NAME_MAPPING):
        lake.put([{"id": 1}], struct(("id", LONG)))


def test_records_without_schemas_use_the_mapping(lake: Lake) -> None:
    create(lake)
    lake.put([{"id": 1, "items": [{"count": 2}]}])

    assert (lake.refusals.errors, lake.rows()) == ([], [{"order_id": 1, "lines": [{"x": 2}]}])
