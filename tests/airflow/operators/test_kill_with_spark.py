"""A driver with a real JVM and real Python workers is killed in the middle of its copy."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.cli.demo.bucket import count_objects
from airflow_connect.cli.demo.meetups import PARTITIONS, rsvps
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.devstack.topic_data import write_records
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver.process_tree import processes_of
from airflow_connect.runtime.spec import RunSpec
from tests.support.kafka_data import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
RECORDS = 20_000
DRIVER_JVM_AND_DAEMON = 3


@pytest.fixture
def spec(kafka: KafkaBroker, s3: S3Server, bucket: str, make_topic: Callable[..., str]) -> Callable[[], RunSpec]:
    topic = make_topic(PARTITIONS)
    write_records(kafka.bootstrap, topic, rsvps(RECORDS, time.time_ns() // 1_000_000))
    connector = json.loads((PROJECT / "dags/meetups-to-s3.json").read_text())
    connector.update({"name": f"{topic}-to-s3", "topics": topic, "s3.bucket.name": bucket})
    worker = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    aws = {
        "access_key_id": s3.access_key,
        "secret_access_key": s3.secret_key,
        "endpoint_url": s3.endpoint_url,
        "region": s3.region,
    }
    return lambda: RunSpec(connector=connector, worker=worker, aws=aws)


def test_killed_driver_leaves_no_process_and_commits_nothing_and_the_next_run_has_all(
    spec: Callable[[], RunSpec], s3: S3Server, bucket: str
) -> None:
    environment = {"PYTHONPATH": os.pathsep.join([str(PROJECT), os.environ.get("PYTHONPATH", "")])}
    with DriverProcess(spec(), env=environment) as driver:
        next(event for event in driver.events() if event == {**event, "event": "phase", "phase": "copy"})
        wait_until(lambda: len(processes_of(driver.token)) >= DRIVER_JVM_AND_DAEMON, "JVM and Python daemon run", 120)
        driver.kill()
        assert processes_of(driver.token) == []
    assert count_objects(s3.client(), bucket) == []

    with DriverProcess(spec(), env=environment) as driver:
        list(driver.events())
        report = driver.wait()
        assert processes_of(driver.token) == []
    assert isinstance(report, RunReport)
    assert (report.status, report.records) == ("done", RECORDS)
    assert sum(found.records for found in count_objects(s3.client(), bucket)) == RECORDS
