"""Several workers of one group: they share connectors, take over from each other, and keep off Kafka Connect's."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.devstack.launching.errors import DevStackError
from tests.conftest import MakeTopic, TopicProducer
from tests.devstack.connect_worker import ConnectWorker
from tests.support.processes.forked_worker import ForkedWorker
from tests.support.processes.proc import command_lines
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

QUICK = {"session.timeout.ms": "1500", "heartbeat.interval.ms": "300", "run.interval.seconds": "1"}
REFUSAL = "InconsistentGroupProtocolException"
COUNT = 4


@pytest.fixture
def worker(kafka, unique_name) -> dict[str, str]:
    strings = {"key.converter": STRINGS, "value.converter": STRINGS}
    return {**worker_of(kafka.bootstrap, unique_name), **strings, **QUICK, "runs.storage.replication.factor": "1"}


class Lines:
    """File sinks of one topic each."""

    def __init__(self, prefix: str, folder: Path, make_topic: MakeTopic, produce: TopicProducer) -> None:
        self._folder, self._produce = folder, produce
        # Names of their own: the consumer group of a sink is named after it, and other tests use the same broker.
        self.names = [f"{prefix}-{number}" for number in range(COUNT)]
        self._topics = {name: make_topic() for name in self.names}
        self._wanted: dict[str, list[str]] = {name: [] for name in self.names}

    def register(self, at: ForkedWorker) -> None:
        """Register all of them."""
        for name, topic in self._topics.items():
            config = {"connector.class": "FileStreamSink", "topics": topic, "file": str(self._folder / name)}
            assert at.send("PUT", f"/connectors/{name}/config", config).status == 201

    def grow(self) -> None:
        """A line for each."""
        for name, topic in self._topics.items():
            line = f"{name}-{len(self._wanted[name])}"
            self._produce(topic, [(0, None, line.encode(), 0, [])])
            self._wanted[name].append(line)

    def are_copied(self) -> bool:
        """Whether each file has all lines, and nothing else."""
        return all(self.written(name) == wanted for name, wanted in self._wanted.items())

    def written(self, name: str) -> list[str]:
        """Lines of one file."""
        file = self._folder / name
        return file.read_text().splitlines() if file.exists() else []


@pytest.fixture
def lines(unique_name: str, tmp_path: Path, make_topic: MakeTopic, produce: TopicProducer) -> Lines:
    return Lines(unique_name, tmp_path, make_topic, produce)


def shared(at: ForkedWorker, *workers: ForkedWorker) -> Callable[[], bool]:
    """A condition: `at` says that all of `workers` have the same number of connectors."""
    ids = sorted(worker.worker_id for worker in workers)
    return lambda: sorted(at.owners().values()) == sorted(ids * (COUNT // len(ids)))


@pytest.mark.budget(20)  # Three workers, of which one is killed and one is stopped.
def test_workers_share_connectors_and_take_over_from_one_that_is_killed_or_stopped(worker, lines: Lines):
    with ForkedWorker(worker) as one, ForkedWorker(worker) as two:
        lines.register(one)
        lines.grow()
        wait_until(shared(two, one, two), "two connectors for each worker")
        wait_until(lines.are_copied, "the first lines")
        assert one.owners() == two.owners()
        for each in (one, two):
            assert "kafka_connect_worker_connector_count 2.0" in each.send("GET", "/metrics").body
            names = [bean["name"] for bean in each.send("GET", "/jmx").body["beans"]]
            assert sum("type=sink-task-metrics" in name for name in names) == 2
        assert one.send("POST", "/metrics").status == 405
        of_one = next(name for name, owner in two.owners().items() if owner == one.worker_id)
        assert two.send("GET", f"/connectors/{of_one}/status").body["tasks"][0]["worker_id"] == one.worker_id

        lines.grow()
        one.kill()
        wait_until(shared(two, two), "all connectors at the worker that is left")
        wait_until(lines.are_copied, "the lines after the kill")

        with ForkedWorker(worker, one.port) as again:
            wait_until(shared(two, again, two), "two connectors for each worker, again")
            lines.grow()
            wait_until(lines.are_copied, "the lines of both")
            two.signal(signal.SIGTERM)
            wait_until(shared(again, again), "all connectors at the worker that is left")
            lines.grow()
            wait_until(lines.are_copied, "the last lines")
            assert set(again.owners().values()) == {one.worker_id}


@pytest.mark.budget(15)
def test_a_restart_that_one_worker_is_asked_for_happens_at_the_worker_that_has_the_connector(
    worker, lines: Lines, tmp_path: Path
):
    rare = {**worker, "run.interval.seconds": "3600"}
    with ForkedWorker(rare) as one, ForkedWorker(rare) as two:
        lines.register(one)
        wait_until(shared(two, one, two), "two connectors for each worker")
        wait_until(lambda: all(runs(two, name) for name in lines.names), "the first runs")
        lines.grow()
        for name, owner in two.owners().items():
            other = two if owner == one.worker_id else one
            assert other.send("POST", f"/connectors/{name}/restart?includeTasks=true").status == 202
        wait_until(lines.are_copied, "the lines")
        assert len(set(two.owners().values())) == 2


def runs(at: ForkedWorker, name: str) -> bool:
    return at.send("GET", f"/connectors/{name}/status").body["connector"]["state"] == "RUNNING"


def test_a_second_worker_with_the_same_address_runs_nothing_and_says_so(worker, lines: Lines):
    with ForkedWorker(worker) as one:
        lines.register(one)
        lines.grow()
        wait_until(lines.are_copied, "the first lines")
        shown = {"rest.advertised.host.name": "127.0.0.1", "rest.advertised.port": str(one.port)}
        with ForkedWorker({**worker, **shown}) as twin:
            assert twin.send("POST", f"/connectors/{lines.names[0]}/restart").status == 204
            lines.grow()
            wait_until(lines.are_copied, "more lines")
            assert set(twin.owners().values()) == {one.worker_id}
    assert "has the same address" in twin.printed() and "1 record in 1 file" not in twin.printed()
    assert "has the same address" not in one.printed()


@pytest.mark.budget(40)  # A real worker of Kafka Connect.
def test_a_worker_of_kafka_connect_is_refused_by_the_broker_as_long_as_ours_are_members(
    kafka, worker, lines: Lines, tmp_path: Path
):
    topics = {key: value for key, value in worker.items() if key.endswith("storage.topic") and "runs" not in key}
    folder = tmp_path / "theirs"
    folder.mkdir()
    log, refusals = folder / "server.log", list[DevStackError]()

    def start_theirs() -> None:
        with pytest.raises(DevStackError) as refused:
            ConnectWorker.start(kafka.bootstrap, worker["group.id"], topics, folder)
        refusals.append(refused.value)

    with ForkedWorker(worker) as ours:
        lines.register(ours)
        lines.grow()
        wait_until(lines.are_copied, "the first lines")
        theirs = threading.Thread(target=start_theirs)
        theirs.start()
        wait_until(lambda: log.exists() and REFUSAL in log.read_text(), "the other worker's refusal", 60)
        # It would need another minute to end by itself.
        for pid in [pid for pid, line in command_lines() if f"{folder}/worker.properties" in line and "java" in line]:
            os.kill(pid, signal.SIGKILL)
        theirs.join()
        lines.grow()
        wait_until(lines.are_copied, "lines after the attempt of the other worker")
    assert len(refusals) == 1
