"""A topic's directory is one partitioned table for Spark, DuckDB and pyarrow, without any metastore.

Avro has no reader here but Hive's (tests/integration/hive): Spark's and DuckDB's are packages of their own.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.copies.s3 import InProcessEngine
from tests.support.spark_sql import spark_sql

pytestmark = [pytest.mark.integration, pytest.mark.budget(30)]  # Spark reads what was written

HOUR = 3_600_000
START = datetime(2023, 12, 31, 22, tzinfo=UTC)
EQUALS = "x=y"
CITIES = ["Oslo", "São Paulo", "Zürich + Genève", "a/b", "back\\slash", EQUALS, "it's", "50%2F", "100%", "..", "北京"]
FORMATS = {"parquet": "ParquetFormat", "orc": "OrcFormat", "json": "JsonFormat"}
FIELD = {"partitioner.class": "FieldPartitioner", "partition.field.name": "city,level"}
TIME = {"partitioner.class": "HourlyPartitioner", "locale": "en", "timezone": "UTC", "timestamp.extractor": "Record"}
SCHEMA = {
    "type": "struct",
    "optional": False,
    "fields": [
        {"field": "id", "type": "int64", "optional": False},
        {"field": "city", "type": "string", "optional": True},
        {"field": "level", "type": "int32", "optional": False},
    ],
}
Write = Callable[[str, Mapping[str, str], list[Mapping[str, Any]]], Path]


@pytest.fixture
def write(kafka, make_topic, produce, tmp_path) -> Write:
    """Copy values with a local sink; returns the topic's directory."""

    def run(file_format: str, layout: Mapping[str, str], values: list[Mapping[str, Any]]) -> Path:
        topic, name = make_topic(), f"local-{uuid.uuid4().hex[:8]}"
        produce(
            topic,
            [
                (0, None, json.dumps({"schema": SCHEMA, "payload": value}), round(START.timestamp() * 1000) + n * HOUR)
                for n, value in enumerate(values)
            ],
        )
        connector = {
            "name": name,
            "connector.class": "LocalSink",
            "topics": topic,
            "store.url": f"file://{tmp_path}/{name}",
            "format.class": FORMATS[file_format],
            "flush.size": "1000",
            **layout,
        }
        worker = {
            "bootstrap.servers": kafka.bootstrap,
            "group.id": "test-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "runs.storage.replication.factor": "1",
        }
        report = run_connector(RunSpec(connector, worker), engine=InProcessEngine())
        assert report.status == "done", report.error
        return tmp_path / name / "topics" / topic

    return run


def _with_pyarrow(directory: Path, file_format: str, columns: list[str]) -> list[tuple[Any, ...]]:
    partitioning: Any = "hive"
    if file_format == "json" and "level" in columns:
        # It guesses 32 bits from the names and reads 64 from the files, and takes no two types for one column.
        partitioning = ds.partitioning(pa.schema([("city", pa.string()), ("level", pa.int64())]), flavor="hive")
    table = ds.dataset(directory, format=file_format, partitioning=partitioning).to_table()
    rows = table.select(columns).sort_by("id").to_pylist()
    return [tuple(row[name] for name in columns) for row in rows]


def _with_duckdb(directory: Path, file_format: str, columns: list[str]) -> list[tuple[Any, ...]]:
    """DuckDB takes a name with two `=` for no partition, so directories with such a value are left out."""
    reader = {"parquet": "read_parquet", "json": "read_json"}[file_format]
    files = [str(path) for path in directory.rglob(f"*.{file_format}") if EQUALS not in path.parts[-3]]
    query = f"SELECT {', '.join(columns)} FROM {reader}(?, hive_partitioning = true) ORDER BY id"
    with duckdb.connect() as connection:
        return connection.execute(query, [files]).fetchall()


def _spark_query(directory: Path, file_format: str, columns: list[str]) -> str:
    return f"SELECT {', '.join(columns)} FROM {file_format}.`file://{directory}` ORDER BY id"


def _texts(rows: Iterable[Iterable[Any]]) -> list[list[str]]:
    """Numbers without leading zeros: readers differ in the width of their integers, and DuckDB keeps `05`."""
    return [[str(int(cell)) if str(cell).isdecimal() else str(cell) for cell in row] for row in rows]


def _numbered(cities: list[str | None]) -> list[Mapping[str, Any]]:
    return [{"id": n, "city": city, "level": n % 3} for n, city in enumerate(cities)]


def test_rows_and_values_of_partitions_are_read_back_by_all_readers(write, tmp_path):
    """Values of fields whatever is in them, and hours as numbers; one process of Spark for all of them."""
    cities = _numbered([*CITIES, *CITIES])
    many_hours = _numbered(["Oslo"] * 30)
    hours = [START + timedelta(hours=n) for n in range(30)]
    cases = [
        (FIELD, cities, ["id", "city", "level"], [(v["id"], v["city"], v["level"]) for v in cities]),
        (
            TIME,
            many_hours,
            ["id", "year", "month", "day", "hour"],
            [(n, at.year, at.month, at.day, at.hour) for n, at in enumerate(hours)],
        ),
    ]
    queries, rows_of_spark = [], []
    for layout, values, columns, expected in cases:
        for name in FORMATS:
            directory = write(name, layout, values)
            assert _with_pyarrow(directory, name, columns) == expected, f"pyarrow, {name}"
            if name != "orc":
                found = _texts(_with_duckdb(directory, name, columns))
                assert found == _texts(row for row in expected if EQUALS not in str(row[1])), f"DuckDB, {name}"
            queries.append(_spark_query(directory, name, columns))
            rows_of_spark.append(_texts(expected))
    for query, found, expected_rows in zip(queries, spark_sql(queries, tmp_path), rows_of_spark, strict=True):
        assert found == expected_rows, query


def test_partitions_are_pruned_without_opening_their_files(write):
    directory = write("parquet", FIELD, _numbered(["Oslo", "Rome", "Bern"]))
    for path in directory.glob("city=Rome/**/*.parquet"):
        path.write_bytes(b"no Parquet file")
    wanted = ds.field("city") == "Oslo"
    found = ds.dataset(
        directory,
        schema=pa.schema([("id", pa.int64()), ("city", pa.string()), ("level", pa.int32())]),
        partitioning="hive",
    ).to_table(filter=wanted)
    assert found["id"].to_pylist() == [0]
    with duckdb.connect() as connection:
        query = "SELECT id FROM read_parquet(?, hive_partitioning = true) WHERE city = 'Oslo'"
        assert connection.execute(query, [f"{directory}/**/*.parquet"]).fetchall() == [(0,)]


def test_null_is_the_text_null_in_the_name_of_its_directory_and_null_inside_the_file(write):
    directory = write("parquet", FIELD, _numbered(["Oslo", None]))
    assert (directory / "city=null" / "level=1").is_dir()
    as_null = ds.partitioning(pa.schema([("city", pa.string()), ("level", pa.int32())]), flavor="hive")
    table = ds.dataset(directory, partitioning=as_null).to_table().sort_by("id")
    assert table["id"].to_pylist() == [0, 1]
    (file,) = (directory / "city=null" / "level=1").glob("*.parquet")
    with duckdb.connect() as connection:
        query = "SELECT id, city FROM read_parquet(?, hive_partitioning = false)"
        assert connection.execute(query, [str(file)]).fetchall() == [(1, None)]
