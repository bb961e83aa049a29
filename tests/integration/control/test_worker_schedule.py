"""When a worker runs connectors, without Spark: by lag, by age, and a round over idle ones."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

import pytest

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.due import Due, lag_condition
from airflow_connect.control.worker.lag_looks import LagLooks
from airflow_connect.control.worker.rounds import Pace, Rounds
from airflow_connect.kafka.admin import many_offsets
from airflow_connect.kafka.clients import short_lived
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.spec import RunSpec
from tests.support.copies.s3 import InProcessEngine
from tests.support.processes.forked_worker import free_port
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

IDLE = 20


@pytest.fixture
def worker(kafka, unique_name) -> dict[str, str]:
    strings = {"key.converter": STRINGS, "value.converter": STRINGS}
    return {**worker_of(kafka.bootstrap, unique_name), **strings, "runs.storage.replication.factor": "1"}


def waiting(name: str, topics: str, file: object, **conditions: str) -> Due:
    keys = {key.replace("_", "."): value for key, value in conditions.items()}
    config = {"name": name, "connector.class": "FileStreamSink", "topics": topics, "file": f"{file}", **keys}
    return Due(name, config, 0, lag_condition(config))


def test_connectors_run_when_enough_records_wait_or_one_waits_for_long(
    worker, make_topic, produce, tmp_path, unique_name, monkeypatch
):
    topic = make_topic()
    monkeypatch.setattr(short_lived, "BOOTSTRAP_TIMEOUT_S", 2.0)
    now_ms = time.time_ns() // 1_000_000
    old_ms = now_ms - 60_000
    produce(topic, [(0, None, b"1", old_ms, []), (0, None, b"2", now_ms, []), (0, None, b"3", now_ms, [])])

    def due(name: str, **conditions: str) -> Due:
        return waiting(f"{unique_name}-{name}", topic, tmp_path / name, **conditions)

    every = [
        due("few", run_lag_records="4"),
        due("enough", run_lag_records="3"),
        due("old", run_lag_records="4", run_lag_seconds="50"),
        due("young", run_lag_seconds="900"),
        waiting(f"{unique_name}-lost", f"{topic}-no", tmp_path / "lost", run_lag_records="1"),
        waiting(f"{unique_name}-wrong", "", tmp_path / "wrong", run_lag_records="1"),
    ]
    # A cluster that does not answer concerns only the connectors that use it.
    dead = {f"{client}.override.bootstrap.servers": f"127.0.0.1:{free_port()}" for client in ("consumer", "admin")}
    every.append(waiting(f"{unique_name}-dead", topic, tmp_path / "dead", run_lag_records="9"))
    every[-1] = every[-1]._replace(config={**every[-1].config, **dead})
    looks = LagLooks(lambda config: RunSpec(config, worker))

    def reached() -> set[str]:
        return {name.removeprefix(f"{unique_name}-") for name in looks.reached(every)}

    assert reached() == {
        "enough",
        "old",
        "lost",
        "wrong",
        "dead",
    }  # What cannot be looked at is run, and its run says why.
    for copied in every[1:3]:
        assert run_connector(RunSpec(copied.config, worker), engine=InProcessEngine()).records == 3
    del every[-1]
    assert reached() == {"lost", "wrong"}
    produce(topic, [(0, None, b"4", now_ms, [])])
    assert reached() == {"few", "lost", "wrong"}


def test_a_reference_with_another_value_is_looked_up_again_after_a_look_has_failed(
    worker, make_topic, tmp_path, unique_name, monkeypatch
):
    monkeypatch.setattr(short_lived, "BOOTSTRAP_TIMEOUT_S", 2.0)
    secrets = tmp_path / "cluster.properties"
    worker = {
        **worker,
        "config.providers": "file",
        "config.providers.file.class": "org.apache.kafka.common.config.provider.FileConfigProvider",
    }
    given = {f"{client}.override.bootstrap.servers": f"${{file:{secrets}:brokers}}" for client in ("consumer", "admin")}
    due = waiting(unique_name, make_topic(), tmp_path / "out", run_lag_records="9")
    due = due._replace(config={**due.config, **given})
    looks = LagLooks(lambda config: RunSpec(config, worker))
    secrets.write_text(f"brokers=127.0.0.1:{free_port()}\n")
    assert looks.reached([due]) == {unique_name}  # It runs whatever its lag is, and its run says why.
    secrets.write_text(f"brokers={worker['bootstrap.servers']}\n")
    assert looks.reached([due]) == set()


def test_a_look_at_many_connectors_takes_as_many_requests_as_at_one(
    worker, make_topic, tmp_path, unique_name, monkeypatch
):
    topic = make_topic(partitions=5)
    asked: list[str] = []
    for name in ("describe_each", "offset_of_each", "committed_of_each"):

        def counting(*given: object, _name: str = name, _original: object = getattr(many_offsets, name)) -> object:
            asked.extend([_name] if any(isinstance(one, Mapping | set) and one for one in given) else [])
            return _original(*given)  # type: ignore[operator]

        monkeypatch.setattr(many_offsets, name, counting)
    every = [waiting(f"{unique_name}-{n}", topic, tmp_path / f"{n}", run_lag_records="1") for n in range(200)]
    looks = LagLooks(lambda config: RunSpec(config, worker))
    assert looks.reached(every) == set()
    first, asked[:] = len(asked), []
    assert looks.reached(every) == set()
    assert "committed_of_each" not in asked and len(asked) < first < 10


@pytest.mark.parametrize("looks_early", [True, False])
def test_a_record_is_copied_soon_although_the_interval_is_long_unless_it_is_set(
    worker, make_topic, produce, tmp_path, unique_name, monkeypatch, looks_early
):
    monkeypatch.setattr("airflow_connect.control.worker.rounds.LAG_EVERY_S", 0.1)
    monkeypatch.setattr("airflow_connect.control.worker.looking_early.SOON_S", 0.1)
    settings = ControlSettings.from_worker({**worker, **({} if looks_early else {"run.interval.seconds": "3600"})})
    topics = StateTopics(settings)
    topics.open()
    herder = Herder(topics, settings, "me:1")
    topic, other = make_topic(), make_topic()
    files = {name: tmp_path / name for name in (topic, other)}

    def create(name: str) -> None:
        herder.create(name, {"connector.class": "FileStreamSink", "topics": name, "file": str(files[name])})

    create(topic)
    told: list[str] = []
    stopping = threading.Event()
    rounds = Rounds(topics, herder, InProcessEngine(), told.append)
    pace = Pace(3600, looks_early=not settings.has_own_interval)
    loop = threading.Thread(target=rounds.run_until, args=(stopping, pace))
    loop.start()
    try:
        wait_until(lambda: bool(told), "the first run")
        produce(topic, [(0, None, b"1", 0, [])])
        if looks_early:
            wait_until(files[topic].exists, "the record")
        produce(other, [(0, None, b"2", 0, [])])
        create(other)
        wait_until(files[other].exists, "a new connector, which runs at once")
    finally:
        stopping.set()
        loop.join()
    assert files[topic].exists() is looks_early


@pytest.mark.budget(15)
def test_a_round_over_idle_connectors_starts_no_spark_and_writes_no_state(worker, make_topic, tmp_path, monkeypatch):
    class NoEngine(InProcessEngine):
        def run(self, *_: object) -> list[object]:  # type: ignore[override]
            raise AssertionError("nothing is to be copied")

    settings = ControlSettings.from_worker(worker)
    topics = StateTopics(settings)
    topics.open()
    herder = Herder(topics, settings, "me:1")
    topic = make_topic()
    for number in range(IDLE):
        config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(tmp_path / f"{number}")}
        herder.create(f"idle-{number}", config)
    told: list[str] = []
    stopping = threading.Event()
    written: list[object] = []
    change = topics.change
    monkeypatch.setattr(topics, "change", lambda *given: (written.append(given), change(*given)))
    rounds = Rounds(topics, herder, NoEngine(), told.append)
    loop = threading.Thread(target=rounds.run_until, args=(stopping, Pace(3600, at_once=3)))
    loop.start()
    try:
        wait_until(lambda: len(told) >= IDLE, "a round")
    finally:
        stopping.set()
        loop.join()
    assert [line for line in told if "nothing to copy" not in line] == []
    assert len(told) == IDLE and written == []
