"""Tables of the Iceberg sink, read back by DuckDB; with AIRFLOW_CONNECT_SOAK=1 also by Spark, which rewrites files."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.kafka_data import TopicProducer
from tests.support.lake_readers import read_with_duckdb, read_with_spark
from tests.support.session.searching import IS_SOAK

if TYPE_CHECKING:
    from tests.devstack.iceberg_rest import IcebergRest

# DuckDB is installed in an environment of its own, once.
pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]

CONNECT = "org.apache.kafka.connect.data"
FIELDS = [
    {"field": "id", "type": "int64"},
    {"field": "name", "type": "string", "optional": True},
    {"field": "moment", "type": "int64", "name": f"{CONNECT}.Timestamp", "version": 1},
    {"field": "day", "type": "int32", "name": f"{CONNECT}.Date", "version": 1},
    {"field": "price", "type": "bytes", "name": f"{CONNECT}.Decimal", "version": 1, "parameters": {"scale": "2"}},
    {"field": "flag", "type": "boolean"},
    {"field": "tags", "type": "array", "items": {"type": "string"}},
    {"field": "place", "type": "struct", "optional": True, "fields": [{"field": "x", "type": "double"}]},
]
COUNT, DAY_MS = 40, 24 * 3600 * 1000


def value(n: int) -> dict[str, Any]:
    unscaled = (n * 101 - 500).to_bytes(8, "big", signed=True)
    return {
        "id": n,
        "name": None if n % 5 == 0 else f"näme {n}" * 4,
        "moment": (n - 10) * DAY_MS + n,
        "day": n - 20,
        "price": base64.b64encode(unscaled).decode(),
        "flag": n % 2 == 0,
        "tags": [f"t{i}" for i in range(n % 3)],
        "place": None if n % 4 == 0 else {"x": n / 8},
    }


@pytest.fixture
def sink(
    kafka: KafkaBroker,
    iceberg_rest: IcebergRest,
    tmp_path: Path,
    make_topic: Callable[..., str],
    produce: TopicProducer,
) -> IcebergSink:
    made = iceberg_sink(kafka, tmp_path, make_topic(2))
    made.catalog_properties = {"type": "rest", "uri": iceberg_rest.uri}
    made.config |= {
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "true",
        "value.converter.schema.content": json.dumps({"type": "struct", "fields": FIELDS}),
        "iceberg.tables.default-partition-by": "month(moment), bucket(id, 4), truncate(name, 3)",
    }
    produce(made.topic, [(n % 2, None, json.dumps(value(n))) for n in range(COUNT)])
    made.run()
    return made


QUERIES = [
    "select id, name, price, flag, place.x from lake order by id",
    "select count(*) from lake where moment >= timestamp '1970-01-05 00:00:00'",
    "select id from lake where name like 'näm%' and id > 30 order by id",
    "select id from lake where day = date '1970-01-01'",
    "select count(*) from lake where price < -1.00",
]


def check(found: list[list[list[Any]]]) -> None:
    values = [value(n) for n in range(COUNT)]
    rows = [
        [v["id"], v["name"], Decimal(v["id"] * 101 - 500) / 100, v["flag"], v["place"] and v["place"]["x"]]
        for v in values
    ]
    assert [[i, name, Decimal(price), flag, x] for i, name, price, flag, x in found[0]] == rows
    assert found[1] == [[sum(v["moment"] >= 4 * DAY_MS for v in values)]]
    assert found[2] == [[v["id"]] for v in values if v["name"] and v["id"] > 30]
    assert found[3] == [[20]]
    assert found[4] == [[sum(row[2] < -1 for row in rows)]]


def test_duckdb_reads_the_same_rows_and_finds_them_by_filters(sink: IcebergSink) -> None:
    table = sink.table()
    assert table is not None
    check(read_with_duckdb(table.metadata_location, QUERIES))


if IS_SOAK:
    # Another Spark has 480 MB.
    @pytest.mark.budget(200)
    def test_spark_reads_the_same_rows_and_rewrites_their_files(
        sink: IcebergSink, iceberg_rest: IcebergRest, produce: TopicProducer
    ) -> None:
        rewrite = (
            f"call r.system.rewrite_data_files(table => '{sink.table_name}', options => map('rewrite-all', 'true'))"
        )
        *first, rewritten = read_with_spark(iceberg_rest.uri, sink.table_name, [*QUERIES, rewrite])
        check(first)
        assert rewritten[0][0] > 0
        produce(sink.topic, [(0, None, json.dumps(value(COUNT)))])
        sink.run()
        again = read_with_spark(iceberg_rest.uri, sink.table_name, ["select count(*), sum(id) from lake"])
        assert again == [[[COUNT + 1, sum(range(COUNT + 1))]]]
