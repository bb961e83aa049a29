"""A sink that overrides all that a run asks a connector: a publisher of its own, a catalog, a state."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from airflow_connect.api import (
    ConfigDef,
    ConfigError,
    ConfigKey,
    ConfigType,
    CopiedRun,
    LeftOver,
    LeftoverPattern,
    OffsetRange,
    Outcome,
    PlannedRun,
    PlannedState,
    PublishedRun,
    Publisher,
    StagedFile,
    StagingSinkConnector,
    StateAfter,
    TopicPartition,
)
from tests.integration.plugins.folder_sink import FolderSinkConnector, FolderSinkTask

ROWS = "rows"


class CatalogTask(FolderSinkTask):
    """Files of rows; it notes what the run has told it."""

    def open(self, partitions: Collection[TopicPartition]) -> None:
        super().open(partitions)
        run = self.context.run
        self.note = {"state": dict(run.state), "flush_on_end": run.flush_on_end}

    def flush(self) -> Sequence[StagedFile]:
        (self.folder / f"told-{self.context.run_id}").write_text(json.dumps(self.note))
        return [replace(file, role=ROWS) for file in super().flush()]

    def details(self, partition: TopicPartition) -> Mapping[str, Any]:
        return {"directory": "day"}


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


class CatalogConnector(StagingSinkConnector):
    """Counts the calls of all its objects in this process."""

    calls: ClassVar[list[str]] = []
    task_class = CatalogTask
    counted_role = ROWS
    config_def = ConfigDef().define(
        ConfigKey("folder", ConfigType.STRING, documentation="Where files go."),
        ConfigKey("catalog", ConfigType.STRING, "main", documentation="Its name."),
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

    def plan_state(self, run: PlannedRun) -> PlannedState:
        """Tasks get what is known of earlier runs; from the second run on, nothing is left to the next one."""
        told = {"v": 1, "runs": run.kept.get("runs", 0), "gone": sorted(run.gone)}
        return PlannedState(told, leaves_nothing=run.last_run_ms > 0, notes=("Planned.",))

    def state_after(self, run: CopiedRun) -> StateAfter:
        """The directories of the run are complete."""
        days = sorted({(r.range.topic, r.details["directory"]) for r in run.reports})
        complete = [{"directory": directory, "origin": topic} for topic, directory in days]
        kept = {"v": 1, "runs": run.for_tasks["runs"] + 1}
        return StateAfter(kept, complete, {"late": len(days)}, ("Counted.",))

    @classmethod
    def uses_current(cls, key: str, staged: Mapping[str, str]) -> bool:
        return key == "catalog"

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
        entry = {
            "catalog": self.config.get("catalog", "main"),
            "files": len(run.files),
            "complete": [one["directory"] for one in run.complete],
        }
        (self.files.folder / f"catalog-{run.run_id}").write_text(json.dumps(entry))
        return (f"{len(run.files)} files are in the catalog.",)

    def stop(self) -> None:
        self.calls.append("stop")
