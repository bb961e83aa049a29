"""One run of a source on one screen: fence, plan, copy, reconcile, commit (design section 4).

`SourceRun.execute` is the protocol; every step is a method below it. Records and offsets become final inside the tasks
(exactly_once/task_transaction.py); the driver makes sure that only this run's tasks can do that:

1. It takes the connector's transactional id, so that no older driver can write anything.
2. It writes its run id into the connector's state: the claim. A task checks it after its own `init_transactions`.
3. It takes the transactional id of every task of the last generation. A task of an older run that starts before this
   is fenced; one that starts after it sees the claim and stops.
4. It records how many tasks there are now, in the record that Kafka Connect uses for the same purpose.
5. If a lost attempt may still start after the tasks have ended, the driver gives up the claim and takes their
   transactional ids before it reads what they committed.
6. A driver that was suspended between steps 2 and 3 takes the ids of a newer run's tasks when it wakes up, and learns
   only then that it was fenced. The newer driver runs its tasks a second time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from airflow_connect.counting import agreeing, plural
from airflow_connect.documents.run import DONE, EMPTY, FAILED, Plan, RunReport, TaskPlan, TaskReport
from airflow_connect.documents.run_detail import RunDetail
from airflow_connect.documents.source_run import SHOWN_OFFSETS, LeftOutPart, OffsetMove, SourcePlan, SourceRunReport
from airflow_connect.errors import TaskFailedError
from airflow_connect.exactly_once.journal import Commit
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.checks.java import notes_on_chain, notes_on_class
from airflow_connect.runtime.driver.reporting import end_of, failed_end_of, now_ms
from airflow_connect.runtime.driver.run_in_progress import RunInProgress
from airflow_connect.runtime.driver.source.changed_routes import note_of_changed_routes
from airflow_connect.runtime.driver.source.kafka_session import SourceSession
from airflow_connect.runtime.driver.source.started_source import StartedSource
from airflow_connect.runtime.driver.source.written_topics import WrittenTopics
from airflow_connect.runtime.driver.started import ConnectorRun
from airflow_connect.runtime.failed_records import skipped
from airflow_connect.runtime.left_out import error_of, note_of, without_doubles
from airflow_connect.runtime.reporting.notes import Notes, of_tasks
from airflow_connect.runtime.reporting.redaction import redactor_of_run
from airflow_connect.runtime.reporting.skew import skew_notes

if TYPE_CHECKING:
    from airflow_connect.errors import ConnectError
    from airflow_connect.exactly_once.journal import Journal
    from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.source.configuration import SourceConfiguration
    from airflow_connect.runtime.settings import TaskSettings
    from airflow_connect.runtime.spec import Observer

MOST_NOTES_OF_RUN = 100
"""Limit of the sentences in a report: each of up to 1,000 tasks may add some."""


class TaskWork(NamedTuple):
    """What the connector returned for its tasks.

    Attributes:
        configs: configuration of each.
        partitions: for each the identities of the source partitions whose offsets it needs; None: unknown.
    """

    configs: list[Mapping[str, str]]
    partitions: Sequence[frozenset[str] | None]


class SourceRun(RunInProgress):
    """The state of one run during the protocol."""

    def __init__(self, configuration: SourceConfiguration, observer: Observer, engine: Engine | None) -> None:
        """Opens nothing."""
        super().__init__(configuration.references, configuration.worker_spark, observer, engine)
        self._config = configuration
        self._reconciled = 0
        self._notes = Notes()
        self._left_out: tuple[LeftOutPart, ...] = ()
        self._error: ConnectError | None = None
        self._cluster_id = ""
        self._admin_settings: Mapping[str, Any] = {}
        self._kept: Mapping[str, Any] = {}

    def execute(self) -> RunReport:
        """The protocol. Returns the report of a run that is done, found nothing, or had to leave out a part.

        Raises:
            ConnectError: the run failed; what its tasks committed stays, and the next run continues from there.
        """
        with SourceSession(self._config) as kafka, self._telling_others(kafka, self._config.spec):
            report = self._protocol(kafka)
            if self._error is not None:
                end = failed_end_of(report.run_id, self._started_ms, self._error, self._config.spec.origin)
                if end is not None:
                    self._tell_end(kafka, end)
                return replace(report, status=FAILED)
            if report.status == EMPTY:
                self._tell_end(kafka, end_of(report))
            return report

    def _protocol(self, kafka: SourceSession) -> RunReport:
        with self._phase("fence"):
            before = kafka.read_state()
            kafka.ensure_group_empty(before)
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
        with ExitStack() as planning:
            with self._phase("plan"):
                self._cluster_id, self._admin_settings = kafka.cluster_id, kafka.admin.settings
                self._kept = state.kept
                kafka.expect_offsets(state.offsets_logs)
                offsets = kafka.take_offsets()
                self._name_lost_ends(kafka)
                self._take_over(kafka, offsets)
                self._name_missing(state.source_partitions, offsets, "when the last run ended")
                written = self._look_at_topics(kafka, state, offsets)
                # The connector that planned stays started until its tasks have ended, as in Kafka Connect.
                started = planning.enter_context(self._started(offsets))
                self._reconcile(kafka, offsets, started)
                plan, (configs, partitions) = self._plan(started, offsets)
                plan = replace(plan, notes=(*plan.notes, *self._config.check_converters()))
                if configs or not self._config.guarantee.uses_transactions:
                    # Without tasks, the next run must still fence those of the last generation.
                    kafka.write_task_count(len(configs) if self._config.guarantee.uses_transactions else 0)
                if configs and started.keeps_at_once and self._kept != state.kept:
                    state = replace(state, kept=self._kept)
                    journal.begin(state)
                self._observer({"event": "plan", "plan": plan.to_json(), "notes": list(plan.notes)})
                reached(crash_points.SOURCE_PLANNED)
            settings = self._config.task_settings(plan.created_ms, configs, kafka.known_state(partitions))
            reports = self._copy(journal, state, plan, settings, started.expected) if configs else []
            started.after_tasks()
        with self._phase("reconcile"):
            if self._config.guarantee.uses_transactions and self._may_have_other_attempts(reports):
                journal.begin(replace(state, phase=CLOSED))
                kafka.fence_tasks(len(configs))
            committed = offsets
            if configs:
                committed = kafka.read_offsets()
                self._name_lost_ends(kafka)
                moved = (report.source.partitions for report in reports if report.source is not None)
                self._name_missing(max(len(offsets), *moved), committed, "during this run")
            if configs and StartedSource.reconciles(self._config.connector_class):
                self._notes.begin_again()
                ended_by = {report.source.ended_by for report in reports if report.source is not None}
                with self._started(committed, ended_by=ended_by) as after_tasks:
                    self._reconcile(kafka, committed, after_tasks)
            if self._config.resolved.worker.sources.offsets_file:
                kafka.copy_to_file(kafka.read_offsets())
            reached(crash_points.SOURCE_RECONCILED)
        with self._phase("commit"):
            logs = kafka.offsets_logs()
            state = replace(state, source_partitions=len(committed), offsets_logs=logs, kept=self._kept)
            state = replace(state, routes=self._config.routes)
            if written is not None:
                ids, notes = written.after(_written_by(reports), len(committed))
                state = replace(state, topic_ids=ids)
                for note in notes:
                    self._notes.add(note)
            return self._close(journal, state, plan, reports)

    def _copy(
        self, journal: Journal, state: ConnectorState, plan: Plan, settings: TaskSettings, expected: tuple[int, str]
    ) -> list[TaskReport]:
        """Run the tasks, and once more if they were fenced although this run still holds the claim.

        Raises:
            FencedError: a newer run has taken over.
            ConnectError: see `_run_tasks`.
        """
        try:
            return self._run_tasks(plan, settings, 0, expected)
        except TaskFailedError as error:
            if error.code != "task.taken_over":
                raise
            journal.begin(state)  # Kafka refuses it if a newer run has begun.
            self._notes.add(
                "The tasks ran a second time, from the offsets that they had committed, because one of them had lost"
                " its transactional.id. An older run that was suspended may have fenced it when it woke up, or a"
                f" transaction was open for longer than transaction.timeout.ms. Nothing is lost or repeated. {error}"
            )
            reports = self._run_tasks(plan, settings, 0, expected)
            return [replace(report, attempt=report.attempt + 1) for report in reports]

    def _all_left_out(self, reports: Sequence[TaskReport]) -> list[LeftOutPart]:
        """The parts of the source that connector and tasks have left out."""
        of_tasks = (part for report in reports if report.source is not None for part in report.source.left_out)
        return without_doubles([*self._left_out, *of_tasks])

    def _may_have_other_attempts(self, reports: Sequence[TaskReport]) -> bool:
        """Whether there were lost attempts: Spark may not have ended them yet, or may have lost track of them."""
        return bool(reports) and (any(r.attempt for r in reports) or self._get_engine().may_leave_duplicates)

    # --- fence ---------------------------------------------------------------------------------------------------

    def _claim(self, journal: Journal) -> ConnectorState:
        """Record that only this run may write, before older tasks are fenced."""
        found = journal.read().state or ConnectorState(self._config.name, "", CLOSED, 0)
        claimed = replace(found, run_id=self._config.run_id, phase=COPYING, at_ms=now_ms())
        journal.begin(claimed)
        return claimed

    # --- plan ----------------------------------------------------------------------------------------------------

    def _take_over(self, kafka: SourceSession, offsets: SourceOffsets) -> None:
        """If a standalone worker was the last to run the connector, its file holds the offsets."""
        changes = kafka.changes_in_file(offsets)
        if changes:
            kafka.write_offsets(offsets, changes)
            # At once: everything that this run commits from here on is newer than the file.
            kafka.copy_to_file(offsets)
            self._notes.add(
                f"{plural(len(changes), 'offset', 'were')} taken over from"
                f" {self._config.resolved.worker.sources.offsets_file}."
            )

    def _name_lost_ends(self, kafka: SourceSession) -> None:
        for sentence in (*kafka.lost_ends(), *kafka.differing_copies()):
            self._notes.add(sentence)

    def _name_missing(self, expected: int, offsets: SourceOffsets, since: str) -> None:
        """Add a note if source partitions have lost their offsets: what these stood for is read again.

        Args:
            expected: how many source partitions must have an offset at least.
            since: when they had one.
        """
        missing = expected - len(offsets)
        if missing > 0:
            topics = self._config.resolved.offsets_topics
            self._notes.add(
                f"{plural(missing, 'offset', 'are')} missing: {plural(expected, 'source partition')} had an offset"
                f" {since}, and {' and '.join(topics)} {agreeing(len(topics), 'have')} {len(offsets)} now. Kafka"
                " Connect or another program has deleted them, or the topic was recreated or has lost records. The"
                " connector reads a source partition without an offset as a new one, so records may be copied again."
                " If they must not, stop the connector and set its offsets before the next run."
            )

    def _look_at_topics(
        self, kafka: SourceSession, state: ConnectorState | None, offsets: SourceOffsets
    ) -> WrittenTopics | None:
        """Add notes about topics of earlier runs that were deleted or created again; None: the source needs none.

        Also about transformations that send records to other topics now.
        """
        for note in note_of_changed_routes({} if state is None else state.routes, self._config.routes, len(offsets)):
            self._notes.add(note)
        if not self._config.names_changed_topics:
            return None
        written = WrittenTopics({} if state is None else state.topic_ids, kafka.admin)
        for note in written.look(len(offsets)):
            self._notes.add(note)
        return written

    def plan_only(self, kafka: SourceSession, offsets: SourceOffsets) -> Plan:
        """The plan that a run would have now. No task will run.

        Args:
            kafka: to look at the state and at topics.
            offsets: committed.

        Raises:
            ConnectError: the connector cannot configure its tasks.
        """
        state = kafka.peek_state()
        self._kept = {} if state is None else state.kept
        self._look_at_topics(kafka, state, offsets)
        self._cluster_id, self._admin_settings = kafka.cluster_id, kafka.admin.settings
        with self._started(offsets, only_plans=True) as started:
            return self._plan(started, offsets)[0]

    def _plan(self, started: StartedSource, offsets: SourceOffsets) -> tuple[Plan, TaskWork]:
        created_ms = now_ms()
        configs = started.task_configs(self._config.resolved.connector.tasks_max)
        self._left_out = started.left_out.parts
        self._kept = started.keeps
        # A single task gets all offsets.
        is_shared = len(configs) > 1 and len(offsets) > 0 and not started.only_plans
        partitions = started.source_partitions(configs) if is_shared else [None] * len(configs)
        connector = self._config.resolved.connector
        moves = (OffsetMove(dict(partition), dict(offset)) for partition, offset in offsets.items())
        source = SourcePlan(
            offsets=tuple(move for _, move in zip(range(SHOWN_OFFSETS), moves, strict=False)),
            partitions=len(offsets),
            delivery_guarantee=self._config.guarantee.name,
            boundary=connector.boundary if self._config.guarantee.uses_transactions else "",
            offsets_topics=self._config.resolved.offsets_topics,
        )
        tasks = tuple(TaskPlan(number, ()) for number in range(len(configs)))
        left_out = map(note_of, self._left_out)
        choice = (*notes_on_class(connector.raw, self._config.worker), *notes_on_chain(self._config.resolved))
        notes = (*choice, *self._notes.sentences, *left_out, *self._config.delivery_notes)
        plan = Plan(connector.name, self._config.run_id, created_ms, tasks, {}, notes, source)
        return plan, TaskWork(configs, partitions)

    def _reconcile(self, kafka: SourceSession, offsets: SourceOffsets, started: StartedSource) -> None:
        """Let the connector rewrite offsets while no task runs."""
        if StartedSource.reconciles(self._config.connector_class):
            self._reconciled += kafka.write_offsets(offsets, started.reconcile_offsets())

    def _started(
        self, offsets: SourceOffsets, *, only_plans: bool = False, ended_by: Collection[str] | None = None
    ) -> StartedSource:
        config, aws = self._config.resolved.connector.raw, dict(self._config.spec.aws)
        run = ConnectorRun(
            config, self._config.run_id, aws, self._cluster_id, lambda: self._admin_settings, dict(self._kept)
        )
        connector, notes = self._config.connector_class, self._notes
        return StartedSource(connector, run, offsets, notes, only_plans=only_plans, ended_by=ended_by)

    # --- commit --------------------------------------------------------------------------------------------------

    def _close(self, journal: Journal, state: ConnectorState, plan: Plan, reports: Sequence[TaskReport]) -> RunReport:
        """Add the run to the history. Records and offsets are already final."""
        report = self._report(plan, reports)
        for note in report.notes:
            if note not in plan.notes:  # these were shown with the plan
                self._warn(note)
        closed = replace(state, phase=CLOSED, at_ms=plan.created_ms)
        journal.commit(Commit(offsets={}, state=closed, summary=report.to_json() if report.status == DONE else None))
        reached(crash_points.COMMITTED)
        return replace(report, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))

    def _report(self, plan: Plan, reports: Sequence[TaskReport]) -> RunReport:
        tasks = [report.source for report in reports if report.source is not None]
        failed = sum(report.failed for report in reports)
        source = SourceRunReport.of(tasks, self._reconciled, failed)
        written, filtered = sum(t.written for t in tasks), sum(t.filtered for t in tasks)
        repeated = sum(1 for report in reports if report.attempt)
        # A dead attempt may have committed everything: then the last one finds nothing, but the run is not empty.
        something = written or filtered or failed or source.partitions or self._reconciled or repeated
        left_out = self._all_left_out(reports)
        if left_out:
            self._error = error_of(left_out)
            redactor_of_run(self._config.spec, self.references).hide_in_error(self._error)
        of_run = dict.fromkeys((*plan.notes, *self._notes.sentences, *map(note_of, left_out)))
        told = of_tasks(((*r.notes, *(r.source.notes if r.source else ())) for r in reports), MOST_NOTES_OF_RUN)
        notes = [*of_run, *(note for note in told if note not in of_run)]
        if failed:
            notes.append(skipped(reports))
        if repeated:
            notes.append(
                f"{plural(repeated, 'task')} needed more than one attempt; counts are those of the last attempts."
            )
        return RunReport(
            connector=self._config.name,
            run_id=self._config.run_id,
            status=DONE if something else EMPTY,
            started_ms=self._started_ms,
            ended_ms=now_ms(),
            delivery_guarantee=self._config.guarantee.name,
            records=written,
            filtered=filtered,
            size_bytes=source.size_bytes,
            tasks=len(reports),
            peak_memory_bytes=max((r.peak_memory_bytes for r in reports), default=0),
            phases_ms=dict(self.phases_ms),
            ignored_keys=tuple(self._config.ignored_keys),
            notes=(*notes, *skew_notes(reports)),
            source=source,
            origin=dict(self._config.spec.origin),
            detail=RunDetail.of(reports),
            error=self._error.to_json() if self._error is not None else None,
        )


def _written_by(reports: Sequence[TaskReport]) -> set[str]:
    return {topic for report in reports if report.source is not None for topic in report.source.topics}
