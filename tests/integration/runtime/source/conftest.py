"""A connector of the numbers source, and what its topic holds."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics
from tests.support.kafka_data import create_topic

NUMBERS = "tests.integration.runtime.source.numbers:NumbersConnector"


@dataclass
class Numbers:
    """One connector of the numbers source."""

    bootstrap: str
    name: str
    topic: str
    file: Path
    config: dict[str, str] = field(default_factory=dict)
    worker_config: dict[str, str] = field(default_factory=dict)
    topic_partitions: int = 1
    events: list[Any] = field(default_factory=list)

    def feed(self, *counts: int) -> None:
        """Source partition p holds `counts[p]` numbers from now on."""
        self.file.write_text(json.dumps(counts))

    def spec(self, **overrides: str | None) -> RunSpec:
        """A run; `_` in a key stands for `.`, None removes it."""
        config: dict[str, str | None] = {
            "name": self.name,
            "connector.class": NUMBERS,
            "tasks.max": "2",
            "topic": self.topic,
            "numbers.file": str(self.file),
            "numbers.topic.partitions": str(self.topic_partitions),
            **self.config,
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "source-workers",
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            **self.worker_config,
        }
        return RunSpec({k: v for k, v in config.items() if v is not None}, worker)

    def try_run(self, **overrides: str | None) -> RunReport:
        """One run in this process, whatever comes of it."""
        report, self.events = run_here(self.spec(**overrides))
        return report

    def run(self, **overrides: str | None) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(**overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def start(self, crash_at: str = "", **overrides: str | None) -> RunProcess:
        """One run in a process of its own."""
        return RunProcess(self.spec(**overrides), crash_at)

    def messages(self) -> list[Message]:
        """Every committed record, partition by partition."""
        return Topics(self.bootstrap).read(self.topic)

    def values(self) -> dict[int, list[int]]:
        """The numbers of each source partition, in the order of the topic."""
        found: dict[int, list[int]] = {}
        for message in self.messages():
            value = json.loads(message.value() or b"null")
            found.setdefault(value["p"], []).append(value["n"])
        return found

    def assert_exactly_once(self, *counts: int) -> None:
        """Every number is there once, in order."""
        wanted = {p: list(range(count)) for p, count in enumerate(counts) if count}
        found = self.values()
        for p in sorted({*wanted, *found}):
            assert found.get(p, []) == wanted.get(p, []), f"source partition {p}"


@pytest.fixture
def numbers(kafka: KafkaBroker, unique_name: str, tmp_path: Path) -> Numbers:
    """A numbers source with a topic of two partitions."""
    create_topic(kafka.bootstrap, unique_name, 2, None)
    return Numbers(kafka.bootstrap, f"numbers-{unique_name}", unique_name, tmp_path / "counts.json", topic_partitions=2)


MakeNumbers = Callable[..., Numbers]


@pytest.fixture
def read_counts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """(topic, offsets) of each time that a state topic was read."""
    counts: list[tuple[str, int]] = []
    original: Callable[..., None] = compacted_topics.read_to

    def counted(settings, starts, ends, take):
        counts.extend((tp.topic, end - starts[tp]) for tp, end in ends.items())
        original(settings, starts, ends, take)

    monkeypatch.setattr(compacted_topics, "read_to", counted)
    return counts
