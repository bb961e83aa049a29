"""Connectors as pages show them: frozen values that are computed once for each look at Kafka."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.documents.run_detail import TaskRow
from airflow_connect.documents.run_lag import LagOfHour, RunLag
from airflow_connect.documents.run_progress import RunProgress
from airflow_connect.documents.run_tables import TableCommit

if TYPE_CHECKING:
    from airflow_connect.api.coverage import Covered
    from airflow_connect.api.offsets import TopicPartition


class State(StrEnum):
    """The state of a connector, the worst first: pages sort by this order."""

    FAILED = "failed"
    LATE = "late"
    UNKNOWN = "unknown"
    RUNNING = "running"
    WAITING = "waiting"
    NEW = "new"
    CURRENT = "current"
    PAUSED = "paused"
    STOPPED = "stopped"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(State).index(self)


class TaskTimes(NamedTuple):
    """How long the tasks of a run took, of those that its entry has (`run_detail.MOST_TASKS`)."""

    number: int
    median_ms: float
    slowest_ms: int

    @property
    def skew(self) -> float | None:
        """How many times as long as the median task the slowest one took; None: there is nothing to compare."""
        return self.slowest_ms / self.median_ms if self.number > 1 and self.median_ms > 0 else None


@dataclass(frozen=True, slots=True)
class Run:
    """One entry of the history, or the end of a run that has no entry.

    Attributes:
        started_ms, ended_ms: milliseconds since the epoch.
        phases_ms: phase name to milliseconds, in the order of the run.
        error: `message`, `suggestion` and `code` of a run that has failed; otherwise {}.
        origin: who started it, see `runtime.spec.RunSpec.origin`; {} in entries of earlier releases.
        queue: the connector's dead letter queue, or "".
        lag: of a sink, what it found and left; None in entries of earlier releases.
        tasks: how long its tasks took; None without tasks, and in entries of earlier releases.
        reasons: stage and error of failed records, and how many; () in entries of earlier releases.
        tables: of a sink to tables of a lake, the snapshots that its report has.
    """

    run_id: str
    status: str
    started_ms: int
    ended_ms: int
    records: int = 0
    filtered: int = 0
    dead_lettered: int = 0
    left: int = 0
    files: int = 0
    size_bytes: int = 0
    phases_ms: Mapping[str, int] = field(default_factory=dict)
    error: Mapping[str, str] = field(default_factory=dict)
    origin: Mapping[str, str] = field(default_factory=dict)
    queue: str = ""
    lag: RunLag | None = None
    tasks: TaskTimes | None = None
    reasons: tuple[tuple[str, str, int], ...] = ()
    tables: tuple[TableCommit, ...] = ()

    @property
    def duration_ms(self) -> int:
        """How long it took."""
        return max(0, self.ended_ms - self.started_ms)

    @property
    def read(self) -> int:
        """Records that it has taken from its topics, or from its source."""
        return self.records + self.filtered + self.dead_lettered + self.left

    @property
    def records_per_s(self) -> float | None:
        """Records per second of copying; None if it has copied nothing."""
        copying_ms = self.phases_ms.get("copy") or self.duration_ms
        return self.read * 1000 / copying_ms if self.read and copying_ms else None


def run_of(document: Mapping[str, Any]) -> Run:
    """A run from its document; members that an earlier release did not write are missing there."""
    numbers = ("records", "filtered", "dead_lettered", "left", "files", "size_bytes")
    detail = document.get("detail") or {}
    return Run(
        run_id=str(document["run_id"]),
        status=str(document["status"]),
        started_ms=int(document["started_ms"]),
        ended_ms=int(document["ended_ms"]),
        **{name: int(document.get(name) or 0) for name in numbers},
        phases_ms=dict(document.get("phases_ms") or {}),
        error=_error_of(document),
        origin=dict(document.get("origin") or {}),
        queue=str(detail.get("queue") or ""),
        lag=RunLag.from_json(document["lag"]) if document.get("lag") else None,
        tasks=_times_of([TaskRow(*row[: len(TaskRow._fields)]) for row in detail.get("tasks") or ()]),
        reasons=tuple((str(stage), str(error), int(count)) for stage, error, count in detail.get("reasons") or ()),
        tables=tuple(TableCommit.from_json(table) for table in document.get("tables") or ()),
    )


def _times_of(rows: Sequence[TaskRow]) -> TaskTimes | None:
    took = [max(0, row.ended_ms - row.started_ms) for row in rows]
    return TaskTimes(len(took), median(took), max(took)) if took else None


def _error_of(document: Mapping[str, Any]) -> dict[str, str]:
    code = document.get("error_code")
    if not code:
        return {}
    parts = {"code": code, "message": document.get("message"), "suggestion": document.get("suggestion")}
    return {name: str(part) for name, part in parts.items() if part}


def dags_of(runs: Iterable[Run]) -> tuple[str, ...]:
    """Ids of the DAGs that have started these runs, in their order."""
    return tuple(dict.fromkeys(run.origin["dag_id"] for run in runs if run.origin.get("dag_id")))


@dataclass(frozen=True, slots=True)
class Position:
    """A sink in one partition of its topics.

    Attributes:
        committed: next offset to copy; None: nothing is committed yet.
        start: where a run would start now.
        beginning, end: first offset in the log; where a run would stop now.
    """

    topic: str
    partition: int
    committed: int | None
    start: int
    beginning: int
    end: int

    @property
    def lag(self) -> int:
        """Offsets that a run would copy; gaps make it an upper bound of the records."""
        return max(0, self.end - self.start)

    @property
    def place(self) -> str:
        """`topic-partition`."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Change:
    """The configuration before the last change that was read.

    Attributes:
        before: the whole configuration.
        at_ms: when it was replaced.
    """

    before: Mapping[str, str | None] = field(repr=False)
    at_ms: int


