"""The operator inside a real Airflow, with a real driver process whose run is scripted."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.operators.connector import ConnectorOperator
from tests.airflow.conftest import LoadDag
from tests.support.processes.drivers import is_alive
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("scripted_driver")

DAG_FILE = """
from datetime import datetime, timedelta
from airflow.sdk import DAG, Asset
from airflow_connect.operators.connector import ConnectorOperator, run_params

with DAG({dag_id!r}, schedule=None, params=run_params()) as dag:
    ConnectorOperator(
        task_id="copy",
        config={config!r},
        worker={{"bootstrap.servers": "broker:9092", **{worker!r}}},
        retries={retries},
        retry_delay=timedelta(0),
        outlets=[Asset("copied", "s3://bucket/topics/copied")],
        {more}
    )
"""


@pytest.fixture
def dag_of(load_dag: LoadDag, unique_name: str) -> Callable[..., Any]:
    def make(config: dict[str, Any], worker: dict[str, Any] | None = None, retries: int = 0, more: str = "") -> Any:
        config = {"name": "meetups", **config}
        source = DAG_FILE.format(dag_id=unique_name, config=config, worker=worker or {}, retries=retries, more=more)
        return load_dag(source)

    return make


@pytest.fixture
def events() -> Any:
    """Every event that drivers sent during the test."""
    heard: list[dict[str, Any]] = []
    ConnectorOperator.listeners.append(heard.append)
    yield heard
    ConnectorOperator.listeners.remove(heard.append)


def seen(events: list[dict[str, Any]]) -> dict[str, Any]:
    return next(event["seen"] for event in events if event["event"] == "warning")


def tries(dag_run: Any) -> tuple[str, int]:
    instance = dag_run.get_task_instance("copy")
    return str(instance.state), instance.try_number


@pytest.mark.parametrize("logical_date", [None, datetime(2026, 3, 29, tzinfo=UTC)], ids=["none", "dated"])
def test_run_returns_a_small_summary(
    dag_of: Callable[..., Any], xcom: Callable[..., Any], logical_date: datetime | None
) -> None:
    dag_run = dag_of({"fake": "copy"}).test(logical_date=logical_date)
    assert dag_run.state == "success"
    summary = xcom(dag_run, "copy")
    assert summary["records"] == 20
    assert summary["files"] == 2
    assert summary["offsets"] == {"meetups-0": 10, "meetups-1": 10}
    assert len(json.dumps(summary)) < 500


def test_asset_event_carries_counts_and_offsets(dag_of: Callable[..., Any]) -> None:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    dag_run = dag_of({"fake": "copy"}).test(logical_date=None)
    with create_session() as session:
        event = session.query(AssetEvent).filter_by(source_run_id=dag_run.run_id).one()
        extra = dict(event.extra)
    assert extra.pop("run_id")
    assert extra == {"records": 20, "files": 2, "dead_lettered": 0, "offsets": {"meetups-0": 10, "meetups-1": 10}}


def test_progress_and_plan_are_in_the_log(dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    dag_of({"fake": "copy"}).test(logical_date=None)
    printed = "".join(capfd.readouterr())
    assert "TOPIC    PARTITION  START  END  RECORDS  TASK" in printed
    assert "Up to 20 records of 2 partitions in 1 task." in printed
    assert "meetups: 20 records in 2 files, 900 B, 0.50 s, exactly_once." in printed


def test_templates_are_rendered_and_references_of_providers_stay(
    dag_of: Callable[..., Any], events: list[dict[str, Any]]
) -> None:
    config = {
        "fake": "echo",
        "topics": "{{ dag.dag_id }}",
        "store.url": "${env:STORE}",
        "path.format": "'year'=YYYY",
    }
    dag_run = dag_of(config, worker={"ssl.key.password": "${file:/run/secrets:key}"}).test(logical_date=None)
    arrived = seen(events)
    assert arrived["connector"]["topics"] == dag_run.dag_id
    assert arrived["connector"]["store.url"] == "${env:STORE}"
    assert arrived["connector"]["path.format"] == "'year'=YYYY"
    assert arrived["worker"]["ssl.key.password"] == "${file:/run/secrets:key}"


def test_secrets_are_masked_in_rendered_fields_and_log(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    secrets = {
        "sasl.jaas.config": 'org.apache.X required username="u" password="wonder1and";',
        "sasl.password": "opensesame1",
        "schema.registry.url": "https://user:rabbit77hole@registry:8081",
    }
    dag_run = dag_of({"fake": "echo"}, worker=secrets).test(logical_date=None)
    rendered = RenderedTaskInstanceFields.get_templated_fields(dag_run.get_task_instance("copy"))
    printed = "".join(capfd.readouterr())
    assert rendered["worker"]["bootstrap.servers"] == "broker:9092"
    assert "password is [hidden]" in printed
    for secret in ("wonder1and", "opensesame1", "rabbit77hole"):
        assert secret not in json.dumps(rendered)
        assert secret not in printed


def test_key_of_type_password_is_masked_whatever_its_name(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    hidden = "select ssn from patients"
    config = {"fake": "echo", "connector.class": "JdbcSourceConnector", "query.masked": hidden}
    dag_run = dag_of(config).test(logical_date=None)
    rendered = RenderedTaskInstanceFields.get_templated_fields(dag_run.get_task_instance("copy"))
    assert hidden not in json.dumps(rendered) + "".join(capfd.readouterr())
    assert rendered["resolved_config"]["connector"]["query.masked"] in ("[hidden]", "***")


def test_secret_of_digits_is_masked_although_it_is_a_number(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    from airflow.models.renderedtifields import RenderedTaskInstanceFields

    config = {"fake": "echo", "aws.secret.access.key": 9988776655443, "flush.size": 12345}
    dag_run = dag_of(config, worker={"ssl.key.password": 1234567.5}).test(logical_date=None)
    rendered = RenderedTaskInstanceFields.get_templated_fields(dag_run.get_task_instance("copy"))
    text = json.dumps(rendered) + "".join(capfd.readouterr())
    assert "9988776655443" not in text
    assert "1234567.5" not in text
    assert rendered["config"]["flush.size"] == 12345


NATIVE = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None, render_template_as_native_obj=True, params={{"v": "1.10", "many": ["a", "b"]}}):
    ConnectorOperator{mapped}
"""
TEXTS = {"fixed": "1.10", "grouped": "1_000", "pair": "1,2", "power": "1e5", "list": "[1, 2]", "none": "None"}
TEMPLATES = {"number": "{{ params.v }}", "part": "0{{ params.v }}", "lines": "{{ params.many }}", "gone": "{{ none }}"}


