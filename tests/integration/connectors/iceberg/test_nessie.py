"""Runs over Nessie's REST endpoint, with AIRFLOW_CONNECT_SOAK=1: it is large to fetch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.runtime import crash_points
from tests.devstack.nessie import WAREHOUSE, Nessie
from tests.support.copies.iceberg import IcebergSink, iceberg_sink
from tests.support.copies.s3 import numbered
from tests.support.kafka_data import TopicProducer
from tests.support.steps import Crashed, Steps

pytestmark = [pytest.mark.integration, pytest.mark.soak, pytest.mark.budget(120)]


@pytest.fixture(scope="module")
def nessie(s3: S3Server) -> Iterator[Nessie]:
    s3.client().create_bucket(Bucket="nessie-tests")
    with Nessie.start(s3, "nessie-tests") as server:
        yield server


@pytest.fixture
def sink(
    kafka: KafkaBroker,
    s3: S3Server,
    nessie: Nessie,
    tmp_path: Path,
    make_topic: Callable[..., str],
    produce: TopicProducer,
) -> IcebergSink:
    made = iceberg_sink(kafka, tmp_path, make_topic(2))
    made.catalog_properties = {
        "type": "rest",
        "uri": nessie.uri,
        "warehouse": WAREHOUSE,
        "s3.endpoint": s3.endpoint_url,
        "s3.access-key-id": s3.access_key,
        "s3.secret-access-key": s3.secret_key,
        "s3.region": s3.region,
    }
    produce(made.topic, numbered(0, 10, 2)[0])
    return made


def test_table_is_created_and_filled_by_several_runs(sink: IcebergSink, produce: TopicProducer) -> None:
    sink.run()
    produce(sink.topic, [(0, None, '{"n": 10}')])
    sink.run()

    assert sorted(row["n"] for row in sink.rows()) == list(range(11))


def test_change_of_a_schema_fails_and_loses_nothing(sink: IcebergSink, produce: TopicProducer) -> None:
    """Nessie 0.99 wants a member of the request that newer clients no longer send."""
    sink.run()
    produce(sink.topic, [(0, None, '{"n": 10, "more": "text"}')])
    refused = sink.try_run(**{"iceberg_control_commit_timeout-ms": "2000"})
    report = sink.run(**{"iceberg_tables_evolve-schema-enabled": "false"})

    assert refused.error is not None
    assert "changing the schema" in refused.error["message"]
    assert (report.records, sorted(row["n"] for row in sink.rows())) == (1, list(range(11)))


@pytest.mark.parametrize("point", [crash_points.MANIFEST_WRITTEN, crash_points.PUBLISHED])
def test_run_that_died_is_committed_once(sink: IcebergSink, monkeypatch: pytest.MonkeyPatch, point: str) -> None:
    Steps(monkeypatch).crash(point, 0)
    with pytest.raises(Crashed):
        sink.try_run()
    report = sink.run()

    assert report.recovered_run_id
    assert sorted(row["n"] for row in sink.rows()) == list(range(10))
