"""`ConnectHook` from tasks: on a real broker, and with a scripted driver."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowFailException
from confluent_kafka.admin import AdminClient

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.hooks.connect import ConnectHook
from airflow_connect.observe.watches.poller import shared_poller
from airflow_connect.sensors.connector import ConnectorLagSensor
from tests.airflow.conftest import Hanging, LoadDag
from tests.support.processes.drivers import is_alive
from tests.support.waiting import wait_until

CHILDREN_OF_HANG = 4

DAG_FILE = """
from airflow.sdk import DAG, task
from airflow_connect.hooks.connect import ConnectHook

with DAG({dag_id!r}, schedule=None):
    @task
    def look():
        hook = ConnectHook(config={config!r}, worker_conn_id="shared")
        return {{"plan": hook.plan(), "lag": hook.lag(), "offsets": hook.offsets(), "runs": hook.runs(limit=1)}}
    look()
"""


def hook_of(sink: Any) -> ConnectHook:
    return ConnectHook(config=sink.connector(), worker=sink.worker(), kafka_conn_id=None)


@pytest.mark.integration
def test_task_sees_plan_lag_offsets_and_history(
    load_dag: LoadDag,
    xcom: Callable[..., Any],
    make_topic: Any,
    produce: Any,
    make_sink: Any,
    unique_name: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic()
    produce(topic, [(0, "k", "{}", 1, []) for _ in range(5)])
    sink = make_sink(topic)
    assert hook_of(sink).runs() == []
    report = sink.run()
    produce(topic, [(0, "k", "{}", 1, []) for _ in range(3)])
    monkeypatch.setenv("AIRFLOW_CONN_SHARED", json.dumps({"conn_type": "connect_worker", "extra": sink.worker()}))
    dag_run = load_dag(DAG_FILE.format(dag_id=unique_name, config=sink.connector())).test(logical_date=None)
    seen = xcom(dag_run, "look")
    (planned,) = seen["plan"]["tasks"]
    assert [(r["topic"], r["partition"], r["start"], r["end"]) for r in planned["ranges"]] == [(topic, 0, 5, 8)]
    assert seen["lag"] == [{"topic": topic, "partition": 0, "committed": 5, "end": 8, "lag": 3}]
    assert seen["offsets"] == [
        {"partition": {"kafka_topic": topic, "kafka_partition": 0}, "offset": {"kafka_offset": 5}}
    ]
    assert [(run["run_id"], run["records"], run["status"]) for run in seen["runs"]] == [(report.run_id, 5, "done")]


@pytest.mark.integration
def test_lag_of_a_connector_that_never_ran_counts_from_the_start_of_the_log(
    make_topic: Any, produce: Any, make_sink: Any
) -> None:
    topic = make_topic(partitions=2)
    produce(topic, [(1, "k", "{}", 1, []) for _ in range(4)])
    hook = hook_of(make_sink(topic))
    assert [(found["committed"], found["lag"]) for found in hook.lag()] == [(None, 0), (None, 4)]
    assert hook.offsets() == []


@pytest.mark.integration
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_lag_is_what_the_sensor_sees_and_a_run_would_copy(
    make_topic: Any, produce: Any, make_sink: Any, kafka: KafkaBroker, reset: str
) -> None:
    """In a partition without a committed offset, and in one whose offset Kafka has deleted since the last run."""
    topic = make_topic(partitions=2)
    produce(topic, [(0, "k", "{}", 1, []) for _ in range(4)])
    sink = make_sink(topic, consumer_override_auto_offset_reset=reset)
    hook = hook_of(sink)
    sensor = ConnectorLagSensor(
        task_id="lag", config=sink.connector(), worker=sink.worker(), kafka_conn_id=None, min_records=1
    )
    poller = shared_poller(sensor.request().watch().target.cluster)

    def seen() -> list[int]:
        lag, planned = hook.lag(), hook.plan()["tasks"]
        peeked = poller.ask(sensor.request().watch(), 0.0).result(60)
        assert sum(found["lag"] for found in lag) == peeked.facts["records"]
        assert sum(found["lag"] for found in lag) == sum(r["end"] - r["start"] for t in planned for r in t["ranges"])
        return [found["lag"] for found in lag]

    assert seen() == ([4, 0] if reset == "earliest" else [0, 0])
    sink.run()
    produce(topic, [(0, "k", "{}", 1, []) for _ in range(3)])
    admin, group = AdminClient({"bootstrap.servers": kafka.bootstrap}), f"connect-{sink.name}"
    admin.delete_consumer_groups([group])[group].result(60)
    wait_until(lambda: sink.offsets() == {}, "the group to be gone")
    assert [found["committed"] for found in hook.lag()] == [None, None]
    assert seen() == [3, 0]


@pytest.mark.integration
def test_dead_letters_of_the_connector_are_shown(make_topic: Any, produce: Any, make_sink: Any) -> None:
    topic, queue = make_topic(), make_topic()
    produce(topic, [(0, "k", value, 1, []) for value in ("{}", "broken", "also broken")])
    sink = make_sink(
        topic,
        errors_tolerance="all",
        errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_topic_replication_factor="1",
        errors_deadletterqueue_context_headers_enable="true",
    )
    sink.run()
    hook = hook_of(sink)

    def find() -> dict[str, Any]:
        found: dict[str, Any] = hook.dead_letters(limit=1, stage="value_converter")
        return found

    # The run's transaction is committed, and its marker comes to the queue a moment later.
    wait_until(lambda: find()["matching"] == 2, "both letters")
    found = find()
    assert found["queue"] == queue
    assert [(letter["from"], letter["value"]) for letter in found["letters"]] == [(f"{topic}-0@2", "also broken")]


def test_source_has_offsets_but_no_lag(tmp_path: Any) -> None:
    config = {"name": "s", "connector.class": "FileStreamSource", "topic": "t", "file": str(tmp_path / "f")}
    hook = ConnectHook(config=config, worker={"bootstrap.servers": "b:9092"}, kafka_conn_id=None)
    with pytest.raises(ConfigError, match="A source has no lag in Kafka"):
        hook.lag()


def test_findings_of_a_configuration_need_no_server() -> None:
    hook = ConnectHook(
        config={"name": "c", "connector.class": "S3SinkConnector", "topics": "t", "flush.size": "none"},
        worker={"bootstrap.servers": "b:9092"},
        kafka_conn_id=None,
    )
    assert any(finding["level"] == "error" and "flush.size" in finding["message"] for finding in hook.validate())


def test_hook_without_a_connector_says_so() -> None:
    with pytest.raises(ConfigError, match="This hook has neither config and config_file"):
        ConnectHook(worker_conn_id="shared").plan()


def test_killed_task_ends_the_driver_of_the_hook(hanging: Hanging, scripted_driver: None, tmp_path: Path) -> None:
    """SIGTERM in the main thread, with the handler of Airflow's task runner, which returns."""
    config, pids = hanging
    hook = ConnectHook(config={"name": "c", **config}, worker={"bootstrap.servers": "b:9092"}, kafka_conn_id=None)
    calls: list[int] = []

    def handler_of_airflow(number: int, _: Any) -> None:
        calls.append(number)

    previous = signal.signal(signal.SIGTERM, handler_of_airflow)

    def kill_when_running() -> None:
        try:
            wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the driver and its children to run", 60)
        finally:  # without it the test would go on for minutes
            os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=kill_when_running)
    killer.start()
    try:
        with pytest.raises(AirflowException, match="The task was killed, and so was its run"):
            hook.run()
        assert signal.getsignal(signal.SIGTERM) is handler_of_airflow
    finally:
        killer.join()
        signal.signal(signal.SIGTERM, previous)
    assert calls == [signal.SIGTERM], "Airflow's own handler is called, too"
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert not (tmp_path / "committed").exists()


def scripted(action: str) -> ConnectHook:
    worker = {"bootstrap.servers": "b:9092", "sasl.password": "opensesame1"}
    return ConnectHook(config={"name": "meetups", "fake": action}, worker=worker, kafka_conn_id=None)


@pytest.mark.usefixtures("scripted_driver")
def test_run_returns_the_summary_of_the_operator() -> None:
    summary = scripted("copy").run({"run.max.records": 7}, {"dag_id": "d"})
    assert (summary["connector"], summary["status"]) == ("meetups", "done")
    assert json.loads(json.dumps(summary)) == summary


@pytest.mark.usefixtures("scripted_driver")
def test_secrets_stay_out_of_the_log_of_a_run(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        scripted("echo").run()
    assert "opensesame1" not in caplog.text


@pytest.mark.usefixtures("scripted_driver")
@pytest.mark.parametrize(("action", "kind"), [("config", AirflowFailException), ("away", UnavailableError)])
def test_failed_run_raises_what_decides_about_a_retry(action: str, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        scripted(action).run()