@pytest.mark.parametrize("is_mapped", [False, True], ids=["plain", "mapped"])
def test_native_rendering_leaves_text_alone(
    load_dag: LoadDag, unique_name: str, events: list[dict[str, Any]], is_mapped: bool
) -> None:
    config = {"name": "meetups", "fake": "echo", "secret.of.digits.password": "0099887766", **TEXTS, **TEMPLATES}
    worker = {"bootstrap.servers": "broker:9092", "note": "1.10"}
    one = f"(task_id='copy', config={config!r}, worker={worker!r})"
    many = f".partial(task_id='copy', worker={worker!r}).expand(config=[{config!r}])"
    source = NATIVE.format(dag_id=unique_name, mapped=many if is_mapped else one)
    assert load_dag(source).test(logical_date=None).state == "success"
    arrived = seen(events)
    assert {key: arrived["connector"][key] for key in TEXTS} == TEXTS
    assert arrived["connector"]["number"] == "1.10"
    assert arrived["connector"]["part"] == "01.10"
    assert arrived["connector"]["lines"] == ["a", "b"]
    assert arrived["connector"]["gone"] is None
    assert arrived["connector"]["secret.of.digits.password"] == "0099887766"
    assert arrived["worker"]["note"] == "1.10"


def test_params_of_the_trigger_form_bound_the_run(dag_of: Callable[..., Any], xcom: Callable[..., Any]) -> None:
    dag_run = dag_of({"fake": "copy"}).test(logical_date=None, run_conf={"run.max.records": 7})
    assert xcom(dag_run, "copy")["records"] == 7


