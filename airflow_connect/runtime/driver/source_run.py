"""One run of a source on one screen: fence, plan, copy, settle, commit (design section 4).

`SourceRun.execute` is the protocol; every step is a method below it. Records and offsets become final inside the tasks
(exactly_once/task_transaction.py); the driver makes sure that only this run's tasks can do that:

1. It takes the connector's transactional id, so that no older driver can write anything any more.
2. It writes its run id into the connector's state: the claim. A task looks at it after its own `init_transactions`.
3. It takes the transactional id of every task of the last generation. A task of an older run that starts before this
   is fenced; one that starts after it sees the claim and stops.
4. It records how many tasks there are now, in the record that Kafka Connect uses for the same purpose.
5. Where an attempt that nobody waits for may still be on its way when the tasks have ended, it gives the claim up and
   takes their transactional ids, before it looks at what they committed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from airflow_connect.api import connector_keys as keys
from airflow_connect.api.run import Plan, RunReport, TaskPlan, TaskReport
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.source_documents import SHOWN_OFFSETS, OffsetMove, SourcePlan, SourceRunReport
from airflow_connect.exactly_once.journal import Commit
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.reporting import now_ms
from airflow_connect.runtime.driver.run_in_progress import RunInProgress
from airflow_connect.runtime.driver.source_session import SourceSession
from airflow_connect.runtime.driver.started_source import StartedSource
from airflow_connect.runtime.notes import Notes

if TYPE_CHECKING:
    from airflow_connect.exactly_once.journal import Journal
    from airflow_connect.kafka.offsets_topic import SourceOffsets
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.source_configuration import SourceConfiguration
    from airflow_connect.runtime.spec import Observer

TaskConfigs = list[Mapping[str, str]]
MOST_NOTES_OF_RUN = 100
"""Sentences that a report holds: each of up to 1,000 tasks may have some."""


class SourceRun(RunInProgress):
    """The state of one run while it goes through the protocol."""

    def __init__(self, configuration: SourceConfiguration, observer: Observer, engine: Engine | None) -> None:
        """Opens nothing."""
        super().__init__(configuration.references, configuration.worker_spark, observer, engine)
        self._config = configuration
        self._settled = 0
        self._notes = Notes()

    def execute(self) -> RunReport:
        """The protocol. Returns the report of a run that is done or found nothing.

        Raises:
            ConnectError: the run failed; what its tasks committed stays, and the next run goes on from there.
        """
        with SourceSession(self._config) as kafka:
            return self._protocol(kafka)

    def _protocol(self, kafka: SourceSession) -> RunReport:
        with self._phase("fence"):
            before = kafka.read_state()
            kafka.refuse_live_workers(before)
            journal = kafka.open_writer()
            for note in kafka.notes:
                self._notes.add(note)
            journal.fence()
            reached(crash_points.FENCED)
            state = self._claim(journal)
            reached(crash_points.BEGUN)
            # Read again: an older driver may have written it before it was fenced.
            kafka.fence_tasks(kafka.read_state().task_count or 0)
            reached(crash_points.SOURCE_TASKS_FENCED)
        with self._phase("plan"):
            offsets = kafka.read_offsets()
            self._take_over(kafka, offsets)
            self._settle(kafka, offsets)
            plan, configs = self.plan_from(offsets)
            self._config.check_converters()
            if configs or not self._is_exactly_once:
                # Without tasks those of the last generation stay the ones that the next run has to fence.
                kafka.write_task_count(len(configs) if self._is_exactly_once else 0)
            self._observer({"event": "plan", "plan": plan.to_json(), "notes": list(plan.notes)})
            reached(crash_points.SOURCE_PLANNED)
        settings = self._config.task_settings(plan.created_ms, configs, kafka.known_state())
        reports = self._run_tasks(plan, settings, total=0) if configs else []
        with self._phase("settle"):
            if self._is_exactly_once and self._may_have_other_attempts(reports):
                journal.begin(replace(state, phase=CLOSED))
                kafka.fence_tasks(len(configs))
            if StartedSource.settles(self._config.connector_class):
                self._settle(kafka, kafka.read_offsets())
            if self._config.resolved.worker.sources.offsets_file:
                kafka.copy_to_file(kafka.read_offsets())
            reached(crash_points.SOURCE_SETTLED)
        with self._phase("commit"):
            return self._close(journal, state, plan, reports)

    @property
    def _is_exactly_once(self) -> bool:
        return self._config.delivery_guarantee == keys.EXACTLY_ONCE

    def _may_have_other_attempts(self, reports: Sequence[TaskReport]) -> bool:
        """Whether there were attempts that lost: Spark may not have ended them yet, or have lost sight of them."""
        return bool(reports) and (any(r.attempt for r in reports) or self._get_engine().may_leave_duplicates)

    # --- fence ---------------------------------------------------------------------------------------------------

    def _claim(self, journal: Journal) -> ConnectorState:
        """Say that this run is the one that may write, before older tasks are fenced."""
        found = journal.read().state or ConnectorState(self._config.name, "", CLOSED, 0)
        claimed = replace(found, run_id=self._config.run_id, phase=COPYING, at_ms=now_ms())
        journal.begin(claimed)
        return claimed

    # --- plan ----------------------------------------------------------------------------------------------------

    def _take_over(self, kafka: SourceSession, offsets: SourceOffsets) -> None:
        """A standalone worker may have been the last to run the connector: then its file holds the offsets."""
        changes = kafka.changes_in_file(offsets)
        if changes:
            kafka.write_offsets(offsets, changes)
            # At once: whatever this run commits from here on is newer than the file.
            kafka.copy_to_file(offsets)
            self._notes.add(
                f"{len(changes)} offset(s) were taken over from {self._config.resolved.worker.sources.offsets_file}."
            )

    def plan_from(self, offsets: SourceOffsets, *, only_plans: bool = False) -> tuple[Plan, TaskConfigs]:
        """The frozen plan and the configurations of its tasks; `only_plans`: no task will run.

        Raises:
            ConnectError: the connector cannot say what its tasks are.
        """
        created_ms = now_ms()
        with self._started(offsets, only_plans=only_plans) as started:
            configs = started.task_configs(self._config.resolved.connector.tasks_max)
        connector = self._config.resolved.connector
        moves = (OffsetMove(dict(partition), dict(offset)) for partition, offset in offsets.items())
        source = SourcePlan(
            offsets=tuple(move for _, move in zip(range(SHOWN_OFFSETS), moves, strict=False)),
            partitions=len(offsets),
            delivery_guarantee=self._config.delivery_guarantee,
            boundary=connector.boundary if self._is_exactly_once else "",
            offsets_topics=self._config.resolved.offsets_topics,
        )
        tasks = tuple(TaskPlan(number, ()) for number in range(len(configs)))
        notes = (*self._notes.sentences, *self._config.delivery_notes)
        return Plan(connector.name, self._config.run_id, created_ms, tasks, {}, notes, source), configs

    def _settle(self, kafka: SourceSession, offsets: SourceOffsets) -> None:
        """Let the connector rewrite offsets while no task runs."""
        if not StartedSource.settles(self._config.connector_class):
            return
        with self._started(offsets) as started:
            changes = started.settle_offsets()
        self._settled += kafka.write_offsets(offsets, changes)

    def _started(self, offsets: SourceOffsets, *, only_plans: bool = False) -> StartedSource:
        config, aws = self._config.resolved.connector.raw, dict(self._config.spec.aws)
        role = RoleContext(config, aws=aws, run_id=self._config.run_id)
        return StartedSource(self._config.connector_class, role, offsets, self._notes, only_plans=only_plans)

    # --- commit --------------------------------------------------------------------------------------------------

    def _close(self, journal: Journal, state: ConnectorState, plan: Plan, reports: Sequence[TaskReport]) -> RunReport:
        """Add the run to the history. Records and offsets are final already."""
        report = self._report(plan, reports)
        for note in report.notes:
            if note not in plan.notes:  # those were shown with the plan
                self._warn(note)
        closed = replace(state, phase=CLOSED, at_ms=plan.created_ms)
        journal.commit(Commit(offsets={}, state=closed, summary=report.to_json() if report.status == "done" else None))
        reached(crash_points.COMMITTED)
        return replace(report, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))

    def _report(self, plan: Plan, reports: Sequence[TaskReport]) -> RunReport:
        tasks = [report.source for report in reports if report.source is not None]
        failed = sum(report.failed for report in reports)
        source = SourceRunReport.of(tasks, self._settled, failed)
        written, filtered = sum(t.written for t in tasks), sum(t.filtered for t in tasks)
        repeated = sum(1 for report in reports if report.attempt)
        # An attempt that died may have committed everything: then the last one finds nothing, and the run is not empty.
        something = written or filtered or failed or source.partitions or self._settled or repeated
        # Notes of the plan, what came after it, and what tasks say: each once.
        of_tasks = [note for report in reports for note in report.notes]
        of_tasks += [note for task in tasks for note in task.notes]
        told = (*plan.notes, *self._notes.sentences, *of_tasks)
        notes = list(dict.fromkeys(told))[:MOST_NOTES_OF_RUN]
        if repeated:
            notes.append(f"{repeated} task(s) needed more than one attempt; counts are those of the last attempts.")
        return RunReport(
            connector=self._config.name,
            run_id=self._config.run_id,
            status="done" if something else "empty",
            started_ms=self._started_ms,
            ended_ms=now_ms(),
            delivery_guarantee=self._config.delivery_guarantee,
            records=written,
            filtered=filtered,
            size_bytes=source.size_bytes,
            tasks=len(reports),
            peak_memory_bytes=max((r.peak_memory_bytes for r in reports), default=0),
            phases_ms=dict(self.phases_ms),
            ignored_keys=tuple(self._config.ignored_keys),
            notes=tuple(notes),
            source=source,
        )
