"""The operator, hook and trigger for a Kafka Connect cluster, on a real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowFailException, TaskDeferred

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, TaskFailedError, UnavailableError
from airflow_connect.hooks.connect_cluster_watch import cluster_sink
from airflow_connect.hooks.kafka_connect import KafkaConnectHook
from airflow_connect.operators.kafka_connect import KafkaConnectOperator
from airflow_connect.triggers.kafka_connect import KafkaConnectTrigger
from tests.airflow.conftest import LoadDag
from tests.devstack.connect_worker import ConnectWorker
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def worker(kafka: KafkaBroker) -> Iterator[ConnectWorker]:
    topics = {f"{kind}.storage.topic": f"airflow-hook-{kind}" for kind in ("config", "offset", "status")}
    with ConnectWorker.start(kafka.bootstrap, "airflow-hook", topics) as running:
        yield running


@pytest.fixture(autouse=True)
def connections(worker: ConnectWorker, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    brokers = {"conn_type": "kafka", "extra": {"bootstrap.servers": kafka.bootstrap}}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", json.dumps(brokers))
    cluster = {"conn_type": "kafka_connect", "host": worker.url}
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_CONNECT_DEFAULT", json.dumps(cluster))


@pytest.fixture
def sink(unique_name: str, make_topic: Any, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """A file sink of one topic."""
    yield {
        "name": unique_name,
        "connector.class": "FileStreamSink",
        "topics": make_topic(),
        "file": str(tmp_path / "out"),
    }
    KafkaConnectHook().delete(unique_name)


def do(name: str, action: Any, **arguments: Any) -> dict[str, Any]:
    operator = KafkaConnectOperator(
        task_id="t", connector=name, action=action, poll_interval=0.1, timeout=timedelta(seconds=60), **arguments
    )
    return operator.execute({})  # type: ignore[arg-type]


def test_life_of_a_connector(sink: dict[str, Any], produce: Any) -> None:
    name, topic, hook = sink["name"], sink["topics"], KafkaConnectHook()
    assert do(name, "apply", config=sink)["result"] == "created"
    again = do(name, "apply", config=sink)
    assert (again["result"], again["seen"]) == ("unchanged", f"Connector {name} is RUNNING, tasks RUNNING.")
    assert do(name, "apply", config={**sink, "tasks.max": 1})["result"] == "updated"

    produce(topic, [(0, None, "a", 1, []), (0, None, "b", 1, [])])
    caught_up = do(name, "wait", until_caught_up=True)
    assert "It has copied everything that its topics held." in caught_up["seen"]
    assert Path(sink["file"]).read_text().splitlines() == ["a", "b"]

    assert do(name, "pause")["seen"] == f"Connector {name} is PAUSED, tasks PAUSED."
    assert do(name, "resume")["seen"] == f"Connector {name} is RUNNING, tasks RUNNING."
    with pytest.raises(AirflowFailException, match=r"kafka_connect.answer: .*STOPPED"):
        do(name, "reset_offsets")
    assert do(name, "stop")["seen"] == f"Connector {name} is STOPPED without tasks."
    back = [{"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 1}}]
    assert "successfully" in do(name, "alter_offsets", offsets=back)["result"]
    assert hook.offsets(name) == back
    assert "successfully" in do(name, "reset_offsets")["result"]
    assert hook.offsets(name) == []
    assert do(name, "delete")["result"] == "deleted"
    assert do(name, "delete")["result"] == "absent"


DAG_FILE = """
from airflow.sdk import DAG
from airflow_connect.operators.kafka_connect import KafkaConnectOperator

with DAG({name!r}, schedule=None):
    KafkaConnectOperator(
        task_id="apply", connector={name!r}, config={config!r}, until_caught_up=True, poll_interval=0.2, deferrable=True
    )
