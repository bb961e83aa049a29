"""A connector as plan and copy: a real broker for the plan, and a scripted driver that tells what it got."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.operators.connector import ConnectorOperator
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.copies.local import LocalSink, local_sink
from tests.support.copies.s3 import numbered

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("scripted_driver")]

PAGE = (Path(__file__).parents[3] / "docs/how-to/approve-a-copy.md").read_text()
(DAG_OF_THE_PAGE,) = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

GROUP = """
from airflow.sdk import DAG
from airflow_connect.operators.connector import run_params
from airflow_connect.operators.task_group import ConnectorPlanOperator, ConnectorTaskGroup

CONNECTOR = {{"config": {config!r}, "worker": {worker!r}, "kafka_conn_id": None}}
with DAG({dag_id!r}, schedule=None, params=run_params()):
    ConnectorTaskGroup("orders", {more}retries=0, **CONNECTOR)
"""


@pytest.fixture
def sink(kafka: KafkaBroker, make_topic: Callable[..., str], produce: Any, tmp_path: Path) -> LocalSink:
    """A connector with 10 records to copy in each of two partitions."""
    topic = make_topic(partitions=2)
    produce(topic, numbered(0, 20, 2)[0])
    return local_sink(kafka, tmp_path / "files", topic, fake="echo")


@pytest.fixture
def told() -> Any:
    """Every event that drivers sent during the test."""
    heard: list[dict[str, Any]] = []
    ConnectorOperator.listeners.append(heard.append)
    yield heard
    ConnectorOperator.listeners.remove(heard.append)


def source(sink: LocalSink, unique_name: str, more: str = "", **changes: Any) -> str:
    config = {**sink.connector(), **changes}
    return GROUP.format(dag_id=unique_name, config=config, worker=sink.worker(), more=more)


def test_copy_is_bound_to_the_offsets_of_the_plan(
    sink: LocalSink, load_dag: LoadDag, unique_name: str, xcom: Callable[..., Any], told: list[dict[str, Any]]
) -> None:
    run = load_dag(source(sink, unique_name)).test(logical_date=None, run_conf={"run.max.records": 6})

    plan = xcom(run, "orders.plan")
    assert plan["records"] == 6
    assert "Up to 6 records of 2 partitions in 2 tasks." in plan["text"]
    assert plan["text"].splitlines()[:2] == [
        "| TOPIC | PARTITION | START | END | RECORDS | TASK |",
        "| :--- | ---: | ---: | ---: | ---: | ---: |",
    ]
    assert run.state == "success"
    (seen,) = [event["seen"] for event in told if event["event"] == "warning"]
    assert seen["bounds"]["ranges"] == [[sink.topic, 0, 0, 3], [sink.topic, 1, 0, 3]]
    assert sink.offsets() == {}
    assert len(json.dumps(plan)) < 1000


def test_plan_without_records_needs_no_approval(
    sink: LocalSink, load_dag: LoadDag, unique_name: str, told: list[dict[str, Any]]
) -> None:
    sink.run()
    run = load_dag(source(sink, unique_name, "approval=True, ")).test(logical_date=None)

    states = {instance.task_id: instance.state for instance in run.get_task_instances()}
    assert states == {"orders.plan": "success", "orders.approve": "skipped", "orders.copy": "success"}
    (seen,) = [event["seen"] for event in told if event["event"] == "warning"]
    assert seen["bounds"]["ranges"] == []


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"connector.class": "FileStreamSource", "file": "/x", "topic": "t"}, "is a source, and only runs of sinks"),
        ({"topics": "missing-topic"}, "missing-topic"),
    ],
)
def test_plan_that_cannot_be_made_fails_without_a_retry(
    sink: LocalSink,
    load_dag: LoadDag,
    unique_name: str,
    capfd: pytest.CaptureFixture[str],
    changes: dict[str, str],
    words: str,
) -> None:
    dag = load_dag(source(sink, unique_name, **changes))
    dag.get_task("orders.plan").retries = 2
    run = dag.test(logical_date=None)

    instance = run.get_task_instance("orders.plan")
    assert (instance.state, instance.try_number) == ("failed", 1)
    assert words in "".join(capfd.readouterr())


def test_plan_of_another_connector_is_refused(
    sink: LocalSink, load_dag: LoadDag, unique_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    dag = load_dag(source(sink, unique_name))
    plan = dag.get_task("orders.plan")
    assert (plan.inlets, plan.outlets, plan.operator_extra_links) == ([], [], ())
    found = plan.get_openlineage_facets_on_start()
    assert (found.inputs, found.outputs) == ([], [])
    dag.get_task("orders.copy").config = {**sink.connector(), "name": "another"}
    assert dag.test(logical_date=None).state == "failed"
    assert f"The plan is of connector '{sink.name}', and the task runs connector 'another'" in "".join(
        capfd.readouterr()
    )


BRANCH = """
    @task.branch
    def choose():
        return "other"

    EmptyOperator(task_id="other")
    choose() >> [dag.get_task("other"), group]
