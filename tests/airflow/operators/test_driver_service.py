"""`ConnectorOperator` with a driver service: a real service process and real drivers, whose runs are scripted."""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk.exceptions import AirflowException, AirflowTaskTimeout, TaskDeferred

from airflow_connect.hooks.connect_driver import ConnectDriverHook
from airflow_connect.operators.connector import NOT_DEFERRED, ConnectorOperator
from airflow_connect.runtime.spec import RunSpec
from tests.airflow.conftest import Hanging, LoadDag
from tests.support.processes.drivers import is_alive
from tests.support.servers.driver_service import DriverServiceProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.usefixtures("driver_connection", "airflow_home")

CHILDREN_OF_HANG = 4
SECRET = "opensesame-1"
WORKER = {"bootstrap.servers": "broker:9092", "sasl.password": SECRET}
DAG_FILE = """
from datetime import timedelta
from airflow.sdk import DAG, Asset, task
from airflow_connect.operators.connector import ConnectorOperator, run_params

given = dict(
    worker={worker!r}, driver_conn_id="our_driver", retries={retries}, retry_delay=timedelta(0), poll_interval=0.1,
    outlets=[Asset("copied", "s3://bucket/topics/copied")], {more}
)
with DAG({dag_id!r}, schedule=None, params=run_params()) as dag:
    if {decorated}:
        @task.connector(**given)
        def copy():
            return {config!r}
        copy()
    else:
        ConnectorOperator(task_id="copy", config={config!r}, **given)
"""


@pytest.fixture
def dag_of(load_dag: LoadDag, unique_name: str) -> Callable[..., Any]:
    def make(
        config: dict[str, Any], more: str = "deferrable=True", retries: int = 0, *, decorated: bool = False
    ) -> Any:
        config = {"name": "meetups", **config}
        names = {"dag_id": unique_name, "config": config, "worker": WORKER, "retries": retries, "more": more}
        return load_dag(DAG_FILE.format(**names, decorated=decorated))

    return make


@pytest.fixture
def events() -> Iterator[list[dict[str, Any]]]:
    """Every event that reached a task of this process."""
    heard: list[dict[str, Any]] = []
    ConnectorOperator.listeners.append(heard.append)  # type: ignore[arg-type]
    yield heard
    ConnectorOperator.listeners.remove(heard.append)  # type: ignore[arg-type]


def tries(dag_run: Any) -> tuple[str, int]:
    instance = dag_run.get_task_instance("copy")
    return str(instance.state), instance.try_number


def counts() -> dict[str, Any]:
    """What runs at the service."""
    told = ConnectDriverHook("our_driver")._request("GET", "/v1/service")
    return {name: told[name] for name in ("running", "waiting")}


@pytest.mark.parametrize("decorated", [False, True], ids=["operator", "decorator"])
@pytest.mark.parametrize("more", ["deferrable=True", "deferrable=False"])
def test_run_at_the_service_returns_what_a_run_in_the_slot_returns(
    dag_of: Callable[..., Any],
    xcom: Callable[..., Any],
    events: list[dict[str, Any]],
    capfd: pytest.CaptureFixture[str],
    more: str,
    decorated: bool,
) -> None:
    from airflow.models.asset import AssetEvent
    from airflow.utils.session import create_session

    dag_run = dag_of({"fake": "copy"}, more, decorated=decorated).test(logical_date=None)
    assert dag_run.state == "success"
    summary = xcom(dag_run, "copy")
    assert (summary["records"], summary["offsets"]) == (20, {"meetups-0": 10, "meetups-1": 10})
    with create_session() as session:
        event = session.query(AssetEvent).filter_by(source_run_id=dag_run.run_id).one()
        assert dict(event.extra) == {
            name: summary[name] for name in ("records", "files", "dead_lettered", "offsets", "run_id")
        }
    assert events[-1]["event"] == "end" and events[-1]["report"]["run_id"] == summary["run_id"]
    printed = "".join(capfd.readouterr())
    assert "Up to 20 records of 2 partitions in 1 task." in printed
    assert "meetups: 20 records in 2 files, 900 B, 0.50 s, exactly_once." in printed
    assert SECRET not in printed
    assert ConnectDriverHook("our_driver").view(summary["run_id"]) is None, "the outcome was taken"


@pytest.mark.parametrize(
    ("fake", "outcome"),
    [("config", ("failed", 1)), ("fenced", ("failed", 1)), ("away", ("failed", 2)), ("crash", ("failed", 2))],
)
def test_failures_are_told_and_only_retriable_ones_are_retried(
    dag_of: Callable[..., Any], fake: str, outcome: tuple[str, int], capfd: pytest.CaptureFixture[str]
) -> None:
    assert tries(dag_of({"fake": fake}, retries=1).test(logical_date=None)) == outcome
    printed = "".join(capfd.readouterr())
    told = "ended with exit code 52 before it could report" if fake == "crash" else "✗ "
    assert told in printed
    assert counts() == {"running": 0, "waiting": 0}


