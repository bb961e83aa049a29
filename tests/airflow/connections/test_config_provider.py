"""`${airflow:...}`: connections and variables in configurations, and a real run that is watched for secrets."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk import Connection

from airflow_connect.airflow.config_provider import AirflowConfigProvider
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.errors import ConfigError
from airflow_connect.operators.connector import ConnectorOperator
from airflow_connect.runtime.driver.process_tree import processes_of
from tests.airflow.conftest import LoadDag
from tests.support.kafka_data import TopicProducer

SECRET = "open-sesame-22"
CONNECTION = Connection(
    conn_id="s3",
    conn_type="aws",
    host="store",
    port=9000,
    login="me",
    password=SECRET,
    extra=json.dumps({"region": "eu", "a.b": "dotted", "inner": {"n": 3, "list": [1]}}),
)


def provider(variables: dict[str, str] | None = None) -> AirflowConfigProvider:
    return AirflowConfigProvider(lambda conn_id: CONNECTION, (variables or {}).get)


def test_fields_of_a_connection_are_given_as_text() -> None:
    keys = ["host", "port", "login", "password", "conn_type", "extra.region", "extra.a.b", "extra.inner.n",
            "extra.inner.list", "extra.missing", "extra.region.x", "schema"]  # fmt: skip
    assert provider().get("s3", keys) == {
        "host": "store", "port": "9000", "login": "me", "password": SECRET, "conn_type": "aws",
        "extra.region": "eu", "extra.a.b": "dotted", "extra.inner.n": "3", "extra.inner.list": "[1]",
    }  # fmt: skip
    assert SECRET in provider().get("s3", ["uri"])["uri"]
    assert json.loads(provider().get("s3", ["extra"])["extra"])["region"] == "eu"


def test_variables_are_under_a_path_of_their_own() -> None:
    assert provider({"bucket": "b", "a:b": "colon"}).get("var", ["bucket", "a:b", "missing"]) == {
        "bucket": "b",
        "a:b": "colon",
    }


@pytest.mark.parametrize(
    ("path", "key", "text"), [("", "x", "names no connection"), ("s3", "passwort", "no field called 'passwort'")]
)
def test_reference_that_cannot_be_meant_is_refused(path: str, key: str, text: str) -> None:
    with pytest.raises(ConfigError, match=text) as caught:
        provider().get(path, [key])
    assert "airflow:" in caught.value.suggestion or "password" in caught.value.suggestion
    assert SECRET not in str(caught.value)


def test_settings_are_refused() -> None:
    with pytest.raises(ConfigError, match="no settings"):
        provider().configure({"x": "y"})


DAG_FILE = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    ConnectorOperator(task_id="copy", config={config!r}, worker={worker!r}, kafka_conn_id=None, retries=0)
"""


@pytest.fixture
def copy(
    load_dag: LoadDag,
    kafka: KafkaBroker,
    s3: S3Server,
    bucket: str,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    monkeypatch: pytest.MonkeyPatch,
    unique_name: str,
) -> Callable[..., Any]:
    """Run a DAG that copies ten records, whose bucket, keys and brokers are in Airflow."""
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"n": n})) for n in range(10)])
    aws = {"conn_type": "aws", "login": s3.access_key, "password": s3.secret_key, "host": s3.endpoint_url}
    monkeypatch.setenv("AIRFLOW_CONN_THE_STORE", json.dumps(aws))
    monkeypatch.setenv("AIRFLOW_VAR_THE_BUCKET", bucket)
    monkeypatch.setenv("AIRFLOW_VAR_THE_BROKERS", kafka.bootstrap)
    config = {
        "name": unique_name,
        "connector.class": "io.confluent.connect.s3.S3SinkConnector",
        "topics": topic,
        "s3.bucket.name": "${airflow:var:the_bucket}",
        "s3.region": s3.region,
        "store.url": "${airflow:the_store:host}",
        "aws.access.key.id": "${airflow:the_store:login}",
        "aws.secret.access.key": "${airflow:the_store:password}",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "flush.size": "100",
    }
    worker = {
        "bootstrap.servers": "${airflow:var:the_brokers}",
        "runs.storage.replication.factor": "1",
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "spark.master": "local[1]",
    }

    def run(**changes: str) -> Any:
        changed = {**config, **{key.replace("_", "."): value for key, value in changes.items()}}
        source = DAG_FILE.format(dag_id=f"{unique_name}_{len(changes)}", config=changed, worker=worker)
        return load_dag(source).test(logical_date=None)

    return run


class Watcher:
    """Looks at the command lines and environments of a run's processes, at every event of the run."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from airflow_connect.operators import connector

        self.events: list[Any] = []
        self.tokens: list[str] = []
        self.seen: set[bytes] = set()
        made = connector.DriverProcess

        def make(*args: Any, **more: Any) -> Any:
            driver = made(*args, **more)
            self.tokens.append(driver.token)
            return driver

        monkeypatch.setattr(connector, "DriverProcess", make)

    def __call__(self, event: Any) -> None:
        self.events.append(event)
        for pid in [pid for token in self.tokens for pid in processes_of(token)]:
            try:
                self.seen.add(Path(f"/proc/{pid}/cmdline").read_bytes())
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has just ended


@pytest.mark.integration
@pytest.mark.usefixtures("spark_classes")
def test_run_with_references_copies_and_shows_no_value_anywhere(
    copy: Callable[..., Any],
    s3: S3Server,
    bucket: str,
    kafka: KafkaBroker,
    xcom: Callable[..., Any],
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    watcher = Watcher(monkeypatch)
    ConnectorOperator.listeners.append(watcher)
    try:
        dag_run = copy()
    finally:
        ConnectorOperator.listeners.remove(watcher)

    assert dag_run.state == "success"
    assert xcom(dag_run, "copy")["records"] == 10
    rendered = RenderedTaskInstanceFields.get_templated_fields(dag_run.get_task_instance("copy"))
    assert rendered["config"]["aws.secret.access.key"] == "***"  # Airflow hides what is called secret
    assert rendered["config"]["store.url"] == "${airflow:the_store:host}"
    assert rendered["worker"]["bootstrap.servers"] == "${airflow:var:the_brokers}"
    assert len(watcher.seen) >= 2  # driver and JVM
    printed = "".join(capfd.readouterr())
    assert "10 records in 1 file" in printed
    shown = [
        json.dumps(rendered), json.dumps(xcom(dag_run, "copy")), json.dumps(watcher.events, default=str), printed,
        repr(watcher.seen),
    ]  # fmt: skip
    assert [text for text in shown if s3.secret_key in text] == []
    assert s3.client().list_objects_v2(Bucket=bucket)["KeyCount"] == 1


@pytest.mark.integration
def test_run_with_a_reference_that_leads_nowhere_fails_with_key_and_reference(
    copy: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    dag_run = copy(aws_access_key_id="${airflow:var:not_there}")
    printed = "".join(capfd.readouterr())
    assert dag_run.state == "failed"
    assert "Configuration aws.access.key.id refers to ${airflow:var:not_there}" in printed
