"""Every sensor on a real broker: in poke and reschedule mode, and deferred, through its trigger in an event loop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from airflow._shared.module_loading import import_string
from airflow.sdk.exceptions import (
    AirflowFailException,
    AirflowRescheduleException,
    AirflowSensorTimeout,
    AirflowSkipException,
    TaskDeferred,
)

from airflow_connect.api import ConfigDef, SourceConnector, SourceTask
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.errors import ConfigError
from airflow_connect.sensors.connector import ConnectorLagSensor, ConnectorRunSensor, SourceChangedSensor
from airflow_connect.sensors.peeking import PeekingSensor, milliseconds
from airflow_connect.sensors.topics import PartitionCompleteSensor, TopicHasDataSensor
from airflow_connect.triggers.peek import PeekTrigger
from tests.support.copies.local import LocalSink, local_sink
from tests.support.kafka_data import TopicProducer
from tests.support.servers.databases import sqlite_in

pytestmark = pytest.mark.integration

HOUR = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(hours=2)
HOUR_MS = round(HOUR.timestamp() * 1000)


class Case(NamedTuple):
    """A sensor that waits, what ends its wait, and what it then returns, among other things."""

    make: Callable[..., PeekingSensor]
    satisfy: Callable[[], Any]
    found: Mapping[str, Any]


@pytest.fixture(autouse=True)
def kafka_default(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    extra = {"bootstrap.servers": kafka.bootstrap, "runs.storage.replication.factor": "1"}
    connection = json.dumps({"conn_type": "kafka", "extra": {**extra, "sasl.password": "kafka-wonder1and"}})
    monkeypatch.setenv("AIRFLOW_CONN_KAFKA_DEFAULT", connection)


@pytest.fixture
def sink(kafka: KafkaBroker, tmp_path: Path, make_topic: Callable[..., str]) -> LocalSink:
    return local_sink(kafka, tmp_path / "copied", make_topic(2))


@pytest.fixture
def cases(
    sink: LocalSink, produce: TopicProducer, tmp_path: Path, unique_name: str, monkeypatch: pytest.MonkeyPatch
) -> dict[str, Case]:
    """By name; the sensors wait for the same topic, connector and file."""
    config, topic = sink.connector(), sink.topic
    rows = [(n % 2, None, json.dumps({"n": n}), HOUR_MS + n) for n in range(4)]
    file = tmp_path / "log.txt"
    tables = sqlite_in(tmp_path)
    tables.execute("CREATE TABLE orders (id INTEGER PRIMARY KEY)", "CREATE TABLE items (id INTEGER PRIMARY KEY)")
    database = {
        "name": f"{unique_name}-db",
        "connector.class": "JdbcSource",
        "mode": "incrementing",
        "incrementing.column.name": "id",
        "topic.prefix": f"{unique_name}-",
        "tasks.max": "4",
    }
    monkeypatch.setenv("AIRFLOW_CONN_SHOP_DB", json.dumps({"conn_type": "sqlite", "host": tables.jdbc_url[12:]}))
    source = {
        "name": unique_name,
        "connector.class": "FileStreamSourceConnector",
        "file": str(file),
        "topic": topic,
    }
    worker = {name: value for name, value in sink.worker().items() if name != "bootstrap.servers"}

    def write() -> None:
        produce(topic, rows)

    def run() -> None:
        write()
        sink.run()

    every: dict[str, Any] = {"task_id": "wait", "poke_interval": 1}
    return {
        "lag": Case(
            lambda **kw: ConnectorLagSensor(config=config, min_records=4, min_age=timedelta(days=9999), **every, **kw),
            write,
            {"connector": sink.name, "records": 4, "offsets": {f"{topic}-0": [0, 2], f"{topic}-1": [0, 2]}},
        ),
        "data": Case(
            lambda **kw: TopicHasDataSensor(topics=[topic], min_records=3, since=HOUR.isoformat(), **every, **kw),
            write,
            {"records": 4, "topics": {topic: 4}},
        ),
        "run": Case(
            lambda **kw: ConnectorRunSensor(connector=sink.name, since=HOUR - timedelta(days=9), **every, **kw),
            run,
            {"connector": sink.name, "status": "done", "records": 4},
        ),
        "empty run": Case(
            lambda **kw: ConnectorRunSensor(connector=sink.name, since=HOUR - timedelta(days=9), **every, **kw),
            sink.run,
            {"connector": sink.name, "status": "empty", "records": 0},
        ),
        "time": Case(
            lambda **kw: PartitionCompleteSensor(topics=topic, time=str(HOUR), **every, **kw),
            write,
            {"time_ms": HOUR_MS, "passed": 2, "idle": 0, "waiting": []},
        ),
        "source": Case(
            lambda **kw: SourceChangedSensor(config=source, worker=worker, **every, **kw),
            lambda: file.write_text("first line\n"),
            {"connector": unique_name, "tasks": 1, "source_partitions": 0},
        ),
        "database": Case(
            lambda **kw: SourceChangedSensor(config=database, worker=worker, db_conn_id="shop_db", **every, **kw),
            lambda: tables.execute("INSERT INTO orders VALUES (1)"),
            {"connector": f"{unique_name}-db", "tasks": 1, "source_partitions": 0},
        ),
    }


NAMES = ("lag", "data", "run", "empty run", "time", "source", "database")


def assert_found(found: Any, expected: Mapping[str, Any]) -> None:
    assert {key: found[key] for key in expected} == expected
    assert json.loads(json.dumps(found)) == found, "an XCom is plain JSON"


class TaskInstance:
    """As much of one as reschedule mode reads."""

    def get_first_reschedule_date(self, context: Any) -> datetime | None:
        return None


CONTEXT: Any = {"ti": TaskInstance()}


@pytest.mark.parametrize("name", NAMES)
def test_sensor_pokes_until_it_finds_what_it_waits_for(name: str, cases: dict[str, Case]) -> None:
    case = cases[name]
    rescheduled = case.make(mode="reschedule")
    with pytest.raises(AirflowRescheduleException):
        rescheduled.execute(CONTEXT)
    sensor = case.make()
    assert sensor.poke({}) is False
    case.satisfy()
    assert_found(sensor.execute({}), case.found)
    assert_found(rescheduled.execute(CONTEXT), case.found)


def deferred(sensor: PeekingSensor) -> TaskDeferred:
    with pytest.raises(TaskDeferred) as caught:
        sensor.execute({})
    return caught.value


def instance_of(trigger: Any) -> Any:
    """The trigger as a triggerer makes it, from what the database stores."""
    path, arguments = trigger.serialize()
    return import_string(path)(**json.loads(json.dumps(arguments)))


async def first_event(trigger: Any, after: Callable[[], Any] = lambda: None) -> Any:
    trigger.poll_interval = 0.1
    events = trigger.run()
    waiting = asyncio.ensure_future(anext(events))
    done, _ = await asyncio.wait([waiting], timeout=0.4)  # the first looks find nothing
    assert not done or after.__name__ == "<lambda>", "it fired too early"
    await asyncio.to_thread(after)
    event = await asyncio.wait_for(waiting, 30)
    await events.aclose()
    return event.payload


@pytest.mark.parametrize("name", NAMES)
def test_deferred_sensor_is_resumed_with_what_its_trigger_found(name: str, cases: dict[str, Case]) -> None:
    case = cases[name]
    sensor = case.make(deferrable=True, timeout=60)
    wait = deferred(sensor)
    assert (wait.method_name, wait.timeout) == ("execute_complete", timedelta(seconds=60))
    assert isinstance(wait.trigger, PeekTrigger)
    stored = json.dumps(wait.trigger.serialize())
    assert "kafka-wonder1and" not in stored, "connections are read where the trigger runs"

    def satisfy() -> None:
        case.satisfy()

    event = asyncio.run(first_event(instance_of(wait.trigger), satisfy))
    assert_found(sensor.execute_complete({}, event), case.found)
    # What is there already needs no triggerer.
    assert_found(case.make(deferrable=True).execute({}), case.found)


def test_error_that_cannot_pass_fails_at_once_in_every_mode(unique_name: str) -> None:
    sensors = [
        TopicHasDataSensor(task_id="wait", topics=unique_name, **mode)
        for mode in ({}, {"mode": "reschedule"}, {"deferrable": True})
    ]
    for sensor in sensors:
        with pytest.raises(AirflowFailException, match=f"config.topic_missing: Kafka has no topic {unique_name}"):
            sensor.execute(CONTEXT)
    with pytest.raises(AirflowSkipException):
        TopicHasDataSensor(task_id="wait", topics=unique_name, deferrable=True, soft_fail=True).execute({})
    event = asyncio.run(first_event(instance_of(PeekTrigger(**sensors[0].request().to_json()))))
    with pytest.raises(AirflowFailException, match=r"config\.topic_missing"):
        sensors[0].execute_complete({}, event)
    missing = TopicHasDataSensor(task_id="wait", topics=unique_name, kafka_conn_id="nowhere")
    with pytest.raises(AirflowFailException, match="nowhere"):
        missing.execute({})


def test_broker_that_is_down_is_waited_for_and_logged_once(
    kafka: KafkaBroker,
    make_topic: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    topic = make_topic()
    down = {"conn_type": "kafka", "extra": {"bootstrap.servers": "127.0.0.1:1"}}
    monkeypatch.setenv("AIRFLOW_CONN_DOWN", json.dumps(down))
    monkeypatch.setattr("airflow_connect.kafka.clients.short_lived.ensure_reachable.__defaults__", (0.1,))
    sensor = TopicHasDataSensor(
        task_id="wait", topics=topic, kafka_conn_id="down", poke_interval=0.05, timeout=0.6, mode="poke"
    )
    messages: list[str] = []
    monkeypatch.setattr(
        type(sensor.log), "warning", lambda self, text, *args: messages.append(text % args), raising=False
    )
    with pytest.raises(AirflowSensorTimeout):
        sensor.execute({})
    told = [message for message in messages if "Task Runner" not in message]
    assert len(told) == 1 and told[0].startswith("server.unavailable: No Kafka broker of bootstrap.servers=")


def test_trigger_waits_for_a_connection_that_airflow_does_not_find_for_a_while(
    kafka: KafkaBroker,
    make_topic: Callable[..., str],
    produce: TopicProducer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    topic = make_topic()
    produce(topic, [(0, None, "there")])
    stored = tmp_path / "worker.json"
    stored.write_text('{"client.id": "from object storage"}')
    where: dict[str, Any] = {"worker": f"file://{stored}", "worker_conn_id": "later", "kafka_conn_id": None}
    sensor = TopicHasDataSensor(task_id="wait", topics=topic, **where)
    request = sensor.request()
    assert request.arguments.worker == {"client.id": "from object storage"}

    def connect() -> None:
        worker = {"conn_type": "connect_worker", "host": kafka.bootstrap}
        monkeypatch.setenv("AIRFLOW_CONN_LATER", json.dumps(worker))

    event = asyncio.run(first_event(instance_of(PeekTrigger(**request.to_json())), connect))
    assert event["found"]["records"] == 1


def test_key_of_type_password_is_not_stored_with_a_trigger_whatever_its_name() -> None:
    config = {"name": "s", "connector.class": "JdbcSourceConnector", "query.masked": "select ssn from patients"}
    sensor = SourceChangedSensor(task_id="wait", config=config, worker={"bootstrap.servers": "b:1"}, deferrable=True)
    with pytest.raises(ConfigError, match=r"The value of query\.masked in the config of task 'wait' is a secret"):
        sensor.request().ensure_no_secrets()


def test_secret_is_not_stored_with_a_trigger(sink: LocalSink) -> None:
    worker = {"sasl.password": "jaas-rabbit77hole"}
    sensor = ConnectorLagSensor(task_id="wait", config=sink.connector(), worker=worker, min_records=1, deferrable=True)
    with pytest.raises(AirflowFailException, match=r"airflow\.secret_in_trigger.*sasl\.password") as caught:
        sensor.execute({})
    assert "jaas-rabbit77hole" not in str(caught.value)
    # Keys that are not needed to look do not travel, so their secrets are no obstacle.
    config = {**sink.connector(), "aws.secret.access.key": "jaas-rabbit77hole"}
    lag = ConnectorLagSensor(task_id="wait", config=config, min_records=1, deferrable=True)
    assert set(deferred(lag).trigger.arguments["config"]) == {"name", "topics"}


def test_arguments_that_cannot_work_are_refused_when_the_dag_file_is_parsed() -> None:
    config = {"name": "c", "topics": "t"}
    with pytest.raises(ConfigError, match="None of min_records, min_bytes and min_age"):
        ConnectorLagSensor(task_id="wait", config=config)
    with pytest.raises(ConfigError, match="min_records is 0"):
        TopicHasDataSensor(task_id="wait", topics="t", min_records=0)
    with pytest.raises(ConfigError, match="neither config and config_file"):
        SourceChangedSensor(task_id="wait")
    with pytest.raises(ConfigError, match="connector and also config"):
        ConnectorRunSensor(task_id="wait", connector="c", config=config)
    with pytest.raises(ConfigError, match="on_failure is 'skip'"):
        ConnectorRunSensor(task_id="wait", connector="c", on_failure="skip")


def test_airflow_decides_whether_sensors_are_deferrable_unless_they_say_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not TopicHasDataSensor(task_id="wait", topics="t").deferrable
    monkeypatch.setenv("AIRFLOW__OPERATORS__DEFAULT_DEFERRABLE", "True")
    assert TopicHasDataSensor(task_id="wait", topics="t").deferrable
    assert not TopicHasDataSensor(task_id="wait", topics="t", deferrable=False).deferrable


def test_times_are_read_as_templates_render_them() -> None:
    assert milliseconds(str(HOUR), "time") == milliseconds(HOUR, "time") == HOUR_MS
    assert milliseconds(HOUR.replace(tzinfo=None).isoformat(), "time") == HOUR_MS
    assert milliseconds("", "since") is None
    with pytest.raises(ConfigError, match="time is 'noon', which is not a time"):
        milliseconds("noon", "time")


class AlwaysReady(SourceConnector):
    """A source with Connect's default `task_configs`, which always returns a task."""

    task_class = SourceTask
    config_def = ConfigDef()


def test_source_that_always_has_a_task_is_refused(kafka: KafkaBroker, unique_name: str) -> None:
    config = {"name": unique_name, "connector.class": f"{__name__}:AlwaysReady"}
    worker = {
        "bootstrap.servers": kafka.bootstrap,
        "key.converter": "StringConverter",
        "value.converter": "StringConverter",
    }
    sensor = SourceChangedSensor(task_id="wait", config=config, worker=worker)
    with pytest.raises(AirflowFailException, match="AlwaysReady cannot tell whether there is something to read"):
        sensor.poke(CONTEXT)


def test_sink_is_no_source_and_a_source_has_no_lag(sink: LocalSink) -> None:
    with pytest.raises(AirflowFailException, match="is not a source"):
        SourceChangedSensor(task_id="wait", config=sink.connector(), worker=sink.worker()).execute({})
    source = {"name": "s", "connector.class": "FileStreamSourceConnector", "file": "f", "topic": "t"}
    with pytest.raises(AirflowFailException, match="use SourceChangedSensor"):
        ConnectorLagSensor(task_id="wait", config=source, min_records=1).execute({})
