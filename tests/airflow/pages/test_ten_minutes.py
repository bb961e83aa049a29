"""docs/how-to/ten-minutes-from-a-connect-cluster.md as it is, from a real Kafka Connect worker to Airflow and back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.integration.connect_handover.stand_in import WorkerWithS3
from tests.support.command_line import Done, run_command
from tests.support.kept_dags import forget_dag, keep_dag
from tests.support.waiting import wait_until

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PAGE = (Path(__file__).parents[3] / "docs/how-to/ten-minutes-from-a-connect-cluster.md").read_text()
BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
HANDOVER_S = 90.0


def block(language: str, word: str) -> str:
    """The block of the page that has this word."""
    every = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    return next(found for found in every if word in found)


@pytest.fixture
def cluster(kafka: KafkaBroker, unique_name: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WorkerWithS3]:
    """A cluster with an S3 sink, at the address that the page exports."""
    topics = {f"{kind}.storage.topic": f"{unique_name}-{kind}" for kind in ("config", "offset", "status")}
    fast = {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    with WorkerWithS3.start(kafka.bootstrap, unique_name, {**topics, **fast}) as worker:
        monkeypatch.setenv("AIRFLOW_CONNECT_URL", worker.url)
        yield worker


@pytest.mark.budget(60)  # Kafka Connect starts, and starts and stops a connector twice; Spark; Airflow
def test_connector_moves_from_a_cluster_to_a_dag_and_back_with_each_record_once(
    airflow_home: Path, cluster: WorkerWithS3, kafka: KafkaBroker, s3: S3Server, bucket: str,
    make_topic: Callable[..., str], produce: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
):  # fmt: skip
    topic = make_topic(2)
    name = f"{topic}-to-s3"
    made = [0]

    def ours(text: str) -> str:
        return text.replace("orders-to-s3", name)

    def more(count: int) -> None:
        produce(topic, [(n % 2, None, b'{"order":%d}' % n, 0, []) for n in range(made[0], made[0] + count)])
        made[0] += count

    def run(word: str, *more: str | Path) -> Done:
        """The command of the page that has this word."""
        (line,) = [line for line in PAGE.splitlines() if line.startswith("airflow-connect ") and word in line]
        argv = ours(line.partition(" > ")[0]).split()[1:]
        places = {"worker.properties": tmp_path / "worker.properties", f"~/airflow/dags/{name}.json": file}
        return run_command(*[places.get(each, each) for each in argv], *more)

    file = tmp_path / f"{name}.json"
    (tmp_path / "worker.properties").write_text(f"bootstrap.servers={kafka.bootstrap}\n")
    more(25)
    cluster.rest.create(name, {
        "connector.class": "io.confluent.connect.s3.S3SinkConnector", "tasks.max": "2", "topics": topic,
        "key.converter": BYTES, "value.converter": BYTES, "s3.bucket.name": bucket, "s3.region": s3.region,
        "store.url": s3.endpoint_url, "aws.access.key.id": s3.access_key, "aws.secret.access.key": s3.secret_key,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage", "flush.size": "10",
        "format.class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
    })  # fmt: skip
    wait_until(lambda: committed(cluster, name) == [10, 10], "the cluster's offsets", HANDOVER_S, every_s=0.2)

    assert ours("orders-to-s3  sink  RUNNING") in run("connectors list").out
    taken = json.loads(run("connectors get").out)
    hidden = {key for key, value in taken.items() if value == "[hidden]"}
    assert hidden == {"aws.access.key.id", "aws.secret.access.key"}
    file.write_text(json.dumps(taken))
    assert "[hidden]" in run("validate").out  # What the page says must be done.
    file.write_text(json.dumps({key: value for key, value in taken.items() if key not in hidden}))
    assert run("validate").out.replace(f"{tmp_path}/", "") == ours(block("text", "✓"))

    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", _connection("kafka", **{"bootstrap.servers": kafka.bootstrap}))
    aws = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
    monkeypatch.setenv("AIRFLOW_CONN_AWS_DEFAULT", _connection("aws", s3.access_key, s3.secret_key, **aws))
    monkeypatch.setenv("AIRFLOW_CONN_SPARK_DEFAULT", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    assert _run_dag(tmp_path, ours(block("python", "ConnectorOperator"))) == "failed"  # The cluster runs it.
    assert committed(cluster, name) == [10, 10]

    run("connectors stop")
    wait_until(lambda: cluster.rest.status(name)["tasks"] == [], "its tasks to stop", HANDOVER_S, every_s=0.2)
    told = run("connectors status").out.replace(cluster.url.removeprefix("http://"), "connect:8083")
    assert told == ours(block("text", "STOPPED"))
    planned = run("plan")
    table = ours(block("text", "START")).replace("  orders ", f"  {topic} ")
    assert planned.out.split()[: len(table.split())] == table.split()  # Columns are as wide as the topic's name.
    assert "The 20 offsets before them that Kafka still holds are not copied." in planned.out
    assert _run_dag(tmp_path, ours(block("python", "ConnectorOperator"))) == "success"
    assert orders(s3, bucket, topic) == list(range(25))

    more(43)  # 21 and 22: the cluster leaves what does not fill an object in Kafka.
    run("connectors resume")
    wait_until(lambda: len(orders(s3, bucket, topic)) == 65, "the cluster's objects", HANDOVER_S, every_s=0.2)
    assert len(set(orders(s3, bucket, topic))) == 65
    run("connectors stop")
    wait_until(lambda: cluster.rest.status(name)["tasks"] == [], "its tasks to stop", HANDOVER_S, every_s=0.2)
    assert _run_dag(tmp_path, ours(block("python", "ConnectorOperator"))) == "success"
    assert orders(s3, bucket, topic) == list(range(68))
    assert "add --yes" in run("connectors delete").err
    run("connectors delete", "--yes")
    wait_until(lambda: name not in cluster.rest.names(), "the connector to be gone", HANDOVER_S, every_s=0.2)
    forget_dag("copy_orders")


def _connection(kind: str, login: str | None = None, password: str | None = None, **extra: str) -> str:
    return json.dumps({"conn_type": kind, "login": login, "password": password, "extra": extra})


def _run_dag(folder: Path, source: str) -> str:
    """One run of the page's DAG, without its retries."""
    from airflow.dag_processing.dagbag import DagBag

    keep_dag(folder, source.replace("retries=3", "retries=0"))
    (dag,) = DagBag(str(folder)).dags.values()
    return str(dag.test(logical_date=None).state)


def committed(cluster: WorkerWithS3, name: str) -> list[int]:
    """Offsets of the group as the cluster tells them."""
    return [entry["offset"]["kafka_offset"] for entry in cluster.rest.offsets(name)]


def orders(s3: S3Server, bucket: str, topic: str) -> list[int]:
    """Numbers of all records in the bucket, sorted; every object lies where the cluster puts it."""
    client = s3.client()
    listed = client.list_objects_v2(Bucket=bucket).get("Contents", [])
    place = re.compile(rf"topics/{topic}/partition=(\d)/{topic}\+\1\+\d{{10}}\.bin")
    keys = [one["Key"] for one in listed if place.fullmatch(one["Key"])]
    lines = [line for key in keys for line in client.get_object(Bucket=bucket, Key=key)["Body"].read().splitlines()]
    return sorted(json.loads(line)["order"] for line in lines)