"""


def test_deferred_task_waits_in_the_trigger_that_dag_test_runs(
    sink: dict[str, Any], produce: Any, load_dag: LoadDag, xcom: Any, capfd: pytest.CaptureFixture[str]
) -> None:
    produce(sink["topics"], [(0, None, "a", 1, [])])
    run = load_dag(DAG_FILE.format(name=sink["name"], config=sink)).test(logical_date=None)
    assert run.state == "success", "".join(capfd.readouterr())
    assert xcom(run, "apply")["result"] == "created"
    assert "It has copied everything that its topics held." in xcom(run, "apply")["seen"]


def test_configuration_may_be_a_file(sink: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "sink.json"
    path.write_text(json.dumps({"name": sink["name"], "config": {k: v for k, v in sink.items() if k != "name"}}))
    assert do(sink["name"], "apply", config_file=path)["result"] == "created"


def test_refused_configuration_fails_the_task_with_every_key(sink: dict[str, Any]) -> None:
    broken = {**sink, "tasks.max": "many", "errors.retry.timeout": "soon"}
    with pytest.raises(AirflowFailException, match=r"(?s)status 400.*tasks\.max"):
        do(sink["name"], "apply", config=broken)
    found = {finding["key"] for finding in KafkaConnectHook().validate(broken)}
    assert {"tasks.max", "errors.retry.timeout"} <= found


def test_failed_task_of_the_cluster_is_an_error_with_its_reason_and_restart_repairs_it(
    sink: dict[str, Any], produce: Any
) -> None:
    folder = Path(sink["file"]).with_name("missing")
    config = {**sink, "file": str(folder / "out")}
    with pytest.raises(TaskFailedError, match=r"(?s)tasks FAILED.*ConnectException"):
        do(sink["name"], "apply", config=config)
    folder.mkdir()
    assert do(sink["name"], "restart")["seen"] == f"Connector {sink['name']} is RUNNING, tasks RUNNING."


def test_markers_at_the_end_of_a_topic_are_no_lag(sink: dict[str, Any], produce: Any, kafka: KafkaBroker) -> None:
    """Its sink commits the offset after the last record; the marker of the transaction lies behind it."""
    name, topic = sink["name"], sink["topics"]
    produce.transaction(topic, [(0, None, "a", 1, [])], "commit")
    do(name, "apply", config=sink)
    ends = cluster_sink(KafkaConnectHook().rest, name, "kafka_default").ends()
    assert ends == {topic: {"0": 2}}
    assert "copied everything" in do(name, "wait", until_caught_up=True)["seen"]
    assert [entry["offset"] for entry in KafkaConnectHook().offsets(name)] == [{"kafka_offset": 1}]


def test_records_written_after_the_task_began_are_not_waited_for(sink: dict[str, Any], produce: Any) -> None:
    name, topic = sink["name"], sink["topics"]
    produce(topic, [(0, None, "a", 1, [])])
    do(name, "apply", config=sink, until_caught_up=True)
    do(name, "pause")
    seen = cluster_sink(KafkaConnectHook().rest, name, "kafka_default")
    ends = seen.ends()
    produce(topic, [(0, None, "b", 1, [])])
    assert seen.remaining(ends) == {}
    assert sum(seen.remaining(seen.ends()).values()) == 1


def test_time_that_is_over_is_an_error_with_what_was_seen(sink: dict[str, Any]) -> None:
    do(sink["name"], "apply", config=sink)
    do(sink["name"], "pause")
    operator = KafkaConnectOperator(task_id="t", connector=sink["name"], action="wait", timeout=timedelta(0))
    with pytest.raises(UnavailableError, match=r"The time is over.*is PAUSED, tasks PAUSED"):
        operator.execute({})  # type: ignore[arg-type]


def test_deferred_wait_ends_in_the_triggerer(sink: dict[str, Any], produce: Any) -> None:
    produce(sink["topics"], [(0, None, "a", 1, [])])
    operator = KafkaConnectOperator(
        task_id="t", connector=sink["name"], config=sink, until_caught_up=True, poll_interval=0.1, deferrable=True
    )
    with pytest.raises(TaskDeferred) as deferred:
        operator.execute({})  # type: ignore[arg-type]
    path, arguments = deferred.value.trigger.serialize()
    assert path.endswith(".KafkaConnectTrigger")

    async def first_event() -> Any:
        return (await anext(KafkaConnectTrigger(**json.loads(json.dumps(arguments))).run())).payload

    event = asyncio.run(first_event())
    summary = operator.execute_complete({}, event)  # type: ignore[arg-type]
    assert summary["result"] == "created" and "copied everything" in summary["seen"]


def test_deferred_failure_is_the_error_of_a_task_that_polls() -> None:
    operator = KafkaConnectOperator(task_id="t", connector="c", action="wait")
    for error, kind in ((UnavailableError("away"), UnavailableError), (ConfigError("wrong"), AirflowFailException)):
        with pytest.raises(kind):
            operator.execute_complete({}, {"error": error.to_json()}, result="waiting")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("action", "arguments", "message"),
    [
        ("apply", {}, "neither of config and config_file"),
        ("pause", {"config": {"name": "c"}}, "1 of config and config_file for action 'pause'"),
        ("alter_offsets", {}, "no offsets"),
        ("stop", {"offsets": []}, "has offsets for action 'stop'"),
        ("explode", {}, "the action 'explode'"),
    ],
    ids=["apply", "pause", "alter", "stop", "unknown"],
)
def test_arguments_that_do_not_belong_to_the_action_are_refused(
    action: str, arguments: dict[str, Any], message: str
) -> None:
    with pytest.raises(AirflowFailException, match=message):
        do("c", action, **arguments)


def test_source_cannot_be_waited_for_by_lag(unique_name: str, tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a\n")
    source = {"connector.class": "FileStreamSource", "topic": unique_name, "file": str(tmp_path / "in")}
    with pytest.raises(AirflowFailException, match="is a source"):
        do(unique_name, "apply", config=source, until_caught_up=True)
    wait_until(lambda: KafkaConnectHook().status(unique_name).is_all("RUNNING"), "the source runs")
    assert KafkaConnectHook().delete(unique_name)


def test_button_tells_version_and_number_of_connectors(monkeypatch: pytest.MonkeyPatch) -> None:
    is_ok, told = KafkaConnectHook().test_connection()
    assert is_ok and told.startswith("Kafka Connect 4.3.1 answers; it has ")
    away = {"conn_type": "kafka_connect", "host": "http://127.0.0.1:1", "password": "opensesame1", "login": "me"}
    monkeypatch.setenv("AIRFLOW_CONN_AWAY", json.dumps(away))
    monkeypatch.setattr("airflow_connect.hooks.kafka_connect.TEST_S", 0.1)
    is_ok, told = KafkaConnectHook("away").test_connection()
    assert not is_ok and "http://127.0.0.1:1 gave no answer" in told
