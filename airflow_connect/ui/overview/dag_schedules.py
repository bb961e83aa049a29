"""When Airflow runs the DAGs of connectors: plain values, which the layer above reads from Airflow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

_Times = Callable[[int], tuple[int, ...]]


@dataclass(frozen=True, slots=True)
class DagSchedule:
    """The schedule of a DAG that this Airflow has. All times are milliseconds since the epoch.

    Attributes:
        is_paused: whether Airflow starts no runs by schedule.
        next_ms: when Airflow creates the next run; None: it has no schedule, events start it, or it has ended.
        two_after: the next two times of the schedule after a moment; fewer if there are none.
        problem: why these times are not known, or "".
    """

    dag_id: str
    is_paused: bool
    next_ms: int | None = None
    two_after: _Times = field(default=lambda _: (), compare=False, repr=False)
    problem: str = ""

    def missed_since(self, ended_ms: int, now_ms: int) -> int | None:
        """When the first of two runs was due, if both were due after `ended_ms`; None: at most one was."""
        if self.is_paused or self.next_ms is None:
            return None
        due = self.two_after(ended_ms)
        return due[0] if len(due) == 2 and due[1] <= now_ms else None


ReadSchedules = Callable[[Collection[str]], Mapping[str, DagSchedule]]
"""Schedules by DAG id, of those DAGs that exist.

Raises:
    UnavailableError: Airflow's database did not answer.
"""


def are_paused(schedules: Sequence[DagSchedule]) -> bool:
    """Whether there are DAGs, and all of them are paused."""
    return bool(schedules) and all(schedule.is_paused for schedule in schedules)


def next_of(schedules: Sequence[DagSchedule]) -> int | None:
    """When the next run of these DAGs is created; None: not known."""
    return min((s.next_ms for s in schedules if s.next_ms is not None and not s.is_paused), default=None)


def note_of(schedules: Sequence[DagSchedule]) -> str:
    """What keeps the connector of these DAGs from being late, or ""."""
    named = ", ".join(schedule.dag_id for schedule in schedules)
    is_one = len(schedules) == 1
    if are_paused(schedules):
        return f"DAG {named} is paused." if is_one else f"DAGs {named} are paused."
    if not schedules or problem_of([s.dag_id for s in schedules], schedules) or next_of(schedules) is not None:
        return ""
    return f"DAG {named} runs at no fixed times." if is_one else f"DAGs {named} run at no fixed times."


def problem_of(dag_ids: Sequence[str], schedules: Sequence[DagSchedule]) -> str:
    """Why it is not known when these DAGs run, or ""; `schedules`: of those that exist."""
    if not dag_ids or schedules:
        return next((schedule.problem for schedule in schedules if schedule.problem), "")
    return f"This Airflow has no DAG {' or '.join(dag_ids)}, so it is not known when this connector runs."
