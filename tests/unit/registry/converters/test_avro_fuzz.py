"""Whatever bytes come behind a schema id, AvroConverter gives a value or a DataError, in both of its forms."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.errors import DataError
from airflow_connect.registry.converters.avro_converter import AvroConverter
from tests.support.session.searching import examples
from tests.unit.converters.avro.avro_schemas import Made, encoded, records
from tests.unit.registry.registry_double import RegistryDouble

FIELDS: list[Any] = [
    {"name": "text", "type": "string"},
    {"name": "list", "type": {"type": "array", "items": ["null", "bytes"]}},
    {"name": "map", "type": {"type": "map", "values": {"type": "array", "items": "int"}}},
    {"name": "union", "type": ["null", "long", "string", {"type": "enum", "name": "E", "symbols": ["A", "B"]}]},
    {"name": "money", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
]
SCHEMA = {"type": "record", "name": "R", "fields": FIELDS}
GOOD = {"text": "x", "list": [None, b"y"], "map": {"k": [1]}, "union": ("long", 7), "money": b"\x07"}
START = b"\0\0\0\0\x07"
HUGE = [encoded("long", [number])[0] for number in (1 << 31, 1 << 40, (1 << 63) - 1, -1, -(1 << 62))]


@pytest.fixture(scope="module")
def converter() -> Iterator[AvroConverter]:
    """A converter whose registry has one schema, for every id."""
    answer = {"subject": "t-value", "version": 1, "id": 7, "schema": json.dumps(SCHEMA)}
    with RegistryDouble((200, answer)) as registry:
        made = AvroConverter()
        made.configure({"schema.registry.url": registry.url})
        yield made


def _read(converter: AvroConverter, data: bytes) -> Any:
    try:
        return converter.to_connect("t", data).value
    except DataError:
        return None


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=60))
def test_to_connect_random_bytes_are_a_value_or_a_data_error(converter: AvroConverter, data: bytes) -> None:
    found = _read(converter, START + data)
    assert found is None or found.keys() == GOOD.keys()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.integers(0, 30), st.sampled_from(HUGE), st.booleans())
def test_to_connect_huge_lengths_and_counts_are_a_value_or_a_data_error(
    converter: AvroConverter, place: int, number: bytes, replaces: bool
) -> None:
    (good,) = encoded(SCHEMA, [GOOD])
    damaged = good[:place] + number + good[place + replaces :]
    found = _read(converter, START + damaged)
    assert found is None or found.keys() == GOOD.keys()
    assert converter.to_columns("t", pa.array([START + damaged])) is None


def test_to_connect_good_message_is_its_value(converter: AvroConverter) -> None:
    found = _read(converter, START + encoded(SCHEMA, [GOOD])[0])
    assert found["union"] == {"long": 7, "string": None, "E": None}
    assert str(found["money"]) == "0.07"


@settings(deadline=None, max_examples=examples(40))
@given(st.data())
def test_both_forms_random_schemas_give_equal_schemas_and_values(data: st.DataObject) -> None:
    avro_type, values = data.draw(records(Made(columnar=False)))
    messages = [START + m for m in encoded(avro_type, data.draw(st.lists(values, min_size=1, max_size=4)))]
    answer = {"subject": "t-value", "version": 1, "id": 7, "schema": json.dumps(avro_type)}
    with RegistryDouble((200, answer)) as registry:
        converter = AvroConverter()
        converter.configure({"schema.registry.url": registry.url})
        read = [converter.to_connect("t", message) for message in messages]
        pieces = converter.to_columns("t", pa.array(messages))
    assert len({found.schema for found in read}) == 1
    if pieces is not None:
        (piece,) = pieces
        assert piece.schema == read[0].schema
        assert len(piece) == len(read)
