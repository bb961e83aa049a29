"""Runs of the file source without Kafka and Spark: what the runtime calls, in its order, and offsets in memory."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from airflow_connect.api.record import SourceRecord
from airflow_connect.connectors.file_stream.source.connector import FileStreamSourceConnector
from airflow_connect.connectors.file_stream.source.task import FileStreamSourceTask


def spelled(partition: Mapping[str, Any]) -> str:
    return json.dumps(dict(partition), sort_keys=True)


class KilledError(Exception):
    """The run ends here, as if its process were gone."""


@dataclass
class Committed:
    """The offsets topic: also an OffsetReader."""

    values: dict[str, dict[str, Any]] = field(default_factory=dict)

    def offset(self, partition: Mapping[str, Any]) -> dict[str, Any] | None:
        return self.values.get(spelled(partition))

    def offsets(self, partitions: Iterable[Mapping[str, Any]]) -> list[dict[str, Any] | None]:
        return [self.offset(partition) for partition in partitions]

    def committed(self) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
        return iter([(json.loads(key), dict(value)) for key, value in self.values.items()])

    def put(self, partition: Mapping[str, Any], offset: Mapping[str, Any] | None) -> None:
        # Through JSON, as the topic has it.
        if offset is None:
            self.values.pop(spelled(partition), None)
        else:
            self.values[spelled(partition)] = json.loads(json.dumps(dict(offset)))


@dataclass
class Context:
    """What connector and task may ask."""

    offset_reader: Committed
    config: Mapping[str, str] = field(default_factory=dict)
    run_id: str = "run"
    clock_ms: int = 0
    transaction: None = None
    records_left: int | None = None
    aws: Mapping[str, str] = field(default_factory=dict)
    only_plans: bool = False
    reader_settings: Mapping[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    done: int = 0

    def note(self, sentence: str) -> None:
        self.notes.append(sentence)

    def count(self, sentence: str, number: int) -> None:
        self.notes.append(f"{sentence} {number}.")

    def parts_done(self, number: int) -> None:
        self.done = number

    def skip_to(self, partition: Mapping[str, Any], offset: Mapping[str, Any]) -> None:
        self.offset_reader.put(partition, offset)

    def raise_error(self, error: Exception) -> None:
        raise error

    def request_task_reconfiguration(self) -> None:
        raise AssertionError("a run ends")


@dataclass
class FileSource:
    """One connector over its runs. `records` is what readers of the topic see."""

    config: dict[str, str]
    committed: Committed = field(default_factory=Committed)
    records: list[SourceRecord] = field(default_factory=list)
    columnar: bool = False
    notes: list[str] = field(default_factory=list)

    @property
    def values(self) -> list[Any]:
        return [record.value for record in self.records]

    def take(self) -> list[Any]:
        """Values since the last time."""
        found = self.values
        self.records.clear()
        return found

    def run(self, tasks: int = 1, *, kill_after: int | None = None, reconcile_at_end: bool = True) -> int:
        """A whole run; returns the number of its tasks.

        Args:
            tasks: `tasks.max`.
            kill_after: die when so many batches are committed.
            reconcile_at_end: die before the driver reconciles offsets.
        """
        self.reconcile()
        configs = self.task_configs(tasks)
        left = [kill_after]
        for config in configs:
            self._run_task(config, left)
        if reconcile_at_end:
            self.reconcile()
        return len(configs)

    def reconcile(self) -> None:
        connector = self._connector()
        for partition, offset in list(connector.reconcile_offsets(self.committed.committed())):
            self.committed.put(partition, offset)
        connector.stop()

    def task_configs(self, tasks: int = 1, *, only_plans: bool = False) -> Sequence[Mapping[str, str]]:
        connector = self._connector(only_plans=only_plans)
        configs = connector.task_configs(tasks)
        connector.stop()
        assert len(configs) <= tasks
        return configs

    def open_task(self, config: Mapping[str, str]) -> FileStreamSourceTask:
        task = FileStreamSourceTask()
        task.initialize(Context(self.committed, config, notes=self.notes))
        task.start(config)
        return task

    def _connector(self, *, only_plans: bool = False) -> FileStreamSourceConnector:
        connector = FileStreamSourceConnector()
        connector.initialize(Context(self.committed, notes=self.notes, only_plans=only_plans))
        connector.start(self.config)
        return connector

    def _run_task(self, config: Mapping[str, str], left: list[int | None]) -> None:
        task = self.open_task(config)
        try:
            polls = 0
            while True:
                for records, partition, offset in self._polled(task):
                    # One transaction: the records and the offset behind the last of them.
                    self.records += records
                    self.committed.put(partition, offset)
                    if left[0] is not None:
                        left[0] -= 1
                        if left[0] <= 0:
                            raise KilledError
                if task.has_ended():
                    return
                polls += 1
                assert polls < 100_000, "the task never ends"
        finally:
            task.stop()

    def _polled(
        self, task: FileStreamSourceTask
    ) -> Iterator[tuple[list[SourceRecord], Mapping[str, Any], Mapping[str, Any]]]:
        if self.columnar and (columns := task.poll_columns()) is not None:
            keys = columns.keys.to_pylist() if columns.keys is not None else [None] * len(columns.values)
            records = [
                SourceRecord(
                    topic=columns.topic,
                    key_schema=columns.key_schema,
                    key=key,
                    value_schema=columns.value_schema,
                    value=value,
                    source_partition=columns.source_partition,
                    source_offset=columns.source_offset,
                )
                for key, value in zip(keys, columns.values.to_pylist(), strict=True)
            ]
            yield records, columns.source_partition, columns.source_offset
            return
        batch = list(task.poll() or ())
        if batch:
            yield batch, batch[-1].source_partition, batch[-1].source_offset


def file_source(*files: Path | str, **config: str) -> FileSource:
    """A source of files; `_` in a key stands for `.`. One file is `file`, several are `files`."""
    columnar = config.pop("columnar", "") == "true"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    if len(files) == 1 and not any(sign in str(files[0]) for sign in "*?["):
        settings.setdefault("file", str(files[0]))
    elif files:
        settings.setdefault("files", ",".join(map(str, files)))
    return FileSource({"name": "lines", "topic": "lines", **settings}, columnar=columnar)
