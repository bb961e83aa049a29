"""How far a run is while it copies: what its driver tells pages every few seconds, until it has committed or failed.

No run reads it, and nothing follows from it: it may be late, lost, or written by a run that has been fenced.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

MOST_TASKS = 200


@dataclass(frozen=True, slots=True)
class TaskProgress:
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
class RunProgress:
    """A run that copies, or publishes what it has copied.

    Attributes:
        started_ms, at_ms: when the run began; when this was written.
        phase: the one that it is in.
        phases_ms: phases that have ended, and how long each took.
        done, total: of the phase `copy`, records so far, and offsets in the plan; of `publish`, files. A total of 0 is
            not known.
        tasks: the first of them; () before the first report.
        origin: who started it, see `runtime.spec.RunSpec.origin`.
    """

    run_id: str
    started_ms: int
    at_ms: int
    phase: str
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    done: int = 0
    total: int = 0
    tasks: Sequence[TaskProgress] = ()
    origin: Mapping[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float | None:
        """From 0 to 1; None: the total is not known."""
        return min(1.0, self.done / self.total) if self.total else None

    def to_json(self) -> dict[str, Any]:
        """Versioned JSON form; tasks are rows without names, as in `run_detail`."""
        rows = [list(asdict(task).values()) for task in self.tasks[:MOST_TASKS]]
        named = {name: getattr(self, name) for name in ("run_id", "started_ms", "at_ms", "phase", "done", "total")}
        return {"v": 1, **named, "phases_ms": dict(self.phases_ms), "tasks": rows, "origin": dict(self.origin)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunProgress:
        """Inverse of `to_json`; unknown members are those of a newer release."""
        return cls(
            run_id=str(data["run_id"]),
            started_ms=int(data["started_ms"]),
            at_ms=int(data["at_ms"]),
            phase=str(data["phase"]),
            phases_ms={str(name): int(ms) for name, ms in data["phases_ms"].items()},
            done=int(data["done"]),
            total=int(data["total"]),
            tasks=tuple(TaskProgress(*row) for row in data["tasks"]),
            origin=dict(data["origin"]),
        )
