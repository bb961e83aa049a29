"""Names with dots: a field of nested structs first, else the field that has this very name, on both paths."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.api.record import KafkaRecord
from tests.unit.connectors.files.shared.staging import copy

PARTS = [{"field": "city", "type": "string", "optional": True}, {"field": "at", "type": "int64", "optional": True}]
ADDRESS = {"field": "address", "type": "struct", "optional": True, "fields": PARTS}
FLATTEN = {"transforms": "f", "transforms.f.type": "org.apache.kafka.connect.transforms.Flatten$Value"}
BY_CITY = {"partitioner.class": "FieldPartitioner", "partition.field.name": "address.city"}
BY_TIME = {
    "partitioner.class": "HourlyPartitioner", "locale": "en-US", "timezone": "UTC",
    "timestamp.extractor": "RecordField", "timestamp.field": "address.at",
}  # fmt: skip
VALUE = {"address": {"city": "Berlin", "at": 1_700_000_000_000}}


def keys_of(config: dict[str, Any], fields: list[Any] | None, value: Any, *, columnar: bool) -> Any:
    schema = {"type": "struct", "fields": fields}
    connector = {
        "flush.size": "10",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": str(fields is not None).lower(),
        **({"value.converter.schema.content": json.dumps(schema)} if fields else {}),
        **config,
    }
    records = [KafkaRecord("t", 0, n, None, json.dumps(value).encode(), 0) for n in range(3)]
    outcome, in_columns = copy(connector, [records], columnar=columnar)
    if outcome.error:
        return outcome.error
    assert in_columns == (3 if columnar else 0)
    return [key.removeprefix("topics/t/").rpartition("/")[0] for key, *_ in outcome.files]


@pytest.mark.parametrize("columnar", [True, False])
@pytest.mark.parametrize("transforms", [{}, FLATTEN], ids=["nested", "flattened"])
def test_dotted_name_finds_the_field_with_and_without_flatten(transforms: dict[str, str], columnar: bool) -> None:
    by_city = keys_of({**BY_CITY, **transforms}, [ADDRESS], VALUE, columnar=columnar)
    by_time = keys_of({**BY_TIME, **transforms}, [ADDRESS], VALUE, columnar=columnar)
    assert (by_city, by_time) == (["address.city=Berlin"], ["year=2023/month=11/day=14/hour=22"])


@pytest.mark.parametrize("columnar", [True, False])
def test_dotted_name_of_a_schemaless_member_finds_it(columnar: bool) -> None:
    flat = {"address.at": 1_700_000_000_000}
    assert keys_of(BY_TIME, None, flat, columnar=columnar) == ["year=2023/month=11/day=14/hour=22"]
    assert keys_of(BY_TIME, None, VALUE, columnar=columnar) == ["year=2023/month=11/day=14/hour=22"]


@pytest.mark.parametrize("columnar", [True, False])
def test_nested_field_wins_over_one_with_dots_in_its_name(columnar: bool) -> None:
    fields = [{"field": "address.city", "type": "string", "optional": True}, ADDRESS]
    both = {**VALUE, "address.city": "Rome"}
    assert keys_of(BY_CITY, fields, both, columnar=columnar) == ["address.city=Berlin"]


def test_dotted_name_that_is_nowhere_is_named() -> None:
    error = keys_of({**BY_CITY, "partition.field.name": "address.zip"}, [ADDRESS], VALUE, columnar=True)
    assert "The nested field named 'address.zip' does not exist." in error