MIXED_DAG = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator, run_params

WORKER = {{"bootstrap.servers": "broker:9092"}}
SOURCE = {{"connector.class": "FileStreamSource", "file": "/logs/a", "topic": "lines", "fake": "echo"}}
with DAG({dag_id!r}, schedule=None, params=run_params()):
    ConnectorOperator(task_id="lines", config={{"name": "lines", **SOURCE}}, worker=WORKER)
    if {has_sink}:
        ConnectorOperator(task_id="copy", config={{"name": "copy", "fake": "copy"}}, worker=WORKER)
"""


@pytest.mark.parametrize("has_sink", [True, False])
def test_limit_that_only_sinks_have_reaches_a_source_only_when_it_is_alone(
    load_dag: LoadDag, unique_name: str, events: list[dict[str, Any]], has_sink: bool
) -> None:
    """Alone, it is refused by the source's own check: nobody else could be meant."""
    conf = {"run.until.timestamp": "2026-03-29T01:30:00+01:00", "run.max.records": 7}
    load_dag(MIXED_DAG.format(dag_id=unique_name, has_sink=has_sink)).test(logical_date=None, run_conf=conf)
    (source,) = [event["seen"]["connector"] for event in events if event["event"] == "warning"]
    assert source["run.max.records"] == 7
    assert ("run.until.timestamp" in source) is not has_sink


