"""The verifying source of these tests: source partition `p` holds the numbers 0, 1, 2 ... up to what a file says.

The file is a JSON list of counts, one per source partition; a test makes it grow. Values are `{"p": p, "n": n}`.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from airflow_connect.api import ConfigDef, ConfigKey, ConfigType, SourceConnector, SourceRecord, SourceTask
from airflow_connect.api.source import ExactlyOnceSupport
from tests.support.waiting import wait_until


def held_by(hold: Path) -> Path:
    """What the file `numbers.hold` becomes when an attempt is held by it; the test removes it to let that go on."""
    return hold.with_suffix(".held")


class NumbersTask(SourceTask):
    """Reads the partitions `numbers.assigned`, in turns."""

    def start(self, config: Mapping[str, str]) -> None:
        self._stopped = threading.Event()
        self.config = config
        self.polled = False
        self.batch = int(config.get("numbers.batch", "7"))
        counts = json.loads(Path(config["numbers.file"]).read_text())
        mine = [int(p) for p in config["numbers.assigned"].split(",") if p]
        if config.get("numbers.asks") == "everything":
            every = {int(partition["p"]): offset for partition, offset in self.context.offset_reader.committed()}
            offsets = [every.get(p) for p in mine]
        elif config.get("numbers.asks") == "nothing":
            offsets = [None] * len(mine)
        else:
            offsets = self.context.offset_reader.offsets([{"p": p} for p in mine])
        self.next = {p: int(offset["n"]) if offset else 0 for p, offset in zip(mine, offsets, strict=True)}
        self.ends = {p: counts[p] for p in mine}
        self._note("start", dict(self.next))

    def poll(self) -> Sequence[SourceRecord] | None:
        self._stopped.wait(float(self.config.get("numbers.pause", "0")))  # a slow source
        self._hold()
        waiting = [p for p in self.next if self.next[p] < self.ends[p]]
        if not waiting:
            return None
        p = min(waiting, key=lambda p: self.next[p])
        first, self.next[p] = self.next[p], min(self.next[p] + self.batch, self.ends[p])
        return [self.record(p, n) for n in range(first, self.next[p])]

    def record(self, p: int, n: int) -> SourceRecord:
        return SourceRecord(
            topic=self.config["topic"],
            partition=p % int(self.config.get("numbers.topic.partitions", "1")),
            value={"p": p, "n": n},
            source_partition={"p": p},
            source_offset={"n": n + 1},
        )

    def has_ended(self) -> bool:
        return all(self.next[p] >= self.ends[p] for p in self.next)

    def stop(self) -> None:
        self._stopped.set()
        self._note("stop", None)

    def _hold(self) -> None:
        """Of all attempts one, and not before its second batch, takes the file away and waits until its twin goes."""
        hold, polled = self.config.get("numbers.hold"), self.polled
        self.polled = True
        if not hold or not polled:
            return
        held = held_by(Path(hold))
        try:
            Path(hold).rename(held)
        except FileNotFoundError:
            return
        wait_until(lambda: not held.exists(), "the test to let the source go on", 120)

    def _note(self, what: str, value: Any) -> None:
        if notes := self.config.get("numbers.notes"):
            with Path(notes).open("a") as file:
                file.write(json.dumps([what, os.getpid(), value]) + "\n")


class NumbersConnector(SourceConnector):
    """Shares the partitions among at most `tasks.max` tasks."""

    task_class = NumbersTask
    config_def = ConfigDef().define(
        ConfigKey("numbers.file", ConfigType.STRING),
        ConfigKey("topic", ConfigType.STRING),
    )

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        count = len(json.loads(Path(self.config["numbers.file"]).read_text()))
        tasks = max(1, min(max_tasks, count))
        return [
            {**self.config, "numbers.assigned": ",".join(str(p) for p in range(task, count, tasks))}
            for task in range(tasks)
        ]

    def source_partitions(self, task_config: Mapping[str, str]) -> list[Mapping[str, Any]] | None:
        """What `numbers.names` says: those of the task (`own`), others (`wrong`); by default unknown."""
        names = self.config.get("numbers.names")
        if not names:
            return None
        mine = {int(p) for p in task_config["numbers.assigned"].split(",") if p}
        count = len(json.loads(Path(self.config["numbers.file"]).read_text()))
        return [{"p": p} for p in range(count) if (p in mine) == (names == "own")]

    def exactly_once_support(self, config: Mapping[str, str]) -> ExactlyOnceSupport | None:
        said = config.get("numbers.support", "supported")
        return ExactlyOnceSupport(said) if said else None

    def can_define_transaction_boundaries(self, config: Mapping[str, str]) -> bool:
        return config.get("numbers.boundaries") == "true"
