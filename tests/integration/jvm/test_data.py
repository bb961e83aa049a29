"""Connect's data crosses into the JVM and back without a change: Apache's own classes look at it there."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from airflow_connect.api import schema as s
from airflow_connect.api.record import Header, SinkRecord, SourceRecord
from airflow_connect.converters.json.converter import JsonConverter
from airflow_connect.jvm.data.records import Data, Text
from airflow_connect.jvm.host import PluginHost
from airflow_connect.jvm.stages import JavaStages, Outcome
from tests.support.session.searching import examples, settings
from tests.unit.formats.connect_values import schemas, values_of

pytestmark = pytest.mark.integration

JSON = "org.apache.kafka.connect.json.JsonConverter"
TRANSFORMS = "org.apache.kafka.connect.transforms"
TEXT = st.text(st.characters(exclude_categories=("Cs",)), max_size=8)
SCHEMALESS = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(1 << 63), (1 << 63) - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=8,
)


@pytest.fixture(scope="module")
def stages():
    opened = JavaStages(PluginHost.start([], is_driver=True, heap_mb=128), timeout_s=30)
    yield opened
    assert opened.close() == []


@pytest.fixture(scope="module")
def java_json(stages) -> dict[bool, int]:
    return {
        enabled: stages.open("value_converter", JSON, {"schemas.enable": str(enabled).lower()})
        for enabled in (True, False)
    }


@pytest.fixture(scope="module")
def adds_header(stages) -> int:
    return stages.open("transformation", f"{TRANSFORMS}.InsertHeader", {"header": "added", "value.literal": "7"})


def everything(call: Callable[[int, Any], Outcome[Any]], stage: int, items: list[Any]) -> Outcome[Any]:
    """Requests until all are done, or one fails: each takes as many as it wants."""
    results: list[Any] = []
    while True:
        outcome = call(stage, items[len(results) :])
        results += outcome.results
        if outcome.failure is not None or len(results) == len(items):
            return Outcome(results, outcome.failure)


def python_json(*, enabled: bool) -> JsonConverter:
    converter = JsonConverter()
    converter.configure({"schemas.enable": str(enabled).lower()}, False)
    return converter


@settings(max_examples=examples(150), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_java_writes_values_with_a_schema_as_python_does_and_reads_them_back(stages, java_json, data):
    schema = data.draw(schemas)
    values = data.draw(st.lists(values_of(schema), min_size=1, max_size=3))
    expected = [python_json(enabled=True).from_connect("t", schema, value) for value in values]

    written = everything(stages.from_connect, java_json[True], [Data("t", schema, value) for value in values])
    assert written.failure is None
    assert [json.loads(text) for text in written.results] == [json.loads(text) for text in expected]

    read = everything(stages.to_connect, java_json[True], [Text("t", text) for text in expected])
    assert read.results == [python_json(enabled=True).to_connect("t", text) for text in expected]


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(values=st.lists(SCHEMALESS.filter(lambda value: value is not None), min_size=1, max_size=3))
def test_values_without_a_schema(stages, java_json, values):
    expected = [python_json(enabled=False).from_connect("t", None, value) for value in values]

    written = everything(stages.from_connect, java_json[False], [Data("t", None, value) for value in values])
    assert written.failure is None
    assert [json.loads(text) for text in written.results] == [json.loads(text) for text in expected]

    read = everything(stages.to_connect, java_json[False], [Text("t", text) for text in expected])
    assert read.results == [python_json(enabled=False).to_connect("t", text) for text in expected]


@settings(max_examples=examples(100), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_transformation_changes_nothing_else(stages, adds_header, data):
    def part() -> tuple[Any, Any]:
        if data.draw(st.booleans()):
            return None, data.draw(SCHEMALESS)
        schema = data.draw(schemas)
        return schema, data.draw(values_of(schema))

    records = []
    for offset in range(data.draw(st.integers(1, 3))):
        (key_schema, key), (value_schema, value) = part(), part()
        records.append(
            SinkRecord(
                topic=data.draw(st.sampled_from(["t", "moved"])),
                partition=data.draw(st.integers(0, 3)),
                offset=offset,
                original_topic="t",
                original_partition=2,
                timestamp=data.draw(st.none() | st.integers(0, 1 << 40)),
                key_schema=key_schema,
                key=key,
                value_schema=value_schema,
                value=value,
                headers=tuple(Header(data.draw(TEXT), *part()) for _ in range(data.draw(st.integers(0, 2)))),
            )
        )

    outcome = everything(stages.apply, adds_header, records)

    added = Header("added", s.INT8, 7)
    assert outcome.results == [record.changed(headers=(*record.headers, added)) for record in records]
    assert outcome.failure is None


def full_schema() -> s.Schema:
    inner = s.Schema(s.Type.INT16, name="n", version=3, doc="a doc", parameters={"a": "b"}, default=-7)
    price = s.Schema(s.Type.BYTES, True, s.DECIMAL, 1, parameters={"scale": "2"}, default=Decimal("1.50"))
    return s.struct(
        ("x", inner), ("y", price), ("z", s.array(s.map_of(s.INT32, s.OPTIONAL_STRING))), name="full", version=2
    )


def test_every_attribute_of_a_schema_stays_and_a_null_is_not_its_default(stages, adds_header):
    record = SinkRecord(
        topic="t",
        partition=0,
        offset=1,
        value_schema=full_schema(),
        value={"x": None, "y": None, "z": [{1: None, 2: "b"}]},
    )

    (changed,) = everything(stages.apply, adds_header, [record]).results

    assert changed.value_schema == full_schema()
    assert changed.value == record.value


def test_null_with_a_schema_is_not_a_tombstone(stages, adds_header):
    records = [
        SinkRecord(topic="t", partition=0, offset=offset, value_schema=schema, value=None)
        for offset, schema in enumerate([None, s.OPTIONAL_STRING])
    ]

    results = everything(stages.apply, adds_header, records).results

    assert [(record.value_schema, record.value) for record in results] == [(None, None), (s.OPTIONAL_STRING, None)]


def test_times_and_decimals_without_a_schema_keep_their_class(stages, adds_header):
    value = {
        "at": datetime.datetime(1969, 12, 31, 23, 59, 59, 999000, datetime.UTC),
        "price": Decimal("-12.340"),
        "raw": b"\x00\xff",
        "nested": [{"k": 1.5, 2: None, (1, "a"): 3}],
    }

    given = [SinkRecord(topic="t", partition=0, offset=1, value=value)]
    (changed,) = everything(stages.apply, adds_header, given).results

    assert changed.value == value
    assert changed.value["price"].as_tuple() == value["price"].as_tuple()


def test_half_of_a_surrogate_pair_fails_its_record(stages, adds_header):
    records = [SinkRecord(topic="t", partition=0, offset=n, value=text) for n, text in enumerate(["a", "\ud800"])]

    outcome = everything(stages.apply, adds_header, records)

    assert [record.value for record in outcome.results] == ["a"]
    assert "half of a surrogate pair" in str(outcome.failure)


def test_records_of_a_source_keep_their_positions(stages, adds_header):
    record = SourceRecord(topic="t", value="v", source_partition={"file": "a"}, source_offset={"line": 3})

    (changed,) = everything(stages.apply, adds_header, [record]).results

    assert changed == record.changed(headers=(Header("added", s.INT8, 7),))
    assert changed.partition is None


def test_a_failure_ends_the_request_and_the_rest_was_not_seen(stages):
    cast = stages.open("transformation", f"{TRANSFORMS}.Cast$Value", {"spec": "int32"})
    records = [SinkRecord(topic="t", partition=0, offset=n, value=text) for n, text in enumerate(["1", "x", "3"])]

    outcome = everything(stages.apply, cast, records)

    assert [record.value for record in outcome.results] == [1]
    assert outcome.failure["executing"] == f"{TRANSFORMS}.Cast$Value"
    assert outcome.failure["class"] == "org.apache.kafka.connect.errors.DataException"
    assert not outcome.failure["retriable"]


def test_predicates_and_dropped_records(stages):
    is_tombstone = stages.open("predicate", f"{TRANSFORMS}.predicates.RecordIsTombstone", {})
    drops = stages.open("transformation", f"{TRANSFORMS}.Filter", {})
    records = [SinkRecord(topic="t", partition=0, offset=n, value=value) for n, value in enumerate(["a", None, "c"])]

    assert everything(stages.test, is_tombstone, records).results == [False, True, False]
    assert everything(stages.apply, drops, records).results == [None, None, None]


def test_headers_by_a_header_converter(stages):
    simple = stages.open("header_converter", "org.apache.kafka.connect.storage.SimpleHeaderConverter", {})

    read = everything(stages.to_connect, simple, [Text("t", data, "h") for data in (b"17", b"true", None)]).results

    assert read == [(s.INT8, 17), (s.BOOLEAN, True), (None, None)]
    written = everything(stages.from_connect, simple, [Data("t", *one, "h") for one in read])
    assert written.results == [b"17", b"true", None]
