"""A sink that stages: JSON lines in files that are renamed into place; with a columnar form and errant records."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from airflow_connect.api import (
    ConfigDef,
    ConfigKey,
    ConfigType,
    DataError,
    LeftOver,
    Outcome,
    RecordColumns,
    SinkRecord,
    SinkTask,
    Splitting,
    StagedFile,
    StagingSinkConnector,
    TopicPartition,
)


class FolderSinkTask(SinkTask):
    """One file per partition."""

    def start(self, config: Mapping[str, str]) -> None:
        self.folder = Path(config["folder"])
        self.staging = self.folder / ".staged" / config["name"]
        self.staging.mkdir(parents=True, exist_ok=True)
        self.lines: dict[TopicPartition, dict[int, str]] = {}

    def open(self, partitions: Collection[TopicPartition]) -> None:
        self.lines = {partition: {} for partition in partitions}

    def put(self, records: Sequence[SinkRecord]) -> None:
        for record in records:
            if record.value == "errant":
                self.context.errant_record_reporter.report(record, DataError("This value cannot be stored."))
                continue
            lines = self.lines[TopicPartition(record.original_topic, record.original_partition)]
            lines[record.offset] = json.dumps(record.value)

    def put_columns(self, batches: Sequence[RecordColumns]) -> bool:
        (batch, *others) = batches
        if others or batch.value.schema is not None:
            return False
        lines = self.lines[TopicPartition(batch.original_topic, batch.original_partition)]
        texts = [bytes(text).strip() for text in batch.value.values.to_pylist()]  # a line each
        if b'"errant"' in texts:
            return False
        lines.update(zip(batch.offsets.tolist(), (json.dumps(json.loads(text)) for text in texts), strict=True))
        return True

    def flush(self) -> Sequence[StagedFile]:
        return [self.stage(partition, lines) for partition, lines in self.lines.items() if lines]

    def stage(self, tp: TopicPartition, lines: Mapping[int, str]) -> StagedFile:
        start, end = min(lines), max(lines) + 1
        key = f"{tp.topic}+{tp.partition}+{start:010d}.json"
        staged = self.staging / f"{key}~{self.context.run_id}"
        data = "".join(f"{line}\n" for line in lines.values())
        staged.write_text(data)
        return StagedFile(key, *tp, start, end, len(lines), len(data), {"file": staged.name})

    def stop(self) -> None:
        pass


class FolderSinkConnector(StagingSinkConnector):
    """Publishes by renaming."""

    version = "2.0"
    task_class = FolderSinkTask
    config_def = ConfigDef().define(ConfigKey("folder", ConfigType.STRING, documentation="Where files go."))

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self.folder = Path(config["folder"])
        self.staging = self.folder / ".staged" / config["name"]

    def splitting(self) -> Splitting:
        return Splitting()

    def publish(self, files: Sequence[StagedFile]) -> Mapping[str, Outcome]:
        return {file.key: self.publish_one(file) for file in files}

    def publish_one(self, file: StagedFile) -> Outcome:
        staged = self.staging / file.token["file"]
        if staged.exists():
            staged.rename(self.folder / file.key)
            return Outcome.PUBLISHED
        return Outcome.ALREADY_PUBLISHED if (self.folder / file.key).exists() else Outcome.LOST

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        staged = [self.staging / file.token["file"] for file in files]
        existing = [path for path in staged if path.exists()]
        for path in existing:
            path.unlink(missing_ok=True)
        return len(existing)

    def list_staged(self) -> Iterable[LeftOver]:
        found = self.staging.glob("*~*") if self.staging.exists() else ()
        return [LeftOver(path.name.rpartition("~")[0], {"file": path.name}) for path in found]
