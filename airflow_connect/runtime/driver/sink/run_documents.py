"""The connector's own document in a run: asked for at the plan and after the copy, and never read here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.sink_state import CopiedRun, PlannedRun, PlannedState, StateAfter
from airflow_connect.documents.run import PublishedRun
from airflow_connect.documents.run_tables import distinct
from airflow_connect.exactly_once.parts import in_order
from airflow_connect.runtime.driver.sink.run_state import SinkRunState

if TYPE_CHECKING:
    from airflow_connect.documents.run import Plan, TaskReport
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.planning.planner import Positions
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink


_TASK = ("dag_id", "dag_run_id", "task_id", "map_index")


def airflow_task(origin: Mapping[str, str]) -> dict[str, str]:
    """What all attempts of one Airflow task have in common; {} for runs that Airflow did not start."""
    return {name: origin[name] for name in _TASK if name in origin}


def beginning(known: ConnectorState, origin: Mapping[str, str]) -> SinkRunState:
    """The state of a run that begins: what an earlier attempt of its Airflow task announced is announced again."""
    task = airflow_task(origin)
    if not task or task != dict(known.announced_to):
        return SinkRunState(known)
    return SinkRunState(known, complete=known.announced, tables=known.announced_tables)


def announcing(state: SinkRunState, seen: PublishedRun, sink: StartedSink, origin: Mapping[str, str]) -> SinkRunState:
    """The state with what a run announces by committing a manifest, recovered manifests included.

    Args:
        state: of the run.
        seen: the files of the manifest.
        sink: the connector of the manifest.
        origin: who started the run.
    """
    complete = state.complete + tuple(seen.complete)
    tables = distinct((*state.tables, *sink.table_commits(seen)))
    task = airflow_task(origin)
    announced = (
        {"announced": complete, "announced_tables": tables} if task else {"announced": (), "announced_tables": ()}
    )
    connector = replace(state.connector, announced_to=task, **announced)
    return replace(state, connector=connector, complete=complete, tables=tables)


def planned_run(state: ConnectorState, plan: Plan, positions: Positions) -> PlannedRun:
    """What the connector is told about a run that finds `state`."""
    known = state.seeing(plan.topic_ids)
    return PlannedRun(
        kept=state.kept,
        now_ms=plan.created_ms,
        last_run_ms=state.at_ms,
        ranges=plan.ranges,
        partitions=tuple(r.topic_partition for r in positions.ranges),
        at_end=positions.at_end,
        again=frozenset(
            r.topic_partition
            for r in (*positions.ranges, *plan.ranges)
            if r.start < known.committed.get(r.topic_partition, 0)
        ),
        gone=known.gone | state.recreated(plan.topic_ids),
        forgotten=known.forgotten,
    )


def said_by(manifest: Manifest) -> tuple[str, ...]:
    """What a run that ended before its commit has found, for the report of the run that commits its manifest."""
    return tuple(f"Of run {manifest.run_id}, which ended before its commit: {note}" for note in manifest.said)


def published_run(manifest: Manifest, kept_before: Mapping[str, Any]) -> PublishedRun:
    """What the connector is told about the files of a manifest once they are visible.

    Args:
        manifest: of this run, or of one that it recovers.
        kept_before: the connector's document before it; it holds unless the manifest has another one.
    """
    kept = kept_before if manifest.after is None else manifest.after.kept
    topics = tuple(sorted(manifest.topic_ids))
    return PublishedRun(manifest.run_id, manifest.created_ms, manifest.files, manifest.complete, topics, kept)


@dataclass(frozen=True, slots=True)
class RunDocuments:
    """The documents of a run.

    Attributes:
        sink: its connector.
        planned: what the connector was told at the plan, with what it keeps since then.
        state: what it returned.
    """

    sink: StartedSink
    planned: PlannedRun
    state: PlannedState

    @classmethod
    def of(cls, sink: StartedSink, planned: PlannedRun) -> RunDocuments:
        """Ask the connector.

        Raises:
            ConnectError: its own, or it returned something else than a JSON document.
        """
        state = sink.plan_state(planned)
        kept = planned.kept if state.kept is None else state.kept
        return cls(sink, replace(planned, kept=kept), state)

    def told(self, known: ConnectorState) -> ConnectorState:
        """The state of a connector that was told which topics are gone; as it was if its class keeps no document."""
        if not self.sink.keeps_document:
            return known
        return replace(known, kept=self.planned.kept, gone=frozenset(), forgotten=frozenset())

    def after(self, reports: Sequence[TaskReport] = ()) -> StateAfter:
        """What takes effect with the commit of `reports`.

        Raises:
            ConnectError: its own, or it returned something else than JSON documents.
        """
        parts = in_order(p for r in reports for p in r.partitions)
        files = tuple(f for r in reports for f in r.files)
        return self.sink.state_after(CopiedRun(self.planned, self.state.for_tasks, parts, files))

    def changes(self, after: StateAfter) -> bool:
        """Whether a manifest has to say anything; if not, earlier releases can read it."""
        return after.kept != self.planned.kept or bool(after.complete or after.notes)
