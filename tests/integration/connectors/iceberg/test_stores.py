"""The Iceberg sink with its catalog in PostgreSQL, by a URL of Java's, and its files in S3."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.kafka_data import TopicProducer
from tests.support.servers.databases import Database

pytestmark = pytest.mark.integration


@pytest.fixture
def sink(
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    postgresql_database: Database,
    tmp_path: Path,
    make_topic: Callable[..., str],
) -> IcebergSink:
    made = iceberg_sink(kafka, tmp_path, make_topic(2))
    made.catalog_properties = {
        "type": "sql",
        "uri": postgresql_database.url,
        "warehouse": f"s3://{bucket}/warehouse",
        "s3.endpoint": s3.endpoint_url,
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
        "s3.region": s3.region,
    }
    made.config |= {
        "iceberg.catalog.type": None,
        "iceberg.catalog.catalog-impl": "org.apache.iceberg.jdbc.JdbcCatalog",
        "iceberg.catalog.uri": postgresql_database.jdbc_url,
    }
    return made


def objects(s3: S3Server, bucket: str, end: str) -> list[str]:
    found = s3.client().list_objects_v2(Bucket=bucket).get("Contents", [])
    return [entry["Key"] for entry in found if entry["Key"].endswith(end)]


def test_rows_are_there_once_and_a_run_that_fails_leaves_no_file(
    sink: IcebergSink, s3: S3Server, bucket: str, produce: TopicProducer
) -> None:
    values = [{"n": n, "name": f"name {n}"} for n in range(20)]
    produce(sink.topic, [(n % 2, None, json.dumps(value)) for n, value in enumerate(values)])
    sink.run()
    assert sorted(sink.rows(), key=lambda row: row["n"]) == values
    files = objects(s3, bucket, ".parquet")
    assert len(files) == 2

    produce(sink.topic, [(0, None, '{"n": 20}'), (1, None, '["no row"]')])
    failed = sink.try_run()
    assert failed.error is not None
    assert failed.error["code"] == "data.not_struct"
    assert objects(s3, bucket, ".parquet") == files
    report = sink.run(errors_tolerance="all")
    assert (report.records, report.dead_lettered + report.filtered) == (1, 1)
    assert sorted(row["n"] for row in sink.rows()) == list(range(21))
