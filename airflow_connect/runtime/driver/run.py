"""One run on one screen: fence, recover, plan, copy, audit, manifest, publish, commit (design section 3).

`SinkRun.execute` is the protocol; every step is a method below it. What makes it exactly-once is written down in
exactly_once/__init__.py, whose invariants are quoted here by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from airflow_connect.api.errors import ConnectError
from airflow_connect.api.run import Plan, PublishedRun, RunReport, StagedFile, TaskReport
from airflow_connect.exactly_once import commit as commits
from airflow_connect.exactly_once.audit import audit
from airflow_connect.exactly_once.journal import Commit, Journal, JournalView
from airflow_connect.exactly_once.manifest import Manifest, manifest_of
from airflow_connect.exactly_once.recovery import merged, suspects
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.exactly_once.value_schemas import of_same_topics
from airflow_connect.planning.packing import pack
from airflow_connect.planning.planner import Memory, Positions, plan_positions
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.configuration import RunConfiguration
from airflow_connect.runtime.driver.dead_letters import topic_records
from airflow_connect.runtime.driver.kafka_session import KafkaSession
from airflow_connect.runtime.driver.reporting import (
    PublishProgress,
    bytes_per_record,
    failed,
    now_ms,
    publishing,
    standstill,
    stopped_by_dead_letters,
)
from airflow_connect.runtime.driver.run_in_progress import Engine, RunInProgress
from airflow_connect.runtime.driver.run_times import RunTimes, airflow_task, told_nobody
from airflow_connect.runtime.driver.schemas_before import schemas_before
from airflow_connect.runtime.driver.source_configuration import SourceConfiguration, is_source
from airflow_connect.runtime.driver.staged_files import StagedFiles
from airflow_connect.runtime.driver.stopping import StoppedError, refuse_when_stopping, request_stop
from airflow_connect.runtime.driver.taking_over import beginning
from airflow_connect.runtime.failed_records import refuse_too_many
from airflow_connect.runtime.notes import MOST_NOTES
from airflow_connect.runtime.settings import TaskSettings
from airflow_connect.runtime.spec import Observer, RunSpec, ignore_events

if TYPE_CHECKING:
    from airflow_connect.api.time_progress import TimeDirectory
    from airflow_connect.runtime.driver.source_run import SourceRun
    from airflow_connect.stores.leftovers import LeftoverPattern

EXACTLY_ONCE, AT_LEAST_ONCE, AT_MOST_ONCE = "exactly_once", "at_least_once", "at_most_once"


def run_connector(spec: RunSpec, observer: Observer = ignore_events, engine: Engine | None = None) -> RunReport:
    """Do one bounded run of a connector. Never raises for a failed run: the report says what happened.

    Args:
        spec: what to run.
        observer: hears events while it runs; the last one is `end`.
        engine: a shared engine; None: a Spark engine of its own, started only if there is something to copy.
    """
    started_ms = now_ms()
    name = str(spec.connector.get("name") or "")
    observer({"event": "start", "connector": name, "run_id": spec.run_id})
    run: SinkRun | SourceRun | None = None
    try:
        run = _run_of(spec, observer, engine)
        report = run.execute()
    except ConnectError as error:
        if run is not None:
            run.references.hide_in_error(error)
        report = failed(name, spec.run_id, started_ms, error, run.phases_ms if run else {})
    observer({"event": "end", "report": report.to_json()})
    if run is not None:
        run.stop_own_engine()  # After the end is known: stopping Spark takes a second.
    return report


def _run_of(spec: RunSpec, observer: Observer, engine: Engine | None) -> SinkRun | SourceRun:
    if not is_source(spec):
        return SinkRun(RunConfiguration.from_spec(spec), observer, engine)
    from airflow_connect.runtime.driver.source_run import SourceRun  # a run of a sink needs none of it

    return SourceRun(SourceConfiguration.from_spec(spec), observer, engine)


def plan_connector(spec: RunSpec) -> Plan:
    """What a run would copy now. Writes nothing: no fence, no group, no topic.

    Raises:
        ConnectError: as a run would fail.
    """
    if is_source(spec):
        return _plan_source(spec)
    configuration = RunConfiguration.from_spec(spec)
    with configuration.references.hiding_errors(), KafkaSession(configuration) as kafka:
        view = kafka.peek()
        return SinkRun(configuration, ignore_events, None).plan_from(kafka, view, peek=True)[0]


def _plan_source(spec: RunSpec) -> Plan:
    from airflow_connect.runtime.driver.source_run import SourceRun
    from airflow_connect.runtime.driver.source_session import SourceSession

    configuration = SourceConfiguration.from_spec(spec)
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        offsets = kafka.read_offsets()
        for partition, offset in kafka.changes_in_file(offsets):
            offsets.record(partition, offset)
        return SourceRun(configuration, ignore_events, None).plan_from(offsets, only_plans=True)[0]


def validate_connector(spec: RunSpec) -> list[dict[str, Any]]:
    """Every finding about the configuration, offline: `{"key", "message", "level"}`; level `error` or `ignored`."""
    return SourceConfiguration.findings(spec) if is_source(spec) else RunConfiguration.findings(spec)


class SinkRun(RunInProgress):
    """The state of one run while it goes through the protocol."""

    def __init__(self, configuration: RunConfiguration, observer: Observer, engine: Engine | None) -> None:
        """Opens nothing."""
        super().__init__(configuration.references, configuration.worker_spark, observer, engine)
        self._config = configuration
        self._recovered = ""
        self._store_notes: tuple[str, ...] = ()  # Of the manifest that was published last.
        self._suspects: tuple[LeftoverPattern, ...] = ()
        self._staged = StagedFiles(configuration, self._warn)
        self._state_is_stale = False
        self._complete: tuple[TimeDirectory, ...] = ()

    def execute(self) -> RunReport:
        """The protocol. Returns the report of a run that is done or had nothing to do.

        Raises:
            ConnectError: the run failed; its message says what the next run will find.
        """
        with KafkaSession(self._config) as kafka:
            try:
                return self._protocol(kafka)
            except Exception as error:
                self._staged.discard(kafka, error)
                raise
            finally:
                self._staged.close()

    def _protocol(self, kafka: KafkaSession) -> RunReport:
        with self._phase("fence"):
            kafka.refuse_live_workers()  # Invariant 9.
            kafka.journal.fence()  # Invariant 2.
            reached(crash_points.FENCED)
            view = kafka.journal.read()
        state = self._recover(kafka, view)
        reached(crash_points.RECOVERED)
        with self._phase("plan"):
            plan, positions = self.plan_from(kafka, JournalView(state=state))
            self._observer({"event": "plan", "plan": plan.to_json(), "notes": list(plan.notes)})
            reached(crash_points.PLANNED)
        times = RunTimes.of(self._config.open_driver(), state, plan, positions)
        if plan.is_empty:
            return self._end_empty(kafka, state, positions, times)
        if self._config.delivery_guarantee == AT_LEAST_ONCE:
            for note in self._config.delivery_notes:
                self._warn(note)
        self._config.check_converters()
        driver = self._config.open_driver()
        kafka.ensure_dead_letter_queue()
        schemas = schemas_before(driver, state, plan)
        state = self._begin(kafka, state, plan)
        self._staged.publisher.preflight()  # After `begin`: it starts an upload, which a crash may leave.
        settings = self._settings(plan.created_ms, state)
        settings = replace(settings, late_before=times.late_before, schemas_before=schemas)
        self._staged.copying(state)
        reports = self._copy(plan, settings)
        with self._phase("audit"):
            counted = [f for r in reports for f in r.files if f.role == driver.counted_role]
            audit(plan, reports, None if driver.counted_role is None else counted)
            refuse_too_many(reports, self._config.max_failed_records)
            reached(crash_points.AUDITED)
        if all_left := standstill(reports, self._config.policy.limits):
            self._warn(all_left)
        if stopped := stopped_by_dead_letters(plan, reports):
            self._warn(stopped)
            plan = replace(plan, notes=(*plan.notes, stopped))
        manifest = replace(self._manifest(positions, times, reports), schemas_before=schemas)
        return self._make_true(kafka, state, plan, manifest, reports)

    def _manifest(self, positions: Positions, times: RunTimes, reports: Sequence[TaskReport]) -> Manifest:
        kept, marks = self._config.without_secrets(), self._config.reference_marks()
        manifest = manifest_of(times.plan, reports, kept, positions.to_commit, marks)
        return replace(manifest, late_before=times.late_before, time=times.step(reports))

    # --- recover -------------------------------------------------------------------------------------------------

    def _recover(self, kafka: KafkaSession, view: JournalView) -> ConnectorState:
        state = view.state or ConnectorState(self._config.name, "", CLOSED, 0)
        self._complete = told_nobody(state, self._config.spec.origin)
        if view.manifest is not None:  # Invariant 6: never plan while a manifest is open.
            with self._phase("recover"):
                state = self._roll_forward(kafka, state, view.manifest)
        if state.leftovers:
            with self._phase("sweep"):
                self._staged.sweep(state, kafka.journal)
            self._suspects = suspects(state)
            self._state_is_stale = True
            state = replace(state, phase=CLOSED, leftovers=self._suspects)
        return state

    def _roll_forward(self, kafka: KafkaSession, state: ConnectorState, manifest: Manifest) -> ConnectorState:
        self._warn(
            f"Run {manifest.run_id} ended between manifest and commit; publishing its {len(manifest.files)} files."
        )
        self._publish(kafka.journal, manifest)
        refuse_when_stopping()
        kafka.refuse_live_workers()
        report = self._report("done", manifest, run_id=manifest.run_id, notes=self._store_notes)
        report = replace(report, complete=manifest.complete)
        state = self._announcing(state, manifest)
        commits.commit(manifest, kafka.journal, topic_records(manifest), report.to_json(), state)
        self._recovered = manifest.run_id
        return replace(commits.state_after(manifest, state), at_ms=now_ms())

    # --- plan ----------------------------------------------------------------------------------------------------

    def plan_from(self, kafka: KafkaSession, view: JournalView, *, peek: bool = False) -> tuple[Plan, Positions]:
        """The frozen plan; offsets of an open manifest count as committed (only `plan` meets one here).

        `peek`: change nothing anywhere.
        """
        created_ms = now_ms()
        state = view.state
        committed = dict(state.committed) if state else {}
        if view.manifest is not None:
            committed.update(view.manifest.offsets)
        memory = Memory(committed, state.topic_ids if state else {}, state.at_ms if state else 0)
        log = kafka.log_state(self._config.policy.limits)
        if view.manifest is not None:
            log = replace(log, committed={**log.committed, **view.manifest.offsets})
        taken_over = beginning(self._config, log, memory, apply=not peek)
        log = taken_over.in_log(log)
        positions = taken_over.in_positions(plan_positions(log, memory, self._config.policy, created_ms))
        tasks = pack(
            positions.ranges,
            self._config.tasks_max if positions.ranges else 1,  # Nothing to copy: no connector is asked.
            state.bytes_per_record if state else {},
            self._config.policy.limits,
        )
        notes = (*positions.notes, *self._config.delivery_notes, *kafka.notes)
        plan = Plan(self._config.name, self._config.run_id, created_ms, tasks, dict(log.topic_ids), notes)
        return plan, positions

    def _end_empty(
        self, kafka: KafkaSession, state: ConnectorState, positions: Positions, times: RunTimes
    ) -> RunReport:
        plan, step = times.plan, times.step()
        if step is not None and step.complete:
            return self._announce(kafka, state, plan, self._manifest(positions, times, ()))
        if positions.to_commit or self._state_is_stale:
            refuse_when_stopping()
            closed = replace(
                state,
                phase=CLOSED,
                leftovers=self._suspects,
                at_ms=plan.created_ms,
                committed={**state.committed, **positions.to_commit},
                topic_ids=dict(plan.topic_ids),
                value_schemas=of_same_topics(state.value_schemas, state.topic_ids, plan.topic_ids),
            )
            kafka.journal.commit(Commit(offsets=dict(positions.to_commit), state=closed))
        return self._report("empty", None, notes=plan.notes, committed=positions.to_commit)

    def _announce(self, kafka: KafkaSession, state: ConnectorState, plan: Plan, manifest: Manifest) -> RunReport:
        """Directories became complete because time went by: as much of the protocol as that needs (invariants 2, 6)."""
        if self._config.delivery_guarantee == EXACTLY_ONCE:
            with self._phase("manifest"):
                kafka.journal.write_manifest(manifest)
                reached(crash_points.MANIFEST_WRITTEN)
        self._publish(kafka.journal, manifest)
        return self._commit(kafka, state, plan, manifest, (), leftovers=self._suspects)

    # --- copy ----------------------------------------------------------------------------------------------------

    def _begin(self, kafka: KafkaSession, state: ConnectorState, plan: Plan) -> ConnectorState:
        """Say how leftovers of this run would look before anything is staged (invariant 8)."""
        leftovers = self._config.open_driver().leftovers(plan.ranges)
        begun = replace(state, run_id=plan.run_id, phase=COPYING, leftovers=merged([leftovers, *self._suspects]))
        kafka.journal.begin(begun)
        reached(crash_points.BEGUN)
        return begun

    def _settings(self, created_ms: int, state: ConnectorState) -> TaskSettings:
        return self._config.task_settings(
            created_ms, schedule_expired=self._config.open_driver().schedule_expired(state.at_ms, created_ms)
        )

    def _copy(self, plan: Plan, settings: TaskSettings) -> list[TaskReport]:
        return self._staged.by(lambda: self._run_tasks(plan, settings, sum(len(r) for r in plan.ranges)))

    def _recopy(self, manifest: Manifest, lost: Sequence[StagedFile]) -> Sequence[StagedFile]:
        """Stage lost files of a manifest again, laid out by the manifest's own configuration and clock."""
        self._warn(f"{len(lost)} staged files of run {manifest.run_id} are gone; copying them again.")
        wanted = {(f.topic, f.partition) for f in lost}
        ranges = [r for r in manifest.ranges if (r.topic, r.partition) in wanted]
        # The ranges are those that were copied, limits included.
        limits = replace(self._config.policy.limits, max_bytes=0, max_seconds=0, max_dead_letter_bytes=0)
        tasks = pack(ranges, self._config.tasks_max, {}, limits)
        settings = self._config.with_manifest(manifest).task_settings(manifest.created_ms, schedule_expired=True)
        settings = replace(settings, late_before=manifest.late_before, schemas_before=manifest.schemas_before)
        self._staged.may_be_named()
        reports = self._staged.by(lambda: self._get_engine().run(settings, tasks))
        return [f for r in reports for f in r.files]

    # --- audit passed: manifest, publish, commit -----------------------------------------------------------------

    def _make_true(
        self,
        kafka: KafkaSession,
        state: ConnectorState,
        plan: Plan,
        manifest: Manifest,
        reports: Sequence[TaskReport],
    ) -> RunReport:
        guarantee = self._config.delivery_guarantee
        kafka.refuse_live_workers()  # Again: a worker may have started while the copy ran.
        kafka.refuse_recreated_topics(plan)
        if guarantee == EXACTLY_ONCE:
            with self._phase("manifest"):
                refuse_when_stopping()
                self._staged.may_be_named()
                kafka.journal.write_manifest(manifest)  # The point of no return.
                reached(crash_points.MANIFEST_WRITTEN)
        if guarantee == AT_MOST_ONCE:
            # What a crash keeps from being published is given up: the next run sweeps it.
            report = self._commit(kafka, state, plan, manifest, reports, leftovers=state.leftovers)
            self._publish(None, manifest)
            return replace(report, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))
        self._publish(kafka.journal, manifest)
        return self._commit(kafka, state, plan, manifest, reports, leftovers=self._suspects)

    def _publish(self, journal: Journal | None, manifest: Manifest) -> None:
        total = len(manifest.files)
        with self._phase("publish", total=total):
            show = PublishProgress(lambda done: self._observer(publishing(done, total)))
            there, publisher = self._staged.store_of(manifest)
            files = commits.publish(manifest, publisher, journal, self._recopy, show)
            seen = PublishedRun(manifest.run_id, manifest.created_ms, files, manifest.complete)
            self._store_notes = tuple(there.published(seen, publisher) or ())
            for note in self._store_notes:
                self._warn(note)
            reached(crash_points.PUBLISHED)

    def _commit(
        self,
        kafka: KafkaSession,
        state: ConnectorState,
        plan: Plan,
        manifest: Manifest,
        reports: Sequence[TaskReport],
        *,
        leftovers: tuple[LeftoverPattern, ...],
    ) -> RunReport:
        if reports and self._staged.may_have_duplicates(manifest, reports, self._get_engine()):
            with self._phase("sweep"):
                self._staged.sweep(state, kafka.journal, manifest)
            # Attempts that lost, or that Spark has lost sight of, may stage more: later runs look again.
            leftovers = state.leftovers
        with self._phase("commit"):
            refuse_when_stopping()
            state = self._announcing(state, manifest)
            of_time = manifest.time.notes if manifest.time else ()
            of_tasks = list(dict.fromkeys(note for report in reports for note in report.notes))[:MOST_NOTES]
            notes = (*plan.notes, *of_time, *self._store_notes, *of_tasks)
            report = self._report("done" if reports else "empty", manifest, reports=reports, notes=notes)
            closed = replace(
                state,
                at_ms=plan.created_ms,
                leftovers=leftovers,
                bytes_per_record={**state.bytes_per_record, **bytes_per_record(manifest)},
            )
            commits.commit(manifest, kafka.journal, topic_records(manifest), report.to_json(), closed)
            reached(crash_points.COMMITTED)
        return replace(report, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))

    def _announcing(self, state: ConnectorState, manifest: Manifest) -> ConnectorState:
        """The state with what this run announces by committing `manifest`, recovered manifests included."""
        self._complete += manifest.complete
        task = airflow_task(self._config.spec.origin)
        return replace(state, announced=self._complete if task else (), announced_to=task)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _report(
        self,
        status: str,
        manifest: Manifest | None,
        *,
        run_id: str = "",
        reports: Sequence[TaskReport] = (),
        notes: Sequence[str] = (),
        committed: Mapping[Any, int] | None = None,
    ) -> RunReport:
        offsets = manifest.offsets if manifest else (committed or {})
        counts: dict[str, Any] = dict(manifest.counts) if manifest else {}
        return RunReport(
            connector=self._config.name,
            run_id=run_id or self._config.run_id,
            status=status,
            started_ms=self._started_ms,
            ended_ms=now_ms(),
            delivery_guarantee=self._config.delivery_guarantee,
            recovered_run_id=self._recovered,
            **counts,
            tasks=len(reports),
            swept=self._staged.swept,
            peak_memory_bytes=max((r.peak_memory_bytes for r in reports), default=0),
            committed={str(tp): offset for tp, offset in sorted(offsets.items())},
            phases_ms=dict(self.phases_ms),
            ignored_keys=tuple(self._config.ignored_keys),
            notes=tuple(notes),
            complete=self._complete,
        )


__all__ = [
    "Engine",
    "SinkRun",
    "StoppedError",
    "plan_connector",
    "request_stop",
    "run_connector",
    "validate_connector",
]
