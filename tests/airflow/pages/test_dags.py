"""The DAGs that users copy, on a real broker and a real S3 server, through a real driver with Spark."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import Asset

from airflow_connect.cli.demo.bucket import count_objects
from airflow_connect.cli.demo.meetups import PARTITIONS, rsvps
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.devstack.topic_data import write_records
from tests.airflow.conftest import DAGS, LoadDag
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
RECORDS, BOUND = 600, 200


@pytest.fixture
def kafka_to_s3(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Callable[..., Any]]:
    """Run dags/kafka_to_s3.py with a name, a topic and a bucket of its own."""
    topic = make_topic(PARTITIONS)
    write_records(kafka.bootstrap, topic, rsvps(RECORDS, time.time_ns() // 1_000_000))
    config = json.loads((PROJECT / "dags/meetups-to-s3.json").read_text())
    config.update({"name": f"{topic}-to-s3", "topics": topic, "s3.bucket.name": bucket})
    path = Path(shutil.copy(PROJECT / "dags/meetups-to-s3.json", DAGS))
    path.write_text(json.dumps(config))
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    extra = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
    aws = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "extra": extra}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", json.dumps(aws))

    def run(conf: dict[str, Any] | None = None) -> Any:
        # A fresh DAG for each run: Airflow keeps the conf of a run in the params of the DAG object.
        dag = load_dag((PROJECT / "dags/kafka_to_s3.py").read_text())
        dag.get_task("copy_meetups").retries = 0  # a failure shall show at once
        return dag.test(logical_date=None, run_conf=conf)

    yield run
    path.unlink()


def test_kafka_to_s3_bounded_by_the_trigger_form_goes_on_later_and_copies_every_record_once(
    kafka_to_s3: Callable[..., Any],
    s3: S3Server,
    bucket: str,
    xcom: Callable[..., Any],
    without_spark: Callable[[], None],
) -> None:
    first = kafka_to_s3({"run.max.records": BOUND})
    assert first.state == "success"
    assert xcom(first, "copy_meetups")["records"] == BOUND
    without_spark()
    second = kafka_to_s3()
    assert xcom(second, "copy_meetups")["records"] == RECORDS - BOUND
    objects = count_objects(s3.client(), bucket)
    assert sum(found.records for found in objects) == RECORDS

    third = kafka_to_s3()
    summary = xcom(third, "copy_meetups")
    assert (summary["status"], summary["records"]) == ("empty", 0)
    assert count_objects(s3.client(), bucket) == objects


def test_kafka_to_hdfs_copies_every_record_once(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    hdfs: HdfsCluster,
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    xcom: Callable[..., Any],
) -> None:
    topic = make_topic(PARTITIONS)
    write_records(kafka.bootstrap, topic, rsvps(RECORDS, time.time_ns() // 1_000_000))
    config = json.loads((PROJECT / "dags/meetups-to-hdfs.json").read_text())
    base = f"{hdfs.url}/{topic}"
    config.update({"name": f"{topic}-to-hdfs", "topics": topic, "store.url": base})
    path = DAGS / "meetups-to-hdfs.json"
    path.write_text(json.dumps(config))
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    dag = load_dag((PROJECT / "dags/kafka_to_hdfs.py").read_text())
    dag.get_task("copy_meetups").retries = 0  # a failure shall show at once
    run = dag.test(logical_date=None)
    path.unlink()
    assert run.state == "success"
    assert xcom(run, "copy_meetups")["records"] == RECORDS
    files = hdfs_files.visible_files(base)
    assert sum(len(data.splitlines()) for data in files.values()) == RECORDS
    assert {name.split("/")[1] for name in files} == {topic}


def test_all_dags_in_one_folder_give_each_asset_one_name(airflow_home: Path) -> None:
    """Airflow would let a task fail whose asset has lost its URI to another name, whichever came first."""
    bag = DagBag(dag_folder=PROJECT / "dags")
    assert bag.import_errors == {}
    tasks = [task for dag in bag.dags.values() for task in dag.tasks]
    assets = [asset for task in tasks for asset in (*task.inlets, *task.outlets) if isinstance(asset, Asset)]
    names = {asset.uri: {other.name for other in assets if other.uri == asset.uri} for asset in assets}
    assert {uri: found for uri, found in names.items() if len(found) > 1} == {}
    uris = {asset.name: {other.uri for other in assets if other.name == asset.name} for asset in assets}
    assert {name: found for name, found in uris.items() if len(found) > 1} == {}