"""


@pytest.mark.parametrize("more", ["", "approval=True, "], ids=["plan", "approval"])
def test_group_on_a_branch_that_is_not_taken_copies_nothing(
    sink: LocalSink, load_dag: LoadDag, unique_name: str, told: list[dict[str, Any]], more: str
) -> None:
    imports = "from airflow.sdk import task\nfrom airflow.providers.standard.operators.empty import EmptyOperator\n"
    text = source(sink, unique_name, more).replace("    ConnectorTaskGroup(", "    group = ConnectorTaskGroup(")
    run = load_dag(imports + text.replace("params=run_params()):", "params=run_params()) as dag:") + BRANCH).test(
        logical_date=None
    )
    states = {instance.task_id: instance.state for instance in run.get_task_instances()}
    assert {state for name, state in states.items() if name.startswith("orders.")} == {"skipped"}
    assert told == []


@pytest.mark.parametrize(
    ("plan", "words"),
    [
        ("{{ ti.xcom_pull(task_ids='nobody') }}", "got a str instead"),
        ("{{ none }}", "got none instead"),
    ],
)
def test_copy_that_gets_no_plan_is_not_a_copy_without_bounds(
    sink: LocalSink,
    load_dag: LoadDag,
    unique_name: str,
    told: list[dict[str, Any]],
    capfd: pytest.CaptureFixture[str],
    plan: str,
    words: str,
) -> None:
    text = source(sink, unique_name)
    if words == "got none instead":
        text = text.replace("schedule=None", "schedule=None, render_template_as_native_obj=True")
    dag = load_dag(text)
    copy = dag.get_task("orders.copy")
    copy.plan, copy.retries = plan, 1
    run = dag.test(logical_date=None)
    instance = run.get_task_instance("orders.copy")
    assert (instance.state, instance.try_number) == ("failed", 1)
    assert f"The task is bound to a plan, and {words}" in "".join(capfd.readouterr())
    assert told == []


def test_approval_without_the_standard_provider_says_what_to_install(
    sink: LocalSink, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    from airflow.sdk import DAG

    from airflow_connect.errors import MissingPackageError
    from airflow_connect.operators.task_group import ConnectorTaskGroup

    monkeypatch.setitem(sys.modules, "airflow.providers.standard.operators.hitl", None)
    monkeypatch.delitem(sys.modules, "airflow_connect.operators.approval", raising=False)
    with DAG(unique_name, schedule=None), pytest.raises(MissingPackageError, match="apache-airflow-providers-standard"):
        ConnectorTaskGroup("orders", approval=True, config=sink.connector())


def test_dag_of_the_page_plans_before_it_asks(
    sink: LocalSink, load_dag: LoadDag, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink.run()  # nothing is left, so nobody is asked
    path = DAGS / "meetups-to-files.json"
    path.write_text(json.dumps(sink.connector()))
    kafka = {"conn_type": "kafka", "extra": sink.worker()}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    try:
        dag = load_dag(DAG_OF_THE_PAGE)
        assert dag.get_task("meetups.approve").subject == "Copy yesterday's meetups?"
        assert dag.test(logical_date=None).state == "success"
    finally:
        path.unlink()
