"""dags/kafka_to_files.py, on a real broker, through a real driver with Spark; and lines in the log of a task."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.cli.demo.meetups import PARTITIONS, rsvps
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.topic_data import write_records
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.spec import RunSpec
from tests.airflow.conftest import DAGS, LoadDag

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
RECORDS = 1_000


@pytest.fixture
def topic(kafka: KafkaBroker, make_topic: Callable[..., str]) -> str:
    name = make_topic(PARTITIONS)
    write_records(kafka.bootstrap, name, rsvps(RECORDS, time.time_ns() // 1_000_000))
    return name


def test_kafka_to_files_copies_every_record_once(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    topic: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    xcom: Callable[..., Any],
) -> None:
    config = json.loads((PROJECT / "dags/meetups-to-files.json").read_text())
    config.update({"name": f"{topic}-to-files", "topics": topic, "store.url": f"file://{tmp_path}/meetups"})
    path = Path(shutil.copy(PROJECT / "dags/meetups-to-files.json", DAGS))
    path.write_text(json.dumps(config))
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    states = []
    for _ in range(2):
        dag = load_dag((PROJECT / "dags/kafka_to_files.py").read_text())
        dag.get_task("copy_meetups").retries = 0  # a failure shall show at once
        run = dag.test(logical_date=None)
        states.append((run.state, xcom(run, "copy_meetups")["records"]))
    path.unlink()

    assert states == [("success", RECORDS), ("success", 0)]
    files = [found for found in (tmp_path / "meetups").rglob("*") if found.is_file()]
    assert sum(len(found.read_text().splitlines()) for found in files) == RECORDS
    assert all("/date=" in str(found) and found.suffix == ".json" for found in files)


def test_lines_of_a_run_in_a_driver_process_are_in_its_log(kafka: KafkaBroker, topic: str) -> None:
    connector = {"name": f"{topic}-lines", "connector.class": "FileStreamSink", "topics": topic, "tasks.max": "2"}
    worker = {
        "bootstrap.servers": kafka.bootstrap,
        "group.id": "lines",
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
        "runs.storage.replication.factor": "1",
        "spark.master": "local[2]",
    }
    log: list[str] = []
    with DriverProcess(RunSpec(connector, worker), on_log=log.append) as driver:
        events = [event["event"] for event in driver.events()]
        report = driver.wait()

    assert not isinstance(report, int), driver.log_tail
    assert (report.status, report.records, report.delivery_guarantee) == ("done", RECORDS, "at_least_once")
    lines = [json.loads(line) for line in log if line.startswith('{"')]
    assert len(lines) == RECORDS
    assert "end" in events
