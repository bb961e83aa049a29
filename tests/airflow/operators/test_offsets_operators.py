"""Operators that move offsets and replay, in a real Airflow, on a real broker, and the page about them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.airflow.conftest import DAGS, LoadDag
from tests.support.copies.local import LocalSink, local_sink

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("spark_classes")]

PROJECT = Path(__file__).parents[3]
PAGE = (PROJECT / "docs/how-to/reset-and-replay.md").read_text()
PYTHON = re.findall(r"^```python\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)

ALTERING = """
from airflow.sdk import DAG
from airflow_connect.operators.offsets import ResetOffsetsOperator, SetOffsetsOperator

CONNECTOR = {{"config": {config!r}, "worker": {worker!r}, "kafka_conn_id": None}}
with DAG({dag_id!r}, schedule=None):
    back = SetOffsetsOperator(task_id="back", offsets={offsets!r}, **CONNECTOR)
    back >> ResetOffsetsOperator(task_id="forget", **CONNECTOR)
"""


@pytest.fixture
def copied(kafka: KafkaBroker, make_topic: Callable[..., str], produce: Any, tmp_path: Path) -> LocalSink:
    """A connector that has copied the records 0 to 9, whose times are 1 to 10 seconds."""
    topic = make_topic()
    produce(topic, [(0, None, json.dumps({"n": n}), n * 1000 + 1000) for n in range(10)])
    sink = local_sink(kafka, tmp_path / "files", topic)
    sink.run()
    return sink


def altering(sink: LocalSink, unique_name: str, offsets: Any) -> str:
    return ALTERING.format(dag_id=unique_name, config=sink.connector(), worker=sink.worker(), offsets=offsets)


def test_offsets_are_set_and_reset_by_tasks_that_return_both(
    copied: LocalSink, load_dag: LoadDag, unique_name: str, xcom: Callable[..., Any]
) -> None:
    where = f"{copied.topic}-0"
    run = load_dag(altering(copied, unique_name, {where: "{{ 3 + 1 }}"})).test(logical_date=None)

    assert run.state == "success"
    both = {"connector": copied.name, "altered": 1}
    assert xcom(run, "back") == {**both, "before": {where: 10}, "after": {where: 4}}
    assert xcom(run, "forget") == {**both, "before": {where: 4}, "after": {where: None}}
    assert copied.offsets() == {}


def test_wrong_position_fails_without_a_retry_and_names_the_partition(
    copied: LocalSink, load_dag: LoadDag, unique_name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    dag = load_dag(altering(copied, unique_name, {f"{copied.topic}-0": 11}))
    dag.get_task("back").retries = 2
    run = dag.test(logical_date=None)

    instance = run.get_task_instance("back")
    assert (instance.state, instance.try_number) == ("failed", 1)
    assert f"Offset 11 of {copied.topic}-0 is outside the log, which holds [0, 10)" in "".join(capfd.readouterr())


EMPTY = """
from airflow.sdk import DAG, Param, TriggerRule
from airflow_connect.operators.offsets import ResetOffsetsOperator, SetOffsetsOperator

CONNECTOR = {{"config": {config!r}, "worker": {worker!r}, "kafka_conn_id": None, "trigger_rule": TriggerRule.ALL_DONE}}
with DAG({dag_id!r}, schedule=None, render_template_as_native_obj={native}, params={{"where": Param(None)}}):
    one = SetOffsetsOperator(task_id="one", offsets="{{{{ params.where }}}}", **CONNECTOR)
    each = SetOffsetsOperator(task_id="each", offsets={{"{topic}-0": "{{{{ params.where }}}}"}}, **CONNECTOR)
    some = ResetOffsetsOperator(task_id="some", partitions="{{{{ params.where }}}}", **CONNECTOR)
    none = ResetOffsetsOperator(task_id="none", partitions="{{{{ [] }}}}", **CONNECTOR)
    one >> each >> some >> none
