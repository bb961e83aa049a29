"""A real Kafka Connect worker beside runs of ours: the same connector names, groups and topics of state."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics
from tests.devstack.connect_worker import ConnectWorker
from tests.integration.connect_handover.stand_in import WorkerWithS3
from tests.support.kafka_data import create_topic
from tests.support.waiting import wait_until

STRINGS = "org.apache.kafka.connect.storage.StringConverter"
HANDOVER_S = 90.0


@dataclass
class Shared:
    """A connector that the worker and we run in turn, and its topic of one partition.

    Attributes:
        worker: the real one.
        ours: the worker configuration of our runs.
        name: of the connector, on both sides.
        topic: what both write, or read.
        file: what both read, or write.
        config: of the connector, on both sides.
    """

    worker: ConnectWorker
    ours: Mapping[str, str]
    name: str
    topic: str
    file: Path
    config: dict[str, str] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        """The broker."""
        return self.ours["bootstrap.servers"]

    def spec(self, **overrides: str) -> RunSpec:
        """A run of ours; `_` in a key stands for `.`."""
        more = {key.replace("_", "."): value for key, value in overrides.items()}
        return RunSpec({"name": self.name, **self.config, **more}, self.ours)

    def try_ours(self, **overrides: str) -> RunReport:
        """One run of ours, whatever comes of it."""
        return run_here(self.spec(**overrides))[0]

    def run_ours(self, **overrides: str) -> RunReport:
        """One run of ours that must not fail."""
        report = self.try_ours(**overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def kill_ours(self, crash_at: str) -> None:
        """One run of ours that is killed at a step."""
        assert RunProcess(self.spec(), crash_at).wait() is None, f"the run never came to {crash_at}"

    def lines(self) -> list[str]:
        """Values of every committed record of the topic, in its order."""
        return [(message.value() or b"").decode() for message in Topics(self.bootstrap).read(self.topic)]

    def append(self, *lines: str) -> None:
        """Let the file grow."""
        with self.file.open("a", encoding="utf-8", newline="") as out:
            out.writelines(f"{line}\n" for line in lines)

    def let_worker_copy(self, wanted: list[str]) -> None:
        """Let the worker run the source until the topic holds `wanted`, then stop it."""
        self.let_worker_run()
        wait_until(lambda: len(self.lines()) >= len(wanted), f"the worker's {wanted}", HANDOVER_S, every_s=0.1)
        self.worker.rest.stop(self.name)
        assert self.lines() == wanted

    def let_worker_run(self) -> None:
        """Let the worker run the connector, whether it knows it already or not."""
        if self.name in self.worker.rest.names():
            self.worker.rest.resume(self.name)
        else:
            self.worker.rest.create(self.name, self.config)


def our_worker(kafka: KafkaBroker, **more: str) -> dict[str, str]:
    """A worker configuration of ours; `_` in a key stands for `.`."""
    factors = {f"{topic}.storage.replication.factor": "1" for topic in ("runs", "offset", "config")}
    return {
        "bootstrap.servers": kafka.bootstrap,
        "key.converter": STRINGS,
        "value.converter": STRINGS,
        **factors,
        **{key.replace("_", "."): value for key, value in more.items()},
    }


@pytest.fixture(scope="session")
def state_topics() -> dict[str, str]:
    """Where both keep state: a cluster of its own, on the broker of all tests."""
    group = f"handover-{uuid.uuid4().hex[:8]}"
    return {"group.id": group} | {f"{kind}.storage.topic": f"{group}-{kind}" for kind in ("config", "offset", "status")}


@pytest.fixture(scope="session")
def worker(kafka: KafkaBroker, state_topics: dict[str, str]) -> Iterator[ConnectWorker]:
    """A distributed worker that writes sources exactly once."""
    more = {"exactly.once.source.support": "enabled", "session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}
    with WorkerWithS3.start(kafka.bootstrap, state_topics["group.id"], {**state_topics, **more}) as running:
        yield running


@pytest.fixture
def make_shared(
    kafka: KafkaBroker, worker: ConnectWorker, state_topics: dict[str, str], unique_name: str, tmp_path: Path
) -> Iterator[Callable[..., Shared]]:
    """Describe a connector of a file that does not exist yet: `make_shared("FileStreamSource", topic_key="topic")`."""
    create_topic(kafka.bootstrap, unique_name)
    name, file = f"shared-{unique_name}", tmp_path / "lines.txt"

    def make(connector_class: str, topic_key: str) -> Shared:
        config = {"connector.class": connector_class, "tasks.max": "1", "file": str(file), topic_key: unique_name}
        return Shared(worker, {**our_worker(kafka), **state_topics}, name, unique_name, file, config)

    yield make
    worker.rest.delete(name)


@pytest.fixture
def shared_source(make_shared: Callable[..., Shared]) -> Shared:
    """A FileStreamSource of a file that does not exist yet."""
    return make_shared("FileStreamSource", topic_key="topic")


@pytest.fixture
def shared_sink(make_shared: Callable[..., Shared]) -> Shared:
    """A FileStreamSink to a file that does not exist yet."""
    return make_shared("FileStreamSink", topic_key="topics")