def test_unknown_key_of_the_conf_is_refused_with_the_nearest(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    dag_run = dag_of({"fake": "copy"}, retries=2).test(logical_date=None, run_conf={"run.max.record": 7})
    assert tries(dag_run) == ("failed", 1)
    assert "Did you mean run.max.records?" in "".join(capfd.readouterr())


@pytest.mark.parametrize(
    ("fake", "outcome"),
    [
        ("config", ("failed", 1)),
        ("fenced", ("failed", 1)),
        ("defect", ("failed", 1)),
        ("away", ("failed", 3)),
        ("crash", ("failed", 3)),
    ],
)
def test_only_retriable_errors_are_retried(dag_of: Callable[..., Any], fake: str, outcome: tuple[str, int]) -> None:
    assert tries(dag_of({"fake": fake}, retries=2).test(logical_date=None)) == outcome


def test_fenced_run_says_that_runs_overlapped(dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    dag_of({"fake": "fenced"}).test(logical_date=None)
    assert "Two runs of one connector overlapped" in "".join(capfd.readouterr())


def test_failure_is_told_in_lines_of_its_own(dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]) -> None:
    """Airflow shows the exception too, but its log view cuts long lines off."""
    dag_of({"fake": "config"}).test(logical_date=None)
    printed = "".join(capfd.readouterr())
    for line in ("✗ config.invalid  some.key", "  It went wrong.", "  → Do something."):
        assert line in printed


def test_crash_of_the_driver_shows_the_end_of_its_log(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    dag_of({"fake": "crash"}).test(logical_date=None)
    assert "ended with exit code 52 before it could report" in "".join(capfd.readouterr())


def test_cleared_task_simply_runs_again(dag_of: Callable[..., Any], xcom: Callable[..., Any]) -> None:
    dag = dag_of({"fake": "copy"})
    when = datetime(2026, 5, 1, tzinfo=UTC)
    dag.test(logical_date=when)
    again = dag.test(logical_date=when)  # dag.test clears the run of the same date first
    assert again.state == "success"
    assert xcom(again, "copy")["records"] == 20


def test_connections_reach_the_driver(
    dag_of: Callable[..., Any], events: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka = {"bootstrap.servers": "real:9092", "sasl.password": "opensesame1", "group.id": "somebody-else"}
    monkeypatch.setenv("AIRFLOW_CONN_OUR_KAFKA", json.dumps({"conn_type": "kafka", "extra": kafka}))
    aws = {
        "conn_type": "aws",
        "login": "AKIA",
        "password": "wonderland",
        "extra": {"region_name": "eu-central-1"},
    }
    monkeypatch.setenv("AIRFLOW_CONN_OUR_AWS", json.dumps(aws))
    monkeypatch.setenv("AIRFLOW_CONN_OUR_SPARK", json.dumps({"conn_type": "spark", "host": "local[2]"}))
    more = 'kafka_conn_id="our_kafka", aws_conn_id="our_aws", spark_conn_id="our_spark"'
    dag_run = dag_of({"fake": "echo"}, more=more).test(logical_date=None)
    assert dag_run.state == "success"
    arrived = seen(events)
    assert arrived["worker"] == {
        "bootstrap.servers": "real:9092",
        "sasl.password": "opensesame1",
        "spark.master": "local[2]",
    }
    assert arrived["aws"] == {
        "access_key_id": "AKIA",
        "secret_access_key": "wonderland",
        "region": "eu-central-1",
    }


def test_missing_connection_fails_without_a_retry(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    dag_run = dag_of({"fake": "copy"}, retries=2, more='aws_conn_id="nowhere"').test(logical_date=None)
    assert tries(dag_run) == ("failed", 1)
    assert "Airflow has no connection called 'nowhere'" in "".join(capfd.readouterr())


@pytest.mark.parametrize("value", ['{"conn_type": "aws", "password": "opensesame1"', "aws://u:opensesame1@[::1"])
def test_connection_of_the_environment_that_airflow_cannot_read_is_not_called_missing(
    dag_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], value: str
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_BROKEN", value)
    dag_run = dag_of({"fake": "copy"}, retries=2, more='aws_conn_id="broken"').test(logical_date=None)
    assert tries(dag_run) == ("failed", 1)
    printed = "".join(capfd.readouterr())
    assert "Airflow cannot read connection 'broken' from the environment variable AIRFLOW_CONN_BROKEN" in printed
    assert "opensesame1" not in printed


@pytest.mark.parametrize(
    ("number", "more"),
    [(signal.SIGTERM, ""), (signal.SIGALRM, "execution_timeout=timedelta(hours=1)")],
    ids=["sigterm", "execution_timeout"],
)
def test_killed_task_ends_the_driver_and_fails(
    dag_of: Callable[..., Any], tmp_path: Path, number: signal.Signals, more: str
) -> None:
    """As Airflow does it. SIGTERM: on_kill in the handler, execute() goes on. Timeout: SIGALRM raises in execute()."""
    paths = {name: str(tmp_path / name) for name in ("pids", "stopped", "committed")}
    dag = dag_of({"fake": "hang", **paths}, more=more)
    task = dag.get_task("copy")
    previous = signal.signal(signal.SIGTERM, lambda *_: task.on_kill())

    def pids() -> list[int]:
        file = tmp_path / "pids"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    def kill_when_running() -> None:
        try:
            wait_until(lambda: len(pids()) == 4, "the driver and its children to run")
        finally:  # without it the task would go on for minutes
            os.kill(os.getpid(), number)

    killer = threading.Thread(target=kill_when_running)
    killer.start()
    try:
        dag_run = dag.test(logical_date=None)
    finally:
        killer.join()
        signal.signal(signal.SIGTERM, previous)
    assert len(pids()) == 4
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert not (tmp_path / "committed").exists()
    assert tries(dag_run) == ("failed", 1)


BETWEEN = """
from airflow.sdk import DAG, setup, teardown
from airflow_connect.operators.connector import ConnectorOperator

with DAG({dag_id!r}, schedule=None):
    @setup
    def prepare():
        return "ready"

    @teardown
    def clean():
        return "clean"

    begin, end = prepare(), clean()
    copy = ConnectorOperator(
        task_id="copy", config={{"name": "c", "fake": "config"}}, worker={{"bootstrap.servers": "b:1"}}
    )
    begin >> copy >> end.as_teardown(setups=begin)
"""


def test_teardown_runs_after_a_copy_that_failed_and_the_dag_run_fails(load_dag: LoadDag, unique_name: str) -> None:
    run = load_dag(BETWEEN.format(dag_id=unique_name)).test(logical_date=None)
    states = {instance.task_id: str(instance.state) for instance in run.get_task_instances()}
    assert states == {"prepare": "success", "copy": "failed", "clean": "success"}
    assert run.state == "failed"
