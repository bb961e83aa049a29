"""Apache's own sink and this one, with the same configuration: the same tables."""

from __future__ import annotations

import contextlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyiceberg.exceptions import NoSuchNamespaceError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.types import LongType, NestedField, StringType

from airflow_connect.devstack.kafka import KafkaBroker
from tests.devstack.iceberg_rest import IcebergRest
from tests.devstack.iceberg_worker import IcebergWorker
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.kafka_data import TopicProducer, create_topic

pytestmark = [pytest.mark.integration, pytest.mark.budget(60)]

DATA = "org.apache.kafka.connect.data"
LONGEST_S = 60.0


def field(called: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"field": called, "type": kind, "optional": True, **more}


FIELDS = [
    field("i8", "int8"), field("i16", "int16"), field("i32", "int32"), field("i64", "int64", optional=False),
    field("f32", "float"), field("f64", "double"), field("b", "boolean"), field("t", "string"), field("raw", "bytes"),
    field("money", "bytes", name=f"{DATA}.Decimal", version=1, parameters={"scale": "2"}),
    field("day", "int32", name=f"{DATA}.Date", version=1),
    field("time", "int32", name=f"{DATA}.Time", version=1),
    field("at", "int64", name=f"{DATA}.Timestamp", version=1),
    field("list", "array", items={"type": "int32", "optional": False}),
    field("map", "map", keys={"type": "string"}, values={"type": "double", "optional": True}),
    field("in", "struct", fields=[field("x", "int32"), field("y.z", "string")]),
]  # fmt: skip
VALUES = [
    {
        "i8": -128, "i16": 32767, "i32": -(2**31), "i64": 2**63 - 1, "f32": 0.1, "f64": 0.1, "b": True, "t": "ä\n",
        "raw": "AAH/", "money": "MDk=", "day": -1, "time": 86399999, "at": -1, "list": [1, 2], "map": {"k": 0.5},
        "in": {"x": 1, "y.z": "t"},
    },
    {"i64": 0, **dict.fromkeys(one["field"] for one in FIELDS if one["field"] != "i64")},
    {
        "i8": 0, "i16": 0, "i32": 0, "i64": -(2**63), "f32": 3.4e38, "f64": 1e-308, "b": False, "t": "", "raw": "",
        "money": "AA==", "day": 2932896, "time": 0, "at": 253402300799999, "list": [], "map": {}, "in": {"x": None,
        "y.z": None},
    },
]  # fmt: skip
MONEY = {"type": "bytes", "optional": True, "name": f"{DATA}.Decimal", "version": 1, "parameters": {"scale": "2"}}
SCHEMA = {"type": "struct", "optional": False, "fields": FIELDS}


@pytest.fixture
def sink(kafka: KafkaBroker, iceberg_rest: IcebergRest, tmp_path: Path, make_topic: Callable[..., str]) -> IcebergSink:
    made = iceberg_sink(kafka, tmp_path / "ours", make_topic(1))
    made.catalog_properties = {"type": "rest", "uri": iceberg_rest.uri}
    return made


@pytest.fixture(scope="module")
def original(kafka: KafkaBroker) -> Iterator[IcebergWorker]:
    with contextlib.suppress(Exception):
        create_topic(kafka.bootstrap, "control-iceberg", 1)
    with IcebergWorker.start(kafka.bootstrap, "iceberg-original") as worker:
        yield worker


def tables(original: IcebergWorker, sink: IcebergSink, rows: int, **config: str) -> tuple[Table, Table]:
    """The table of the original, and ours, in one catalog."""
    name, theirs_is = f"original-{sink.name}", f"{sink.table_name}_original"
    made = {**sink.connector(**config), "iceberg.tables": theirs_is}
    converters = {key: value for key, value in sink.worker().items() if "converter" in key}
    own = {
        "tasks.max": "1",
        "iceberg.control.commit.interval-ms": "1000",
        "iceberg.control.commit.timeout-ms": "5000",
        "consumer.override.auto.offset.reset": "earliest",
    }
    original.rest.create(name, {**converters, **{key: made[key] for key in made if key != "name"}, **own})
    try:
        theirs = committed(sink, theirs_is, rows, lambda: original.rest.status(name))
    finally:
        original.rest.delete(name)
    report = sink.run(**config)
    assert report.records == rows
    ours = sink.table()
    assert ours is not None
    return theirs, ours


