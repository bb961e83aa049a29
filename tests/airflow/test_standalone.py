"""The operator in a whole Airflow, started in every way that Airflow has, on a real broker and a real S3 server.

What is asserted comes from Airflow's REST API, from the bucket and from the consumer group.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.airflow.run_params import RUN_KEYS
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.runtime.driver.process_tree import processes_of
from tests.support.copies.airflow_pipelines import DAG_FILE, PARTITIONS, Pipeline, drivers_of, environment_of
from tests.support.copies.s3 import Sink
from tests.support.faulty_converter import Faults
from tests.support.kafka_data import TopicProducer
from tests.support.processes.drivers import fake_driver_env, is_alive
from tests.support.processes.proc import command_lines
from tests.support.processes.without_spark.engine_choice import NAME as WITHOUT_SPARK
from tests.support.servers.airflow import CONNECT_CONN_ID, AirflowServer
from tests.support.servers.driver_service import DriverServiceProcess, pids_in
from tests.support.servers.rest import worker_of
from tests.support.waiting import wait_until

pytestmark = [
    pytest.mark.integration,
    pytest.mark.budget(30),  # runs of a scheduler, with Spark
    pytest.mark.usefixtures("spark_classes"),
]

RECORDS = 300
PROGRESS_EVERY_S = 1.0
KAFKA_SECRET, JAAS_SECRET, CONVERTER_SECRET = "kafka-wonder1and", "jaas-rabbit77hole", "convert-0pensesame"
DRIVER_JVM_AND_DAEMON = 3

# One run when the DAG is unpaused, and then every first of January.
YEARLY = 'CronTriggerTimetable("0 0 1 1 *", timezone="UTC", run_immediately=True)'
# Runs of the past only: Airflow would go on behind a backfill by itself.
UNTIL_2025 = 'CronTriggerTimetable("0 0 1 1 *", timezone="UTC"), end_date=datetime(2025, 12, 31, tzinfo=UTC)'
NEXT_DAG = """
with DAG("{name}-next", schedule=[copied], catchup=False):

    @task
    def told(*, triggering_asset_events=None):
        return [event.extra for event in triggering_asset_events[copied]]

    told() >> ConnectorOperator(
        task_id="copy", config={next_config!r}, worker={next_worker!r}, kafka_conn_id="our_kafka", aws_conn_id="our_aws"
    )
"""

GROUP_DAG = """
from airflow_connect.operators.task_group import ConnectorTaskGroup

with DAG("{name}-next", schedule=None):
    ConnectorTaskGroup(
        "orders", approval=True, config={next_config!r}, worker={next_worker!r}, kafka_conn_id="our_kafka",
        aws_conn_id="our_aws",
    )
