"""A file source whose runs go through the real protocol and a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics
from tests.support.kafka_data import create_topic

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


@dataclass
class Lines:
    """One connector and its topic."""

    bootstrap: str
    name: str
    topic: str
    config: dict[str, str] = field(default_factory=dict)

    def spec(self, **overrides: str) -> RunSpec:
        """A run; `_` in a key stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": "FileStreamSource",
            "tasks.max": "1",
            "topic": self.topic,
            **self.config,
            **{key.replace("_", "."): value for key, value in overrides.items()},
        }
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "file-workers",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
        }
        return RunSpec(config, worker)

    def try_run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process, whatever comes of it."""
        return run_here(self.spec(**overrides), columnar=columnar)[0]

    def run(self, *, columnar: bool = True, **overrides: str) -> RunReport:
        """One run in this process that must not fail."""
        report = self.try_run(columnar=columnar, **overrides)
        assert report.status in ("done", "empty"), report.error
        return report

    def start(self, crash_at: str = "", **overrides: str) -> RunProcess:
        """One run in a process of its own."""
        return RunProcess(self.spec(**overrides), crash_at)

    def lines(self) -> list[str]:
        """Values of every committed record, in the order of the topic's only partition."""
        return [(message.value() or b"").decode() for message in Topics(self.bootstrap).read(self.topic)]

    def documents(self) -> list[Any]:
        """The same, as JSON."""
        return [json.loads(line) for line in self.lines()]


MakeLines = Callable[..., Lines]


@pytest.fixture
def make_lines(kafka: KafkaBroker, unique_name: str) -> MakeLines:
    """`make_lines(file=..., **config) -> Lines`, with a topic of one partition."""

    def make(*files: Path | str, **config: str) -> Lines:
        create_topic(kafka.bootstrap, unique_name, 1, None)
        settings = {key.replace("_", "."): value for key, value in config.items()}
        if len(files) == 1 and "*" not in str(files[0]):
            settings["file"] = str(files[0])
        elif files:
            settings["files"] = ",".join(map(str, files))
        return Lines(kafka.bootstrap, f"lines-{unique_name}", unique_name, settings)

    return make
