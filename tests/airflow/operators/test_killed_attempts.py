"""Attempts of a task whose driver is killed at a step of its run, on a real broker: what the next one tells."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.runtime import crash_points
from tests.airflow.conftest import LoadDag
from tests.support.copies.local import LocalSink, local_sink
from tests.support.copies.s3 import numbered
from tests.support.processes.drivers import without_spark_env
from tests.support.servers.driver_service import DriverServiceProcess

pytestmark = pytest.mark.integration

DAG_FILE = """
from datetime import timedelta
from airflow.sdk import DAG, Asset
from airflow_connect.notifications.connector import ConnectorNotifier
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(
        task_id="copy",
        config={config!r},
        worker={worker!r},
        kafka_conn_id=None,
        retries=1,
        retry_delay=timedelta(0),
        add_assets=False,
        outlets=[Asset({dag_id!r}, "s3://bucket/{dag_id}")],
        on_success_callback=ConnectorNotifier(lambda text: print("TOLD", text), only_if_records=True),
        {more}
    )
"""
RECORDS, VALUES = numbered(0, 20, 2)


@pytest.fixture
def sink(kafka: KafkaBroker, make_topic: Callable[..., str], produce: Any, tmp_path: Path) -> LocalSink:
    topic = make_topic(partitions=2)
    produce(topic, RECORDS)
    return local_sink(kafka, tmp_path / "files", topic)


def source(sink: LocalSink, unique_name: str, more: str = "") -> str:
    return DAG_FILE.format(dag_id=unique_name, config=sink.connector(), worker=sink.worker(), more=more)


def test_attempt_that_finishes_the_run_of_a_killed_one_tells_its_counts(
    sink: LocalSink,
    load_dag: LoadDag,
    unique_name: str,
    xcom: Callable[..., Any],
    without_spark: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    def only_once(event: Any) -> None:
        monkeypatch.delenv(crash_points.VARIABLE, raising=False)

    without_spark()
    monkeypatch.setenv(crash_points.VARIABLE, crash_points.MANIFEST_WRITTEN)
    monkeypatch.setattr(ConnectorOperator, "listeners", [only_once])
    run = load_dag(source(sink, unique_name)).test(logical_date=None)

    assert (run.state, run.get_task_instance("copy").try_number) == ("success", 2)
    offsets = {f"{sink.topic}-0": 10, f"{sink.topic}-1": 10}
    summary = xcom(run, "copy")
    assert (summary["status"], summary["records"], summary["offsets"]) == ("empty", 0, offsets)
    assert (summary["recovered_records"], summary["recovered_files"]) == (20, 2)
    with create_session() as session:
        extra = dict(session.query(AssetEvent).filter_by(source_run_id=run.run_id).one().extra)
    assert extra == {"records": 20, "files": 2, "dead_lettered": 0, "offsets": offsets, "run_id": summary["run_id"]}
    printed = "".join(capfd.readouterr())
    assert "nothing to copy" in printed and "was finished first: 20 records in 2 files." in printed
    assert f"run {summary['recovered_run_id']} was finished first: 20 records" in printed.partition("TOLD")[2]
    sink.assert_exactly_once(VALUES)


def test_run_at_a_service_that_dies_when_it_has_committed_succeeds(
    sink: LocalSink, load_dag: LoadDag, unique_name: str, xcom: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    env = {**without_spark_env(), crash_points.VARIABLE: crash_points.COMMITTED}
    with DriverServiceProcess("--lease", "120", env=env) as service:
        monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(service.connection()))
        more = 'driver_conn_id="our_driver", deferrable=True, poll_interval=0.2'
        run = load_dag(source(sink, unique_name, more)).test(logical_date=None)

    assert (run.state, run.get_task_instance("copy").try_number) == ("success", 1)
    summary = xcom(run, "copy")
    assert (summary["status"], summary["records"], summary["files"]) == ("done", 20, 2)
    sink.assert_exactly_once(VALUES)