"""


@pytest.fixture(scope="module")
def airflow(kafka: KafkaBroker, s3: S3Server) -> Iterator[AirflowServer]:
    """An Airflow that knows broker and S3 server by connections in its database.

    It ends with this module: its five processes cost a tenth of a core even when they have nothing to do.
    """
    server = AirflowServer()
    try:
        extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1"}
        server.connect("our_kafka", "kafka", {**extra, "sasl.password": KAFKA_SECRET, "group.id": "of-others"})
        extra = {"endpoint_url": s3.endpoint_url, "region_name": s3.region}
        server.connect("our_aws", "aws", extra, login=s3.access_key, password=s3.secret_key)
        yield server
    finally:
        server.stop()


@pytest.fixture
def deploy(
    airflow: AirflowServer,
    make_topic: Callable[..., str],
    make_sink: Callable[..., Sink],
    produce: TopicProducer,
    tmp_path: Path,
) -> Iterator[Callable[..., Pipeline]]:
    """Write a DAG file with a sink of its own: `deploy(schedule="None", more="") -> Pipeline`, with a full topic.

    `more` is added to the file, and its DAG does without Spark; `arguments` are the operator's.
    """
    folder = tmp_path / "faults"
    folder.mkdir()
    faults = Faults(folder)

    def make(
        schedule: str = "None",
        more: str = "",
        first_order: dict[str, Any] | None = None,
        arguments: str = "",
        has_spark: bool = True,
    ) -> Pipeline:
        converter = {**faults.config(), "value_converter_basic_auth_user_info": f"me:{CONVERTER_SECRET}"}
        sink = make_sink(make_topic(PARTITIONS), **converter)
        from_connections = {"aws_access_key_id": None, "aws_secret_access_key": None, "store_url": None}
        config = sink.connector(**from_connections)
        jaas = (
            f'org.apache.kafka.common.security.plain.PlainLoginModule required username="u" password="{JAAS_SECRET}";'
        )
        next_worker = {**sink.worker(), "spark.app.name": WITHOUT_SPARK, "admin.sasl.jaas.config": jaas}
        del next_worker["bootstrap.servers"]
        worker = {**next_worker, **({"spark.app.name": "copy", "spark.master": "local[2]"} if has_spark else {})}
        names: dict[str, Any] = {"name": sink.name, "bucket": sink.bucket, "topic": sink.topic, "schedule": schedule}
        names["arguments"] = arguments
        names["progress_every_s"] = str(PROGRESS_EVERY_S)
        next_config = {**config, "name": f"{sink.name}-next", "topics.dir": "again"}
        names |= {"config": config, "worker": worker, "next_config": next_config, "next_worker": next_worker}
        source = (DAG_FILE + more).format(**names)
        pipeline = Pipeline(airflow, sink, faults, produce)
        pipeline.write(RECORDS, first_order)
        airflow.deploy(sink.name, source, sink.name, *([f"{sink.name}-next"] if more else []))
        return pipeline

    yield make
    faults.release()


def test_scheduled_run_copies_and_its_asset_event_starts_the_next_dag(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(YEARLY, NEXT_DAG)
    pipeline.airflow.unpause(f"{pipeline.dag_id}-next")
    pipeline.airflow.unpause(pipeline.dag_id)

    (scheduled,) = pipeline.airflow.wait_for_runs(pipeline.dag_id, 1)
    assert scheduled.succeed().facts()["run_type"] == "scheduled"
    summary = scheduled.xcom("copy")
    assert (summary["status"], summary["records"]) == ("done", RECORDS)
    extra = {key: summary[key] for key in ("records", "offsets", "files", "dead_lettered", "run_id")}
    assert extra["offsets"] == {f"{pipeline.sink.topic}-{p}": RECORDS // PARTITIONS for p in range(PARTITIONS)}

    (triggered,) = pipeline.airflow.wait_for_runs(f"{pipeline.dag_id}-next", 1)
    facts = triggered.succeed().facts()
    assert (facts["run_type"], facts["logical_date"]) == ("asset_triggered", None)
    assert triggered.xcom("told") == pipeline.asset_extras() == [extra]
    assert triggered.xcom("copy")["records"] == RECORDS
    pipeline.sink.assert_exactly_once(pipeline.values * 2)


def test_rest_triggered_run_is_bounded_by_its_conf_and_can_be_cleared_and_run_again(
    deploy: Callable[..., Pipeline],
) -> None:
    pipeline = deploy(has_spark=False)
    pipeline.airflow.unpause(pipeline.dag_id)
    run = pipeline.trigger({"run.max.records": 100})
    run.succeed()
    assert run.facts()["logical_date"] is None
    assert run.xcom("copy")["records"] == 100
    assert len(pipeline.sink.values()) == 100

    run.clear()
    run.wait_for_task("copy", lambda task: task["try_number"] == 2, "to run again")
    run.succeed()
    assert run.xcom("copy")["records"] == 100
    assert sum(pipeline.sink.offsets().values()) == 200

    rest = pipeline.trigger()
    rest.succeed()
    assert rest.xcom("copy")["records"] == RECORDS - 200
    pipeline.sink.assert_exactly_once(pipeline.values)


def test_backfill_with_overlapping_runs_fences_the_older_and_copies_once(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(UNTIL_2025, first_order={"do": "hold", "times": 1}, has_spark=False)
    pipeline.airflow.unpause(pipeline.dag_id)
    pipeline.airflow.backfill(pipeline.dag_id, "2024-01-01T00:00:00Z", "2025-01-01T00:00:00Z", max_active_runs=2)
    pipeline.wait_until_held()
    runs = pipeline.airflow.runs(pipeline.dag_id)
    assert [run.facts()["run_type"] for run in runs] == ["backfill"] * 2
    wait_until(lambda: any(run.has_ended() for run in runs), "the run that is not held to end", 60)
    assert not all(run.has_ended() for run in runs)
    pipeline.faults.release()
    states = {run.wait(): run for run in runs}
    assert set(states) == {"success", "failed"}, [run.messages("copy") for run in runs]
    assert states["success"].xcom("copy")["records"] == RECORDS
    log = states["failed"].log("copy")
    assert "run.fenced" in log and "Two runs of one connector overlapped" in log
    pipeline.sink.assert_exactly_once(pipeline.values)

    states["failed"].clear()
    states["failed"].wait_for_task("copy", lambda task: task["try_number"] == 2, "to run again")
    states["failed"].succeed()
    assert states["failed"].xcom("copy")["status"] == "empty"
    pipeline.sink.assert_exactly_once(pipeline.values)


WAITING_DAGS = """
from airflow.sdk import DAG, Asset, AssetWatcher, task
from airflow_connect.sensors.connector import ConnectorLagSensor, ConnectorRunSensor, SourceChangedSensor
from airflow_connect.triggers.lag_event import ConnectorLagEventTrigger

