"""The schema by which AvroSerDe reads files of every age."""

from __future__ import annotations

import io
import json
from dataclasses import replace

import fastavro
import pytest

from airflow_connect.api import schema as connect
from airflow_connect.api.schema import Schema, struct
from airflow_connect.converters.avro.mapping import AvroMapping
from airflow_connect.converters.avro.names import AvroSettings
from airflow_connect.errors import SchemaError
from airflow_connect.hive.avro_literal import avro_literal

OLD = struct(("id", connect.INT32), ("gone", connect.STRING), ("in", struct(("a", connect.INT32), name="In")), name="R")
NEW = struct(
    ("new", connect.OPTIONAL_STRING),
    ("id", connect.INT64),
    ("in", struct(("b", replace(connect.INT32, default=7)), ("a", connect.INT32), name="In")),
    ("amount", connect.decimal(2)),
    name="R",
)


def _file(schema: Schema, values: list[dict]) -> io.BytesIO:
    made = io.BytesIO()
    fastavro.writer(made, AvroMapping(AvroSettings()).avro_schema(schema), values)
    made.seek(0)
    return made


def _read(literal: str, file: io.BytesIO) -> list[dict]:
    return list(fastavro.reader(file, fastavro.parse_schema(json.loads(literal))))


def test_literal_of_two_schemas_reads_files_of_both():
    literal = avro_literal(NEW, avro_literal(OLD, ""))
    assert [field["name"] for field in json.loads(literal)["fields"]] == ["id", "gone", "in", "new", "amount"]
    (old,) = _read(literal, _file(OLD, [{"id": 1, "gone": "x", "in": {"a": 2}}]))
    assert old == {"id": 1, "gone": "x", "in": {"a": 2, "b": 7}, "new": None, "amount": None}
    (new,) = _read(literal, _file(NEW, [{"new": "n", "id": 2, "in": {"b": 3, "a": 4}, "amount": b"\x01"}]))
    assert (new["id"], new["gone"], new["in"], new["new"]) == (2, None, {"a": 4, "b": 3}, "n")


def test_literal_does_not_change_with_a_schema_that_it_can_read():
    literal = avro_literal(NEW, avro_literal(OLD, ""))
    assert avro_literal(NEW, literal) == literal
    fields = json.loads(avro_literal(OLD, literal))["fields"]
    assert [field["name"] for field in fields] == [field["name"] for field in json.loads(literal)["fields"]]


def test_decimals_have_no_more_digits_than_hive():
    field = json.loads(avro_literal(struct(("d", connect.decimal(2)), name="R"), ""))["fields"][0]
    (kind,) = (branch for branch in field["type"] if branch != "null")
    assert (kind["logicalType"], kind["precision"], kind["scale"]) == ("decimal", 38, 2)


def test_partition_columns_are_left_out():
    literal = avro_literal(OLD, "", without=("GONE",))
    assert [field["name"] for field in json.loads(literal)["fields"]] == ["id", "in"]


@pytest.mark.parametrize("literal", ["{", '"string"', '{"type":"record"}'])
def test_literal_that_cannot_be_read_is_named(literal):
    with pytest.raises(SchemaError, match=r"avro\.schema\.literal cannot be read") as refused:
        avro_literal(OLD, literal)
    assert refused.value.code == "hive.avro_literal"
