"""The example source, found by its entry point: what it reads and where it goes on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api import ConfigError, PluginKind, SourceConnector, SourceTask
from airflow_connect.api.config.plugins import load_class, resolve
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.testing import SourceConformance

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("installed_examples")]


class TestLinesSource(SourceConformance):
    connector_class = "LinesSource"

    def connector_config(self, place: Path, topic: str) -> Mapping[str, str]:
        (place / "lines.txt").touch()
        return {"lines.file": str(place / "lines.txt"), "topic": topic}

    def feed(self, place: Path, first: int, count: int) -> Sequence[Any]:
        lines = [f"line {n}" for n in range(first, first + count)]
        with (place / "lines.txt").open("a") as file:
            file.writelines(f"{line}\n" for line in lines)
        return lines


class TestLinesInColumns(TestLinesSource):
    connector_class = "LinesInColumnsSource"


class Context:
    """What a run would tell the task."""

    run_id, clock_ms, transaction = "run-1", 0, None

    def __init__(self, config: Mapping[str, str], lines: int | None) -> None:
        self.config, self._lines = config, lines

    @property
    def offset_reader(self) -> Context:
        return self

    def offset(self, partition: Mapping[str, Any]) -> Mapping[str, Any] | None:
        assert partition == {"file": self.config["lines.file"]}
        return None if self._lines is None else {"lines": self._lines}

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def raise_error(self, error: Exception) -> None:
        raise error


def task_of(file: Path, lines: int | None = None) -> SourceTask:
    source: type[SourceConnector] = load_class(PluginKind.CONNECTOR, "LinesSource")
    connector = source()
    connector.start({"lines.file": str(file), "topic": "lines"})
    (config,) = connector.task_configs(4)
    task = source.task_class()
    task.initialize(Context(config, lines))
    task.start(config)
    return task


def test_lines_become_records_with_the_offset_behind_them(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("one\ntwo\n")
    task = task_of(file)

    records = task.poll() or []

    assert [(r.topic, r.value, r.source_partition, r.source_offset) for r in records] == [
        ("lines", "one", {"file": str(file)}, {"lines": 1}),
        ("lines", "two", {"file": str(file)}, {"lines": 2}),
    ]
    assert task.has_ended()
    assert task.poll() is None
    task.stop()


def test_committed_offset_is_where_it_goes_on_and_the_end_was_frozen_at_the_start(tmp_path: Path):
    file = tmp_path / "a.txt"
    file.write_text("".join(f"{n}\n" for n in range(1200)))
    task = task_of(file, lines=100)
    with file.open("a") as more:
        more.write("later\n")

    batches = []
    while not task.has_ended():
        batches.append([r.value for r in task.poll() or []])

    assert [len(batch) for batch in batches] == [500, 500, 100]
    assert [value for batch in batches for value in batch] == [str(n) for n in range(100, 1200)]


def test_keys_of_every_source_are_added_to_its_own():
    definition = connector_definition({"connector.class": "LinesSource", "name": "n", "topic": "t"})

    assert {"lines.file", "topic", "transaction.boundary", "run.idle.polls"} <= set(definition.keys)


def test_entry_points_of_the_installed_distribution_are_found(installed_examples: Path):
    for name in ("SqliteSink", "LinesSource"):
        found = load_class(PluginKind.CONNECTOR, name)
        assert Path(__import__(found.__module__, fromlist=["x"]).__file__).is_relative_to(installed_examples)
    with pytest.raises(ConfigError, match="Did you mean SqliteSink"):
        resolve(PluginKind.CONNECTOR, "SqliteSnk")