@dataclass(frozen=True, slots=True)
class Connector:
    """A connector.

    Attributes:
        kind: `sink`, `source` or `unknown`.
        config: as registered, references unresolved; None: it is not registered, DAGs run it.
        change: of its configuration, if it was seen.
        state: see `State`.
        problem: why it failed, in a sentence; or why its lag is not known.
        advice: what to do about it, or "".
        positions: by topic and partition; () for sources, and if they are not known.
        lag: records to copy; None: not known, or it is a source.
        runs: the newest first.
        next_run_ms: when a worker runs it again, or Airflow starts its DAG; None: not known.
        missed_run_ms: of a late one, when the first of the runs was due that are missing.
        schedule_note: of one that DAGs run, what keeps it from being late, or "".
        schedule_problem: of one that DAGs run, why it is not known whether it is late, or "".
        target: the target state of a registered connector: STARTED, PAUSED or STOPPED.
        lag_of_hours: lag that runs of the last week have found.
        copying: the run that has begun to copy and has not committed, or "".
        progress: what that run has told last; None: nothing yet.
        oldest_ms: the time of the oldest record that waits; None: nothing does, or it is unknown.
        coverage: of a backup, the offsets that its runs have copied.
    """

    name: str
    kind: str
    config: Mapping[str, str | None] | None = field(repr=False)
    state: State
    problem: str = ""
    advice: str = ""
    lag_problem: str = ""
    change: Change | None = None
    positions: tuple[Position, ...] = ()
    lag: int | None = None
    runs: tuple[Run, ...] = ()
    next_run_ms: int | None = None
    missed_run_ms: int | None = None
    schedule_note: str = ""
    schedule_problem: str = ""
    target: str = ""
    lag_of_hours: tuple[LagOfHour, ...] = ()
    copying: str = ""
    progress: RunProgress | None = None
    oldest_ms: int | None = None
    coverage: Mapping[TopicPartition, Covered] = field(default_factory=dict)

    @property
    def is_registered(self) -> bool:
        """Whether it is in the config topic, so that it can be paused."""
        return self.config is not None

    @property
    def plugin(self) -> str:
        """The simple name of its class, or ""."""
        return str((self.config or {}).get("connector.class") or "").rpartition(".")[2].rpartition(":")[2]

    @property
    def last_run(self) -> Run | None:
        """The newest one."""
        return self.runs[0] if self.runs else None

    @property
    def last_copy(self) -> Run | None:
        """The newest run that has copied something."""
        return next((run for run in self.runs if run.read), None)

    @property
    def queue(self) -> str:
        """Its dead letter queue, as its configuration or its last run names it; or ""."""
        if self.config is not None:
            return str(self.config.get("errors.deadletterqueue.topic.name") or "")
        return self.last_copy.queue if self.last_copy else ""

    @property
    def dags(self) -> tuple[str, ...]:
        """Ids of the DAGs that have run it, as far as its history tells."""
        return dags_of(self.runs)


@dataclass(frozen=True, slots=True)
class Overview:
    """An installation at one moment.

    Attributes:
        at_ms: when it was read.
        connectors: by name.
        workers: worker to the connectors and tasks that it reported last.
        is_set_up: whether any of the state topics exists.
    """

    at_ms: int
    connectors: Mapping[str, Connector]
    workers: Mapping[str, Sequence[str]] = field(default_factory=dict)
    is_set_up: bool = True

    def worst_first(self) -> list[Connector]:
        """All connectors: failures, then late ones, then the others by name."""
        return sorted(self.connectors.values(), key=lambda c: (min(c.state.rank, State.LATE.rank + 1), c.name))