"""


@pytest.mark.parametrize("native", [True, False], ids=["native", "text"])
def test_empty_field_of_the_trigger_form_deletes_no_offsets(
    copied: LocalSink, load_dag: LoadDag, unique_name: str, capfd: pytest.CaptureFixture[str], native: bool
) -> None:
    names = {"dag_id": unique_name, "config": copied.connector(), "worker": copied.worker(), "topic": copied.topic}
    run = load_dag(EMPTY.format(**names, native=native)).test(logical_date=None)
    states = {instance.task_id: instance.state for instance in run.get_task_instances()}
    assert states == {"one": "failed", "each": "failed", "some": "failed", "none": "success" if native else "failed"}
    printed = "".join(capfd.readouterr())
    if native:
        assert "offsets is a template that has become None" in printed
        assert f"offsets of {copied.topic}-0 is a template that has become None" in printed
        assert "partitions is a template that has become None" in printed
    else:
        assert "The partitions of task 'some' are 'None', which is not a list" in printed
    assert copied.offsets() == {0: 10}


@pytest.fixture
def page_connector(copied: LocalSink, monkeypatch: pytest.MonkeyPatch) -> Iterator[LocalSink]:
    """The connector of the page's DAGs."""
    path = DAGS / "meetups-to-files.json"
    path.write_text(json.dumps(copied.connector()))
    settings = {**copied.worker(), "spark.master": "local[1]"}
    kafka = {"conn_type": "kafka", "extra": settings}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(kafka))
    yield copied
    path.unlink()


def test_page_has_the_dag_of_the_dags_folder() -> None:
    source = (PROJECT / "dags/replay.py").read_text()
    assert source.partition("# [START howto]\n")[2].partition("# [END howto]")[0] in PYTHON


@pytest.mark.budget(40)  # two drivers, one of them with Spark
def test_replay_dag_copies_a_range_once_beside_the_connector(
    page_connector: LocalSink, load_dag: LoadDag, xcom: Callable[..., Any], without_spark: Callable[[], None]
) -> None:
    without_spark()
    dag = load_dag((PROJECT / "dags/replay.py").read_text())
    task = dag.get_task("replay_meetups")
    task.retries, task.replay_id = 0, "nov"
    conf = {"start": "1970-01-01T00:00:05Z"}

    states = []
    for _ in range(2):
        run = dag.test(logical_date=None, run_conf=conf)
        states.append((run.state, xcom(run, "replay_meetups")["records"]))

    assert states == [("success", 6), ("success", 0)]
    assert xcom(run, "replay_meetups")["connector"] == f"{page_connector.name}-replay-nov"
    replayed = sorted((Path(page_connector.bucket) / "replayed").rglob("*.json"))
    assert [json.loads(line)["n"] for path in replayed for line in path.read_text().splitlines()] == [*range(4, 10)]
    assert page_connector.offsets() == {0: 10}


def test_dead_letters_are_replayed_once_by_the_dag_of_the_page(
    page_connector: LocalSink, load_dag: LoadDag, produce: Any, make_topic: Callable[..., str], xcom: Callable[..., Any]
) -> None:
    page_connector.config.update(
        {
            "errors.tolerance": "all",
            "errors.deadletterqueue.topic.name": make_topic(),
            "errors.deadletterqueue.context.headers.enable": "true",
        }
    )
    produce(page_connector.topic, [(0, None, "{broken"), (0, None, json.dumps({"n": 11}))])
    assert page_connector.run().dead_lettered == 1
    (DAGS / "meetups-to-files.json").write_text(json.dumps(page_connector.connector()))
    dag = load_dag(next(block for block in PYTHON if "ReplayDeadLetters" in block))

    told = [xcom(dag.test(logical_date=None), "replay") for _ in range(2)]

    assert [answer["replayed"] for answer in told] == [1, 0]
    assert told[0]["topics"] == {page_connector.topic: 1}
    assert told[0]["reasons"][0]["stage"] == "VALUE_CONVERTER"


def test_dag_of_the_page_that_sets_offsets_serializes(page_connector: LocalSink, load_dag: LoadDag) -> None:
    from airflow.serialization.serialized_objects import DagSerialization

    dag = load_dag(PYTHON[0])
    assert [task.task_id for task in dag.topological_sort()] == ["go_back", "copy"]
    assert DagSerialization.deserialize_dag(DagSerialization.serialize_dag(dag)).dag_id == "copy_from_november"
