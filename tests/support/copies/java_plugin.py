"""Runs of a Java connector of a plugin path, in a process of its own or in this one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Message

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import RunProcess, run_here
from airflow_connect.testing.topics import Topics
from tests.devstack.jars import fetch_jars

JSON = {
    "key.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "key.converter.schemas.enable": "false",
    "value.converter.schemas.enable": "false",
}


def plugin_folder(plugin_path: Path, name: str, jars: Iterable[Path]) -> Path:
    """A plugin folder of this name with links to jars; returns the plugin path, which is created."""
    folder = plugin_path / name
    folder.mkdir(parents=True, exist_ok=True)
    for jar in jars:
        (folder / jar.name).symlink_to(jar)
    return plugin_path


def locked_plugin(plugin_path: Path, lock_name: str) -> Path:
    """The same with the jars of a lock in tests/devstack/locks."""
    return plugin_folder(plugin_path, lock_name, fetch_jars(lock_name))


@dataclass
class JavaConnector:
    """One connector of a test."""

    bootstrap: str
    name: str
    plugin_path: Path
    config: dict[str, str] = field(default_factory=dict)
    worker_config: dict[str, str] = field(default_factory=lambda: dict(JSON))
    events: list[Any] = field(default_factory=list)

    def spec(self, **overrides: str | None) -> RunSpec:
        """A run; `_` in a key stands for `.`, None removes it."""
        config: dict[str, str | None] = {"name": self.name, "tasks.max": "1", **self.config}
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "java-workers",
            "plugin.path": str(self.plugin_path),
            "runs.storage.replication.factor": "1",
            "offset.storage.replication.factor": "1",
            "config.storage.replication.factor": "1",
            **self.worker_config,
        }
        return RunSpec({key: value for key, value in config.items() if value is not None}, worker)

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

    def messages(self, topic: str) -> list[Message]:
        """Every committed record of a topic, partition by partition."""
        return Topics(self.bootstrap).read(topic)
