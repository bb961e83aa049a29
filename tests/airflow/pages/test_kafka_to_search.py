"""dags/kafka_to_search.py, on a real broker and a real OpenSearch, through a real driver with Spark."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.airflow.conftest import DAGS, LoadDag
from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.search_sink import documents
from tests.support.kafka_data import TopicProducer

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
CLICKS = [{"user": n % 7, "page": f"/{n}"} for n in range(100)]


# It starts a driver with Spark.
@pytest.mark.budget(20)
def test_search_dag_indexes_every_record_once(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    opensearch: OpenSearchServer,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    without_spark: Callable[[], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic(2)
    produce(topic, [(n % 2, str(n), json.dumps(click), 1_000 + n, []) for n, click in enumerate(CLICKS)])
    config = json.loads((PROJECT / "dags/clicks-to-search.json").read_text())
    path = DAGS / "clicks-to-search.json"
    path.write_text(json.dumps(config | {"name": f"{topic}-to-search", "topics": topic}))
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1", "spark.master": "local[2]"}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps({"conn_type": "kafka", "extra": extra}))
    search = {"conn_type": "http", "login": "me", "password": "open-sesame", "extra": {"url": opensearch.url}}
    monkeypatch.setenv("AIRFLOW_CONN_SEARCH_DEFAULT", json.dumps(search))

    states = []
    for _ in range(2):
        dag = load_dag((PROJECT / "dags/kafka_to_search.py").read_text())
        dag.get_task("copy_clicks").retries = 0  # a failure shall show at once
        states.append(dag.test(logical_date=None).state)
        without_spark()  # the second run finds nothing
    path.unlink()

    assert states == ["success", "success"]
    wanted = {f"{topic}+{n % 2}+{n // 2}": click for n, click in enumerate(CLICKS)}
    assert documents(opensearch, topic) == wanted