def test_secret_in_the_driver_log_does_not_reach_the_task_log(
    dag_of: Callable[..., Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert dag_of({"fake": "echo"}).test(logical_date=None).state == "success"
    printed = "".join(capfd.readouterr())
    assert "driver | password is [hidden]" in printed
    assert SECRET not in printed


def test_wrong_token_is_not_retried(
    dag_of: Callable[..., Any],
    driver_service: DriverServiceProcess,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(driver_service.connection("not-the-token-of-the-service")))
    assert tries(dag_of({"fake": "copy"}, retries=1).test(logical_date=None)) == ("failed", 1)
    assert "The driver service refuses the token of this request." in "".join(capfd.readouterr())


def test_service_that_is_away_is_retried(
    dag_of: Callable[..., Any], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    nowhere = {"conn_type": "connect_driver", "host": "127.0.0.1", "port": 1}
    monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps(nowhere))
    assert tries(dag_of({"fake": "copy"}, retries=1).test(logical_date=None)) == ("failed", 2)
    assert "The driver service of connection 'our_driver' does not answer" in "".join(capfd.readouterr())


def test_without_a_service_the_driver_runs_in_the_slot_and_the_log_says_why(
    load_dag: LoadDag, unique_name: str, scripted_driver: None, capfd: pytest.CaptureFixture[str]
) -> None:
    names = {"dag_id": unique_name, "config": {"name": "c", "fake": "copy"}, "worker": WORKER, "retries": 0}
    source = DAG_FILE.format(**names, more="deferrable=True", decorated=False).replace('"our_driver"', "None")
    assert load_dag(source).test(logical_date=None).state == "success"
    assert NOT_DEFERRED in "".join(capfd.readouterr())


def test_task_killed_in_its_slot_ends_the_run_at_the_service(
    dag_of: Callable[..., Any], hanging: Hanging, tmp_path: Path
) -> None:
    """As Airflow does it: `on_kill` in the handler of SIGTERM, then execute() goes on."""
    config, pids = hanging
    dag = dag_of(config, "deferrable=False")
    previous = signal.signal(signal.SIGTERM, lambda *_: dag.get_task("copy").on_kill())

    def kill_when_running() -> None:
        try:
            wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the driver and its children to run")
        finally:  # without it the task would go on for minutes
            os.kill(os.getpid(), signal.SIGTERM)

    killer = threading.Thread(target=kill_when_running)
    killer.start()
    try:
        dag_run = dag.test(logical_date=None)
    finally:
        killer.join()
        signal.signal(signal.SIGTERM, previous)
    assert tries(dag_run) == ("failed", 1)
    assert len(pids()) == CHILDREN_OF_HANG
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert not (tmp_path / "committed").exists()


def operator(config: dict[str, Any], **given: Any) -> ConnectorOperator:
    from airflow.sdk import DAG

    with DAG("by_hand", schedule=None):
        return ConnectorOperator(
            task_id="copy",
            config={"name": "meetups", **config},
            worker=WORKER,
            driver_conn_id="our_driver",
            deferrable=True,
            **given,
        )


def context_of(run_id: str, attempt: int = 1) -> Any:
    instance = SimpleNamespace(
        dag_id="by_hand", run_id=run_id, task_id="copy", map_index=-1, try_number=attempt, max_tries=3
    )
    return {"ti": instance, "dag_run": SimpleNamespace(conf={}), "params": {}, "outlet_events": {}}


def deferral(task: ConnectorOperator, context: Any) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as raised:
        task.execute(context)
    return raised.value


def test_configuration_that_waits_with_the_task_keeps_its_lists(unique_name: str) -> None:
    config = {"fake": "empty", "topics": ["a", "b"], "tokens": [SECRET, "${env:T}"]}
    found = deferral(operator(config), context_of(unique_name)).trigger.connector
    assert (found["topics"], found["tokens"]) == (["a", "b"], ["[hidden]", "${env:T}"])


def test_key_of_type_password_whose_name_does_not_say_so_is_no_argument_of_the_trigger(unique_name: str) -> None:
    config = {"fake": "empty", "connector.class": "JdbcSourceConnector", "query.masked": "pin"}
    assert deferral(operator(config), context_of(unique_name)).trigger.connector["query.masked"] == "[hidden]"


def test_attempt_after_a_lost_worker_finds_the_run_and_takes_its_outcome(unique_name: str, hanging: Hanging) -> None:
    config, pids = hanging
    first = deferral(operator(config), context_of(unique_name))
    wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the run to work")
    again = deferral(operator(config), context_of(unique_name, attempt=2))
    assert again.trigger.run_id == first.trigger.run_id
    assert again.trigger.connector["name"] == "meetups"
    assert SECRET not in json.dumps(again.trigger.serialize())
    ConnectDriverHook("our_driver").end(first.trigger.run_id)
    assert [pid for pid in pids() if is_alive(pid)] == []

    done = deferral(operator({"fake": "copy"}), context_of(f"{unique_name}-2"))
    hook = ConnectDriverHook("our_driver")
    wait_until(lambda: hook.view(done.trigger.run_id).state == "ended", "the run to end")  # type: ignore[union-attr]
    summary = operator({"fake": "copy"}).execute(context_of(f"{unique_name}-2", attempt=2))
    assert (summary["run_id"], summary["records"]) == (done.trigger.run_id, 20)


def test_group_and_folder_pass_the_service_on_to_their_copies(tmp_path: Path) -> None:
    from airflow.sdk import DAG

    from airflow_connect.operators.dag_factory import DagSettings, connector_dags
    from airflow_connect.operators.task_group import ConnectorTaskGroup

    given: dict[str, Any] = {"driver_conn_id": "our_driver", "deferrable": True}
    config = {"name": "meetups", "connector.class": "S3SinkConnector", "topics": "t", "s3.bucket.name": "bucket"}
    (tmp_path / "meetups.json").write_text(json.dumps(config))
    with DAG("of_a_group", schedule=None) as of_a_group:
        ConnectorTaskGroup("meetups", config=config, worker=WORKER, **given)
    of_a_folder = connector_dags(tmp_path, settings=DagSettings(), worker=WORKER, **given)["meetups"]
    copies = [of_a_group.get_task("meetups.copy"), of_a_folder.get_task("copy")]
    assert [(task.driver_conn_id, task.deferrable) for task in copies] == [("our_driver", True)] * 2
    assert of_a_group.get_task("meetups.plan").driver_conn_id is None


def test_task_killed_before_the_service_has_the_run_ends_it_when_it_has(unique_name: str) -> None:
    task, context = operator({"fake": "copy"}), context_of(unique_name)
    start = ConnectDriverHook.start

    def start_slowly(hook: ConnectDriverHook, spec: RunSpec) -> Any:
        task.on_kill()
        return start(hook, spec)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ConnectDriverHook, "start", start_slowly)
        with pytest.raises(AirflowException, match="The task was killed, and so was its run"):
            task.execute(context)
    assert counts() == {"running": 0, "waiting": 0}


def test_time_of_the_task_goes_with_the_trigger_and_fails_the_task(unique_name: str) -> None:
    before = time.time()
    found = deferral(operator({"fake": "empty"}, execution_timeout=timedelta(hours=1)), context_of(unique_name))
    assert before + 3600 <= found.trigger.deadline <= time.time() + 3600
    assert found.timeout > timedelta(hours=1), "the trigger ends the run before Airflow gives up the trigger"
    event = {"run_id": found.trigger.run_id, "connector": {"name": "meetups"}, "state": "timed_out"}
    with pytest.raises(AirflowTaskTimeout, match="was ended"):
        operator({}).execute_complete(context_of(unique_name), event)


@pytest.mark.parametrize(
    ("more", "told"),
    [
        (
            {"state": "lost", "why": "It was restarted."},
            "was lost at the driver service, and its history has no end of it. It was",
        ),
        ({"state": "ended"}, "was lost at the driver service"),
    ],
)
def test_lost_run_is_looked_up_in_the_history(
    unique_name: str, monkeypatch: pytest.MonkeyPatch, more: dict[str, str], told: str
) -> None:
    from airflow_connect.documents.run import RunReport
    from airflow_connect.errors import TaskFailedError
    from airflow_connect.observe.status import connector_state

    history: list[dict[str, Any]] = []
    monkeypatch.setattr(connector_state, "recent_runs", lambda spec, limit: history)
    kept: dict[str, Any] = {"run_id": "20261121T031947-223244", "connector": {"name": "meetups"}}
    with pytest.raises(TaskFailedError, match=told) as raised:
        operator({}).execute_complete(context_of(unique_name), {**kept, **more})
    assert (raised.value.code, raised.value.retriable) == ("driver_service.run_lost", True)

    history.append(RunReport("meetups", kept["run_id"], "done", 1, 2, records=7).to_json())
    assert operator({}).execute_complete(context_of(unique_name), {**kept, **more})["records"] == 7


def test_test_button_tells_what_the_service_does_or_what_is_wrong(
    driver_service: DriverServiceProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_ok, told = ConnectDriverHook("our_driver").test_connection()
    # A driver of a test before this one may still be ending.
    assert is_ok and re.search(r"answers: \d of 4 drivers run, \d wait\.$", told), told
    for wrong, says in (
        ({"password": "wrong"}, "refuses the token"),
        ({"host": ""}, "has no host"),
        ({"conn_type": "http"}, "is of type http, not connect_driver"),
        ({"port": 1}, "does not answer"),
        ({"extra": {"cert": "/no/such/file"}}, "cannot be used"),
    ):
        monkeypatch.setenv("AIRFLOW_CONN_OUR_DRIVER", json.dumps({**driver_service.connection(), **wrong}))
        is_ok, told = ConnectDriverHook("our_driver").test_connection()
        assert not is_ok
        assert says in told
