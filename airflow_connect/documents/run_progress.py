"""How far a run is while it copies: what its driver tells pages every few seconds, until it has committed or failed.

No run reads it, and nothing follows from it: it may be late, lost, or written by a run that has been fenced.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from airflow_connect.api.json_document import JsonDocument, to_plain

MOST_TASKS = 200


class TaskProgress(NamedTuple):
    """What a task has reported, with the driver's clock.

    Attributes:
        records, size_bytes: copied so far; with retries, by the newest attempt.
        first_ms, last_ms: its first and its last report, milliseconds since the epoch.
    """

    task: int
    attempt: int
    records: int
    size_bytes: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True)
class RunProgress(JsonDocument):
    """A run that copies, or publishes what it has copied.

    Attributes:
        started_ms, at_ms: when the run began; when this was written.
        phase: the one that it is in.
        done, total: of the phase `copy`, records so far, and offsets in the plan; of `publish`, files. A total of 0 is
            not known.
        phases_ms: phases that have ended, and how long each took.
        tasks: the first of them; () before the first report.
        origin: who started it, see `runtime.spec.RunSpec.origin`.
        parts_done, parts_total: of a source that tells how much it has to copy, parts that are copied, and all; 0: it
            does not tell.
        parts_what: the words after their number: `files of 2 partitions`.
    """

    LEFT_OUT = frozenset({"parts_done", "parts_total", "parts_what"})
    MAY_LACK = frozenset()

    run_id: str
    started_ms: int
    at_ms: int
    phase: str
    done: int = 0
    total: int = 0
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    tasks: tuple[TaskProgress, ...] = ()
    origin: Mapping[str, str] = field(default_factory=dict)
    parts_done: int = 0
    parts_total: int = 0
    parts_what: str = ""

    @property
    def share(self) -> float | None:
        """From 0 to 1; None: the total is not known."""
        if self.phase == "copy" and self.parts_total:
            return min(1.0, self.parts_done / self.parts_total)
        return min(1.0, self.done / self.total) if self.total else None

    def to_json(self) -> dict[str, Any]:
        """Versioned JSON form; tasks are rows without names, as in `run_detail`."""
        return {"v": 1, **to_plain(replace(self, tasks=self.tasks[:MOST_TASKS]))}
