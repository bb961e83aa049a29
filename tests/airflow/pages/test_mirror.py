"""dags/mirror.py, between two real clusters, through a real driver with Spark."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing.topics import Topics
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.kafka_data import create_topic, produce

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]


# It starts a driver with Spark.
@pytest.mark.budget(20)
def test_mirror_dag_copies_topics_of_the_other_cluster(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    upstream_kafka: KafkaBroker,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    create_topic(upstream_kafka.bootstrap, unique_name, 2)
    produce(upstream_kafka.bootstrap, unique_name, [(n % 2, str(n), f"value {n}") for n in range(100)])
    config = json.loads((PROJECT / "dags/west-to-east.json").read_text())
    config |= {"name": unique_name, "topics": unique_name, "replication.factor": "1"}
    config |= {"offset-syncs.topic.replication.factor": "1", "heartbeats.replication.enabled": "false"}
    config |= {f"{cluster}.cluster.bootstrap.servers": server.bootstrap for cluster, server in
               (("source", upstream_kafka), ("target", kafka))}  # fmt: skip
    path = DAGS / "west-to-east.json"
    path.write_text(json.dumps(config))
    one_broker = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}
    extra = {"bootstrap.servers": kafka.bootstrap, "spark.master": "local[2]", **one_broker}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    dag = load_dag((PROJECT / "dags/mirror.py").read_text())
    dag.get_task("west_to_east").retries = 0  # a failure shall show at once

    run = dag.test(logical_date=None)
    path.unlink()

    assert run.state == "success"
    copies = {(m.partition(), m.key(), m.value()) for m in Topics(kafka.bootstrap).read(f"west.{unique_name}")}
    assert copies == {(n % 2, b"%d" % n, b"value %d" % n) for n in range(100)}
