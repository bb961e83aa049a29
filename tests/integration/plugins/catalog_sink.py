"""A sink that overrides all that a run asks a connector: a publisher of its own, a catalog, times, schemas."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import ClassVar

from airflow_connect.api import (
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigType,
    CopiedTimes,
    LeftOver,
    LeftoverPattern,
    OffsetRange,
    Outcome,
    PartitionDetails,
    PartitionTimes,
    PublishedRun,
    Publisher,
    StagedFile,
    StagingSinkConnector,
    TimeDirectory,
    TimeProgress,
    TimeStep,
    TopicPartition,
)
from tests.integration.plugins.folder_sink import FolderSinkConnector, FolderSinkTask

ROWS = "rows"
FOUND, WRITTEN = '"found in the sink"', '"written by the task"'


class CatalogTask(FolderSinkTask):
    """Files of rows; it notes what the run has told it."""

    def open(self, partitions: Collection[TopicPartition]) -> None:
        super().open(partitions)
        run = self.context.run
        self.note = {
            "late_before": dict(run.late_before),
            "schemas": sorted(set(run.schemas_before.values())),
            "schedule_expired": run.schedule_expired,
        }

    def flush(self) -> Sequence[StagedFile]:
        (self.folder / f"told-{self.context.run_id}").write_text(json.dumps(self.note))
        return [replace(file, role=ROWS) for file in super().flush()]

    def details(self, partition: TopicPartition) -> PartitionDetails:
        return PartitionDetails(PartitionTimes(highest_ms=500, directories={"day": 0}), WRITTEN)


class CatalogPublisher:
    """Publishes with a connector's methods, one file after the other."""

    possible_duplicates = False

    def __init__(self, files: FolderSinkConnector) -> None:
        self.files = files

    def preflight(self) -> None:
        self.files.folder.stat()

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        outcomes = {}
        for done, file in enumerate(files, start=1):
            outcomes[file.key] = self.files.publish_one(file)
            progress(done)
        return outcomes

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        return self.files.abort(files)

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        return [found for found in self.files.list_staged() if found.key.startswith(tuple(prefixes))]

    def close(self) -> None:
        CatalogConnector.calls.append("close")


class Days:
    """One directory, which is complete whenever something has been written."""

    def late_before(self, progress: TimeProgress, topics: Iterable[str]) -> dict[str, int]:
        return {topic: progress.boundaries.get(topic, 7) for topic in topics}

    def advance(self, before: TimeProgress, seen: CopiedTimes) -> TimeStep:
        written = {r.range.topic: r.times.directories for r in seen.reports if r.times}
        days = tuple(
            TimeDirectory(topic, directory, topic, 0, 1000) for topic, found in written.items() for directory in found
        )
        return TimeStep(replace(before, boundaries=dict.fromkeys(written, 1000)), days)


class CatalogConnector(StagingSinkConnector):
    """Counts the calls of all its objects in this process."""

    calls: ClassVar[list[str]] = []
    task_class = CatalogTask
    counted_role = ROWS
    config_def = ConfigDef().define(
        ConfigKey("folder", ConfigType.STRING, documentation="Where files go."),
        ConfigKey("begin.at", ConfigType.INT, -1, documentation="Where an earlier connector has ended, if at all."),
    )

    def __init__(self) -> None:
        self.calls.append("made")

    def check_config(self, config: Mapping[str, str]) -> None:
        if not config["folder"].startswith("/"):
            raise ConfigError("folder is not absolute.", config_path="folder")

    def start(self, config: Mapping[str, str]) -> None:
        super().start(config)
        self.calls.append("start")
        self.files = FolderSinkConnector()
        self.files.start(config)

    def first_offsets(self, partitions: Collection[TopicPartition], *, apply: bool) -> Mapping[TopicPartition, int]:
        self.calls.append(f"first_offsets of {len(partitions)}, apply={apply}")
        begin = int(self.config.get("begin.at", "-1"))
        return dict.fromkeys(partitions, begin) if begin >= 0 else {}

    def last_schemas(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, str]:
        return dict.fromkeys(partitions, FOUND)

    def time_keeper(self, topics: Collection[str]) -> Days:
        return Days()

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        return 0 < last_run_ms < now_ms

    def store_name(self, config: Mapping[str, str]) -> str:
        return f"folder:{config['folder']}"

    def publisher(self) -> Publisher:
        self.calls.append("publisher")
        return CatalogPublisher(self.files)

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        topics = sorted({r.topic for r in ranges})
        names = "|".join(map(re.escape, topics))
        pattern = rf"(?P<topic>{names})\+(?P<partition>\d+)\+(?P<start>\d+)\.json"
        prefixes = tuple(f"{topic}+" for topic in topics)
        return LeftoverPattern(self.store_name(self.config), prefixes, pattern, tuple(ranges))

    def published(self, run: PublishedRun, publisher: Publisher) -> Sequence[str]:
        assert all((self.files.folder / file.key).exists() for file in run.files)
        entry = {"files": len(run.files), "complete": [directory.directory for directory in run.complete]}
        (self.files.folder / f"catalog-{run.run_id}").write_text(json.dumps(entry))
        return (f"{len(run.files)} files are in the catalog.",)

    def stop(self) -> None:
        self.calls.append("stop")
