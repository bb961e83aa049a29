"""Record time in the driver: which records are late (frozen with the plan), and what the commit completes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.documents.time_progress import CopiedTimes, TimeKeeper, TimeProgress, TimeStep
from airflow_connect.exactly_once.parts import joined

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.documents.run import Plan, TaskReport
    from airflow_connect.documents.time_progress import TimeDirectory
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.planning.planner import Positions
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


_TASK = ("dag_id", "dag_run_id", "task_id", "map_index")


def airflow_task(origin: Mapping[str, str]) -> dict[str, str]:
    """What all attempts of one Airflow task have in common; {} for runs that Airflow did not start."""
    return {name: origin[name] for name in _TASK if name in origin}


def unannounced(state: ConnectorState, origin: Mapping[str, str]) -> tuple[TimeDirectory, ...]:
    """Directories that an earlier attempt of this Airflow task completed before it ended; they are announced again."""
    task = airflow_task(origin)
    return state.announced if task and task == dict(state.announced_to) else ()


@dataclass(frozen=True, slots=True)
class RunTimes:
    """What is known when the plan is created.

    Attributes:
        keeper: the sink's, or None if complete directories are not requested.
        before: progress of earlier runs, without what is no longer valid.
        plan: frozen; its clock is the run's.
        every: all partitions of all topics.
        at_end: those that the plan reads to the end of the log.
    """

    keeper: TimeKeeper | None
    before: TimeProgress
    plan: Plan
    every: tuple[TopicPartition, ...]
    at_end: frozenset[TopicPartition]

    @classmethod
    def of(cls, sink: StartedSink, state: ConnectorState, plan: Plan, positions: Positions) -> RunTimes:
        """For the plan of a run that finds `state`."""
        every = tuple(r.topic_partition for r in positions.ranges)
        topics = sorted({tp.topic for tp in every})
        keeper = sink.time_keeper(topics)
        known = state.seeing(plan.topic_ids)
        # A partition that is read again starts over with its progress.
        again = [r.topic_partition for r in positions.ranges if r.start < known.committed.get(r.topic_partition, 0)]
        return cls(keeper, known.time.without(again), plan, every, positions.at_end)

    @property
    def late_before(self) -> Mapping[str, int]:
        """See `RoleContext`."""
        if self.keeper is None:
            return {}
        return self.keeper.late_before(self.before, {tp.topic for tp in self.every})

    def step(self, reports: Sequence[TaskReport] = ()) -> TimeStep | None:
        """The progress after the commit of `reports`; None if complete directories are not requested."""
        if self.keeper is None:
            return None
        return self.keeper.advance(
            self.before,
            CopiedTimes(
                now_ms=self.plan.created_ms,
                every=self.every,
                at_end=self.at_end,
                reports=tuple(joined(p for r in reports for p in r.partitions)),
                files=tuple(f for r in reports for f in r.files),
            ),
        )