def committed(sink: IcebergSink, name: str, rows: int, status: Callable[[], Any]) -> Table:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        absent = contextlib.suppress(NoSuchTableError, NoSuchNamespaceError)
        with contextlib.closing(sink.catalog) as catalog, absent:
            table = catalog.load_table(name)
            snapshot = table.current_snapshot()
            if snapshot is not None and int(snapshot.summary["total-records"] or 0) >= rows:
                return table
        time.sleep(0.3)
    raise AssertionError(f"The original has not committed: {status()}")


def columns(table: Table) -> list[str]:
    """Names and types, without ids."""
    return [re.sub(r"\d+: ", "", str(column)) for column in table.schema().fields]


def rows_of(table: Table) -> list[dict[str, Any]]:
    return sorted(table.scan().to_arrow().to_pylist(), key=lambda row: row["i64"])


def test_values_with_a_schema(original: IcebergWorker, sink: IcebergSink, produce: TopicProducer) -> None:
    sink.worker_config |= {"value.converter.schemas.enable": "true"}
    produce(sink.topic, [(0, None, json.dumps({"schema": SCHEMA, "payload": value})) for value in VALUES])
    by = "day(at), bucket(i64, 4), truncate(t, 2), i8"
    theirs, ours = tables(original, sink, len(VALUES), **{"iceberg_tables_default-partition-by": by})

    assert columns(ours) == columns(theirs)
    assert str(ours.spec()) == str(theirs.spec())
    assert rows_of(ours) == rows_of(theirs)


def test_values_without_a_schema(original: IcebergWorker, sink: IcebergSink, produce: TopicProducer) -> None:
    values = [
        {"i64": n, "f": n + 0.5, "t": str(n), "b": n > 1, "l": [n], "s": {"x": n, "y": {"z": "a"}}} for n in range(3)
    ]
    produce(sink.topic, [(0, None, json.dumps(value)) for value in values])
    theirs, ours = tables(original, sink, len(values))

    # The original has fields in the order of a hash table.
    assert sorted(columns(ours)) == sorted(columns(theirs))
    assert rows_of(ours) == rows_of(theirs)


def test_values_in_columns_of_texts(original: IcebergWorker, sink: IcebergSink, produce: TopicProducer) -> None:
    inner = field("inner", "struct", fields=FIELDS)
    deep = [
        field("all", "struct", fields=[*FIELDS, inner]),
        field("pairs", "map", keys={"type": "int32"}, values={"type": "float", "optional": True}),
        field("sums", "array", items=MONEY),
    ]
    kept = [one for one in FIELDS if one["field"] not in ("raw", "day", "time", "at", "i64")]
    fields = [field("i64", "int64", optional=False), *kept, *deep]
    values = [
        {**one, "all": {**one, "inner": one}, "pairs": [[1, 0.1], [-2, None]], "sums": ["MDk=", "AA==", None]}
        for one in VALUES
        if one["money"] is not None
    ]
    numbers = [1e7, 1e-5, -1e-3, 123456.789, 0.001]
    values += [{**values[0], "i64": 5 + n, "f64": number, "f32": number} for n, number in enumerate(numbers)]
    sink.worker_config |= {"value.converter.schemas.enable": "true"}
    schema = {"type": "struct", "optional": False, "fields": fields}
    produce(sink.topic, [(0, None, json.dumps({"schema": schema, "payload": value})) for value in values])
    texts = [NestedField(n, one["field"], StringType(), required=False) for n, one in enumerate(fields[1:], 2)]
    with contextlib.closing(sink.catalog) as catalog:
        catalog.create_namespace_if_not_exists("lake")
        for name in (sink.table_name, f"{sink.table_name}_original"):
            columns_of = Schema(NestedField(1, "i64", LongType(), required=True), *texts)
            catalog.create_table(name, columns_of, properties={"format-version": "2"})
    theirs, ours = tables(original, sink, len(values))

    for mine, other in zip(rows_of(ours), rows_of(theirs), strict=True):
        assert [(name, mine[name]) for name in mine] == [(name, other[name]) for name in mine]