wait = {{"kafka_conn_id": "our_kafka", "poke_interval": 1, "deferrable": True}}
sink = {{"name": {name!r}, "topics": "${{airflow:our_topic:host}}", "aws.secret.access.key": "not needed to look"}}

with DAG("{name}-wait", schedule=None):
    ConnectorLagSensor(task_id="lag", config=sink, min_records={records}, **wait)
    SourceChangedSensor(task_id="file", config={source!r}, worker={worker!r}, **wait)
    ConnectorRunSensor(task_id="run", connector={name!r}, **wait)

waiting = Asset("{name}-waiting", watchers=[AssetWatcher(
    name="{name}-lag",
    trigger=ConnectorLagEventTrigger(config=sink, kafka_conn_id="our_kafka", min_records={records}, poll_interval=1),
)])
with DAG("{name}-event", schedule=[waiting], catchup=False):

    @task
    def told(*, triggering_asset_events=None):
        return [event.extra for event in triggering_asset_events[waiting]]

    told()
"""


def test_triggerer_resumes_sensors_and_starts_a_dag_once_for_each_position_of_the_connector(
    airflow: AirflowServer,
    make_topic: Callable[..., str],
    make_sink: Callable[..., Sink],
    produce: TopicProducer,
    tmp_path: Path,
) -> None:
    sink = make_sink(make_topic(PARTITIONS))
    file = tmp_path / "app.log"
    source = {
        "name": f"{sink.name}-file",
        "connector.class": "FileStreamSourceConnector",
        "file": str(file),
        "topic": sink.topic,
    }
    worker = {key: value for key, value in sink.worker().items() if key != "bootstrap.servers"}
    airflow.connect("our_topic", "http", {}, host=sink.topic)
    names = {"name": sink.name, "records": 4, "source": source, "worker": worker}
    waits, event = f"{sink.name}-wait", f"{sink.name}-event"
    airflow.deploy(sink.name, WAITING_DAGS.format(**names), waits, event)
    airflow.unpause(waits)
    airflow.unpause(event)

    def write() -> None:
        produce(sink.topic, [(n % PARTITIONS, None, json.dumps({"n": n})) for n in range(4)])

    def offsets(start: int, end: int) -> dict[str, list[int]]:
        return {f"{sink.topic}-{number}": [start, end] for number in range(PARTITIONS)}

    run = airflow.trigger(waits)
    for task_id in ("lag", "file", "run"):
        run.wait_for_task(task_id, lambda task: task["state"] == "deferred", "to be deferred")
    file.write_text("a line\n")
    write()
    for task_id in ("lag", "file"):
        run.wait_for_task(task_id, lambda task: task["state"] == "success", "to succeed")
    assert (run.xcom("lag")["records"], run.xcom("lag")["offsets"]) == (4, offsets(0, 2))
    assert run.xcom("file")["tasks"] == 1

    (first,) = airflow.wait_for_runs(event, 1)
    assert first.succeed().facts()["run_type"] == "asset_triggered"
    (told,) = first.xcom("told")
    assert told["from_trigger"] and told["payload"]["offsets"] == offsets(0, 2)

    report = sink.run()
    run.succeed()
    assert (run.xcom("run")["run_id"], run.xcom("run")["records"]) == (report.run_id, 4)
    write()
    # Between the two, the trigger has looked every second: what waited had been told.
    _, second = airflow.wait_for_runs(event, 2)
    second.succeed()
    assert second.xcom("told")[0]["payload"]["offsets"] == offsets(2, 4)


def test_connect_api_answers_behind_the_login_and_airflow_shows_who_has_changed_what(
    airflow: AirflowServer, kafka: KafkaBroker, unique_name: str
) -> None:
    worker = worker_of(kafka.bootstrap, unique_name)
    airflow.connect(CONNECT_CONN_ID, "connect_worker", {**worker, "sasl.password": KAFKA_SECRET})
    config = {"connector.class": "FileStreamSource", "file": "in.txt", "topic": "lines"}
    one = f"/connect/connectors/{unique_name}"
    created = airflow.send("POST", "/connect/connectors", {"name": unique_name, "config": config})
    assert (created.status_code, created.headers["location"]) == (201, airflow.url + one)
    assert airflow.send("GET", "/connect/connectors").json() == [unique_name]
    assert airflow.send("GET", f"{one}/status").json()["connector"]["state"] == "RUNNING"
    stranger = {"Authorization": "Bearer of-nobody"}
    assert airflow.send("DELETE", one, headers=stranger).status_code == 403
    assert airflow.send("DELETE", one, headers={"Origin": "https://evil.example.com"}).status_code == 403
    assert airflow.send("DELETE", one).status_code == 204
    entries = airflow.get("eventLogs", event_prefix_pattern="connect.", order_by="event_log_id")["event_logs"]
    ours = [entry for entry in entries if entry["event"].startswith("connect.")]
    assert [entry["event"] for entry in ours] == ["connect.create_connector", "connect.delete_connector"]
    assert {json.loads(entry["extra"])["connector"] for entry in ours} == {unique_name}
    assert KAFKA_SECRET not in json.dumps(entries) + airflow.log_path.read_text()


def test_task_marked_failed_ends_driver_and_jvm_and_nothing_is_committed(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(first_order={"do": "hold", "times": 1})
    pipeline.airflow.unpause(pipeline.dag_id)
    run = pipeline.trigger()
    pipeline.wait_until_held()
    (token,) = drivers_of(pipeline.airflow).values()
    assert len(processes_of(token)) >= DRIVER_JVM_AND_DAEMON

    run.set_task_state("copy", "failed")
    wait_until(lambda: processes_of(token) == [], "driver, JVM and workers to be gone", 30)
    assert run.wait() == "failed"
    run.wait_for_message("copy", "The task was killed, and so was its run.")
    assert (pipeline.sink.keys(), pipeline.sink.offsets()) == ([], {})

    again = pipeline.trigger()
    again.succeed()
    assert again.xcom("copy")["records"] == RECORDS
    pipeline.sink.assert_exactly_once(pipeline.values)


@pytest.mark.budget(60)  # two runs with Spark, and a triggerer that has to be missed before it is replaced
@pytest.mark.timeout(600)
def test_deferred_run_ends_with_its_task_and_outlives_its_triggerer(deploy: Callable[..., Pipeline]) -> None:
    """Both in one test, because each needs a run with Spark that is held in its copy."""
    pipeline = deploy(
        first_order={"do": "hold", "times": 2},
        arguments='driver_conn_id="our_driver", deferrable=True, poll_interval=1, retries=0',
    )
    airflow = pipeline.airflow
    # The environment marks the drivers as those of this Airflow.
    with DriverServiceProcess("--lease", "240", env={"AIRFLOW_HOME": str(airflow.home)}) as service:
        found = service.connection()
        airflow.connect("our_driver", found.pop("conn_type"), found.pop("extra"), **found)
        airflow.unpause(pipeline.dag_id)
        run = pipeline.trigger()
        pipeline.wait_until_held()
        run.wait_for_task("copy", lambda task: task["state"] == "deferred", "to wait without a slot")
        (token,) = drivers_of(airflow).values()
        assert len(processes_of(token)) >= DRIVER_JVM_AND_DAEMON
        run.set_task_state("copy", "failed")
        wait_until(lambda: processes_of(token) == [], "driver, JVM and workers to be gone", 60)
        assert run.wait() == "failed"
        assert (pipeline.sink.keys(), pipeline.sink.offsets()) == ([], {})

        run = pipeline.trigger()
        pipeline.wait_until_held(2)
        run.wait_for_task("copy", lambda task: task["state"] == "deferred", "to wait without a slot")
        airflow.kill_triggerer()
        assert len(drivers_of(airflow)) == 1
        airflow.start_triggerer()
        pipeline.faults.release()
        run.succeed()
        assert run.xcom("copy")["records"] == RECORDS
        assert pipeline.asset_extras()[0]["records"] == RECORDS
        pipeline.sink.assert_exactly_once(pipeline.values)
        assert drivers_of(airflow) == {}
        messages = run.messages("copy")
        assert [line for line in messages if line.startswith(f"{pipeline.dag_id}: {RECORDS} records in 2 files, ")]
        assert "copy ..." in messages, "what the triggerer logs is in the log of the task"
        secrets = (KAFKA_SECRET, JAAS_SECRET, CONVERTER_SECRET, found["password"])
        seen = [run.log("copy"), json.dumps(run.task("copy")), service.printed, airflow.log_path.read_text()]
        assert [secret for secret in secrets if any(secret in text for text in seen)] == []


HANGING_DAG = """
from datetime import timedelta
from airflow.sdk import DAG
from airflow_connect.operators.connector import ConnectorOperator

