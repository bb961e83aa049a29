"""Several runs of a worker at the same time, and runs that last too long, hang, or whose connector is taken away."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.rounds import Pace, Rounds
from airflow_connect.errors import TaskFailedError
from tests.support.copies.s3 import InProcessEngine
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


class HangingEngine(InProcessEngine):
    """Tasks of the connector `slow` wait until they are released; if they may be cancelled, until that."""

    def __init__(self, *, is_cancellable: bool) -> None:
        super().__init__()
        self.hangs, self.released = threading.Event(), threading.Event()
        self._is_cancellable = is_cancellable
        self._cancelled: set[str] = set()

    def run(self, settings: Any, tasks: Any) -> list[Any]:
        reports = super().run(settings, tasks)
        if settings.connector["name"].endswith("slow") and not self.released.is_set():
            self.hangs.set()
            while not self.released.wait(0.02):
                if settings.run_id in self._cancelled:
                    raise TaskFailedError("The Spark job failed: cancelled.")
        return reports

    def cancel(self, run_id: str) -> None:
        if self._is_cancellable:
            self._cancelled.add(run_id)


class Worker:
    """The rounds of a worker without REST; its connectors write topics to files of the same name."""

    def __init__(self, settings: ControlSettings, folder: Path, engine: HangingEngine) -> None:
        self._topics = StateTopics(settings)
        self._topics.open()
        self.herder = Herder(self._topics, settings, "me:1")
        self._folder, self.group = folder, settings.group_id
        self.engine = engine
        self.told: list[str] = []
        self.rounds = Rounds(self._topics, self.herder, engine, self.told.append)

    def create(self, name: str, topic: str, **more: str) -> None:
        config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(self._folder / name)}
        more = {key.replace("_", "."): value for key, value in more.items()}
        self.herder.create(self.named(name), {**config, **more})

    def named(self, name: str) -> str:
        """The name of a connector in Kafka, where tests share groups."""
        return f"{self.group}-{name}"

    def task(self) -> dict[str, Any]:
        """The state of the task of `slow`."""
        (found,) = self.herder.status(self.named("slow"))["tasks"]
        return dict(found)

    def text(self, name: str) -> str:
        file = self._folder / name
        return file.read_text() if file.exists() else ""

    def wait_until_copied(self, name: str) -> None:
        """Return when the one record has been copied, once."""
        wait_until(lambda: self.text(name) == "1\n", f"the record in {name}; the log: {self.told}")

    def wait_for(self, part: str) -> None:
        wait_until(lambda: any(part in line for line in self.told), part)

    @contextmanager
    def running(self, pace: Pace) -> Iterator[None]:
        stopping = threading.Event()
        loop = threading.Thread(target=self.rounds.run_until, args=(stopping, pace))
        loop.start()
        try:
            yield
        finally:
            self.engine.released.set()
            stopping.set()
            loop.join()


@pytest.fixture
def worker_with(kafka, unique_name, tmp_path):
    strings = {"key.converter": STRINGS, "value.converter": STRINGS, "runs.storage.replication.factor": "1"}
    settings = ControlSettings.from_worker({**worker_of(kafka.bootstrap, unique_name), **strings})
    return lambda *, is_cancellable: Worker(settings, tmp_path, HangingEngine(is_cancellable=is_cancellable))


def test_a_long_run_does_not_keep_other_connectors_waiting(worker_with, make_topic, produce):
    worker, topic = worker_with(is_cancellable=True), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("slow", topic)
    with worker.running(Pace(3600, at_once=2)):
        assert worker.engine.hangs.wait(20)
        for name in ("a", "b", "c"):
            worker.create(name, topic)
            worker.wait_until_copied(name)
        assert not any("slow" in line for line in worker.told)
        worker.engine.released.set()
        worker.wait_until_copied("slow")


def test_a_run_that_takes_too_long_is_ended_and_fails(worker_with, make_topic, produce):
    worker, topic = worker_with(is_cancellable=True), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("slow", topic, run_timeout_seconds="1")
    with worker.running(Pace(3600)):
        worker.wait_for(f"A run of {worker.named('slow')} has taken longer than 1 s.")
        wait_until(lambda: worker.task()["state"] == "FAILED", "its state")
        assert "longer run.timeout.seconds" in worker.task()["trace"]
        assert worker.text("slow") == ""
        worker.engine.released.set()
        worker.herder.patch_config(worker.named("slow"), {"run.timeout.seconds": None})
        worker.wait_until_copied("slow")


def test_a_run_that_hangs_is_left_alone_and_never_commits(worker_with, make_topic, produce, monkeypatch):
    monkeypatch.setattr("airflow_connect.control.worker.slots.ABANDONED_AFTER_S", 0.2)
    worker, topic = worker_with(is_cancellable=False), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("slow", topic)

    def timeout_of(config: Mapping[str, Any]) -> float:
        """Short for the run that hangs, and only once it does."""
        hangs = worker.engine.hangs.is_set() and not worker.engine.released.is_set()
        return 0.2 if hangs and config["name"] == worker.named("slow") else 3600.0

    monkeypatch.setattr("airflow_connect.control.worker.rounds.timeout_of", timeout_of)
    with worker.running(Pace(3600)):
        worker.wait_for("The run does not end; it is left alone, and the next run of the connector fences it.")
        worker.create("a", topic)
        worker.wait_until_copied("a")
        assert worker.text("slow") == ""
        worker.engine.released.set()
        worker.herder.restart(worker.named("slow"), include_tasks=True, only_failed=False)
        worker.wait_until_copied("slow")
    assert worker.text("slow") == "1\n"


@pytest.mark.parametrize("what", ["deleted", "stopped"])
def test_the_run_of_a_connector_that_is_taken_away_ends(worker_with, make_topic, produce, what):
    worker, topic = worker_with(is_cancellable=True), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("slow", topic)
    with worker.running(Pace(3600)):
        assert worker.engine.hangs.wait(20)
        take_away = worker.herder.delete if what == "deleted" else worker.herder.stop
        take_away(worker.named("slow"))
        worker.wait_for(f"Connector {worker.named('slow')} was {what} during a run, which has ended.")
    assert worker.text("slow") == ""


@pytest.mark.parametrize("what", ["deleted", "stopped"])
def test_a_run_ends_although_its_connector_is_there_again_within_a_moment(worker_with, make_topic, produce, what):
    worker, topic = worker_with(is_cancellable=True), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("slow", topic)
    with worker.running(Pace(3600)):
        assert worker.engine.hangs.wait(20)
        if what == "deleted":
            worker.herder.delete(worker.named("slow"))
            worker.create("slow", topic)
        else:
            worker.herder.stop(worker.named("slow"))
            worker.herder.resume(worker.named("slow"))
        worker.wait_for(f"Connector {worker.named('slow')} was {what} during a run, which has ended.")
        assert worker.text("slow") == ""
        worker.engine.released.set()
        worker.wait_until_copied("slow")


def test_what_runs_say_is_in_the_log_although_they_copy_nothing(worker_with, make_topic, produce, kafka):
    worker, topic = worker_with(is_cancellable=True), make_topic()
    produce(topic, [(0, None, b"1", 0, [])])
    worker.create("a", topic)
    with worker.running(Pace(1)):
        worker.wait_until_copied("a")
        worker.wait_for("nothing to copy")
    produce(topic, [(0, None, b"2", 0, [])])
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap, "group.id": f"connect-{worker.named('a')}"})
    consumer.commit(offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()
    with worker.running(Pace(1)):
        worker.wait_for(f"{worker.named('a')}: The group's offset of {topic}-0 is 2, and the last run committed 1")
    assert worker.text("a") == "1\n"