where = {{"kafka_conn_id": None, "driver_conn_id": "hanging_driver", "deferrable": True, "poll_interval": 1}}
with DAG({name!r}, schedule=None):
    ConnectorOperator(task_id="marked", config={marked!r}, **where)
    ConnectorOperator(task_id="timed", config={timed!r}, execution_timeout=timedelta(seconds={limit_s}), **where)
"""
LIMIT_S, PROCESSES_OF_HANG, LEASE_S = 40, 4, 240
"""The time limit counts from the deferral: on a busy machine the triggerer takes up a trigger after many seconds."""


@pytest.mark.budget(70)  # a service, two tries of two deferred tasks, and a time limit that is waited for
@pytest.mark.timeout(600)
def test_deferred_run_ends_when_its_task_is_cleared_marked_as_success_or_out_of_time(
    airflow: AirflowServer, tmp_path: Path, unique_name: str
) -> None:
    files = {task: tmp_path / f"{task}-pids" for task in ("marked", "timed")}
    configs = {
        task: {"name": f"{unique_name}-{task}", "fake": "hang", "pids": str(pids), "stopped": f"{pids}-stopped",
               "committed": f"{pids}-committed"}
        for task, pids in files.items()
    }  # fmt: skip
    with DriverServiceProcess("--lease", str(LEASE_S), env=fake_driver_env()) as service:
        found = service.connection()
        airflow.connect("hanging_driver", found.pop("conn_type"), found.pop("extra"), **found)
        airflow.deploy(unique_name, HANGING_DAG.format(name=unique_name, limit_s=LIMIT_S, **configs), unique_name)
        airflow.unpause(unique_name)
        run = airflow.trigger(unique_name)

        def waits_in_try(number: int) -> Callable[[dict[str, Any]], bool]:
            return lambda task: (task["state"], task["try_number"]) == ("deferred", number)

        run.wait_for_task("marked", waits_in_try(1), "to wait without a slot")
        run.wait_for_trigger("marked", 1)

        def working(task: str) -> list[int]:
            return [pid for pid in pids_in(files[task]) if is_alive(pid)]

        wait_until(lambda: len(working("marked")) == PROCESSES_OF_HANG, "the driver to have started")
        run.clear()
        run.wait_for_task("marked", waits_in_try(2), "to wait again")
        # The second try follows the run that it finds, or starts another one if that has been ended: there is one.
        wait_until(lambda: len(working("marked")) == PROCESSES_OF_HANG, "one driver to work", 60)

        # A trigger that had not begun would not learn that its task was marked: the lease would have to end the run.
        run.wait_for_trigger("marked", 2)
        run.set_task_state("marked", "success")
        wait_until(lambda: working("marked") == [], "the driver of the marked task to be gone", LEASE_S + 60)
        assert run.wait() == "failed"
        assert {task: run.task(task)["state"] for task in files} == {"marked": "success", "timed": "failed"}
        wait_until(lambda: working("timed") == [], "the driver without time to be gone", LEASE_S + 60)
        number = run.task("timed")["try_number"]
        wait_until(lambda: "was ended" in run.log("timed", number), "the triggerer's log to be there", 60)
        assert [config["committed"] for config in configs.values() if Path(config["committed"]).exists()] == []


def test_progress_is_in_the_log_and_secrets_are_nowhere(deploy: Callable[..., Pipeline], s3: S3Server) -> None:
    pipeline = deploy(first_order={"do": "hold", "times": 1})
    secrets = (KAFKA_SECRET, JAAS_SECRET, CONVERTER_SECRET, s3.secret_key)
    airflow = pipeline.airflow
    airflow.unpause(pipeline.dag_id)
    run = pipeline.trigger({"run.max.records": RECORDS})
    pipeline.wait_until_held()
    (token,) = drivers_of(airflow).values()
    seen = {f"environment of {pid}": json.dumps(environment_of(pid)) for pid in processes_of(token)}
    assert len(seen) >= DRIVER_JVM_AND_DAEMON
    commands = {f"command line of {pid}": command for pid, command in command_lines() if pid in processes_of(token)}
    run.wait_until_message_is_older("copy", "copy ...", PROGRESS_EVERY_S)
    pipeline.faults.release()
    run.succeed()

    task = run.task("copy")
    seen |= {
        **commands,
        "task log": run.log("copy"),
        "task instance": json.dumps(task),
        "XCom": json.dumps(run.xcom("copy")),
        "DAG run": json.dumps(run.facts()),
        "asset events": json.dumps(pipeline.asset_extras()),
        "connections": json.dumps(airflow.get("connections")),
        **{str(path): path.read_text(errors="replace") for path in airflow.home.glob("logs/**/*.log")},
        "log of all components": airflow.log_path.read_text(errors="replace"),
    }
    assert [(where, secret) for where, text in seen.items() for secret in secrets if secret in text] == []
    messages = run.messages("copy")
    assert f"Up to {RECORDS} records of {PARTITIONS} partitions in 2 tasks." in messages
    assert [line for line in messages if re.match(r"copy \d+%: \d+ of 300 records, ", line)]
    assert [line for line in messages if re.match(f"{pipeline.dag_id}: {RECORDS} records in 2 files, ", line)]
    rendered = task["rendered_fields"]
    assert rendered["config"]["topics"] == pipeline.sink.topic
    assert rendered["config"]["value.converter.basic.auth.user.info"] == "***"
    assert rendered["worker"]["admin.sasl.jaas.config"] == "***"


def test_trigger_form_asks_for_the_limits(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy()
    params = pipeline.airflow.get(f"dags/{pipeline.dag_id}/details")["params"]
    assert tuple(params) == RUN_KEYS
    assert [param["schema"]["title"] for param in params.values()] == [
        "At most this many records",
        "At most this many bytes",
        "At most this many seconds",
        "Only records before",
    ]


def test_what_was_approved_is_what_is_copied_and_what_was_rejected_is_not(deploy: Callable[..., Pipeline]) -> None:
    pipeline = deploy(more=GROUP_DAG)
    dag_id = f"{pipeline.dag_id}-next"
    pipeline.airflow.unpause(dag_id)

    run = pipeline.airflow.trigger(dag_id)
    run.wait_for_question("orders.approve")
    pipeline.write(20)
    question = run.answer("orders.approve", "Approve")
    run.succeed()
    assert f"Up to {RECORDS} records of {PARTITIONS} partitions" in question["body"]
    assert run.xcom("orders.copy")["records"] == RECORDS

    run = pipeline.airflow.trigger(dag_id)
    run.wait_for_question("orders.approve")
    assert "Up to 20 records" in run.answer("orders.approve", "Reject")["body"]
    run.succeed()
    assert run.task("orders.copy")["state"] == "skipped"
    assert len(pipeline.sink.values()) == RECORDS
