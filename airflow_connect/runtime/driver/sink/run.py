"""One run on one screen: fence, recover, plan, copy, audit, manifest, publish, commit (design section 3).

`SinkRun.execute` is the protocol; every step is a method below it. What makes it exactly-once is written down in
exactly_once/__init__.py, whose invariants are quoted here by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from airflow_connect.counting import names, plural
from airflow_connect.documents.run import DONE, EMPTY, Plan, RunReport, TaskReport
from airflow_connect.documents.run_detail import RunDetail
from airflow_connect.documents.run_lag import RunLag, with_lag
from airflow_connect.exactly_once import commit as commits
from airflow_connect.exactly_once import earlier
from airflow_connect.exactly_once.audit import audit
from airflow_connect.exactly_once.journal import Commit, Journal, JournalView
from airflow_connect.exactly_once.manifest import Manifest, manifest_of
from airflow_connect.exactly_once.parts import contiguous
from airflow_connect.exactly_once.recovery import leftovers_to_resweep, merge_leftovers
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.planning.packing import cost_by_bytes, pack
from airflow_connect.planning.planner import LogState, Memory, Positions, plan_positions
from airflow_connect.planning.splitting import divide
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.reporting import (
    PublishProgress,
    bytes_per_record,
    end_of,
    lag_after,
    no_progress_warning,
    now_ms,
    publishing,
    stopped_by_dead_letters,
)
from airflow_connect.runtime.driver.run_in_progress import RunInProgress
from airflow_connect.runtime.driver.sink.begun_topics import notes_on_begun
from airflow_connect.runtime.driver.sink.bounds import bounds_of, remembered
from airflow_connect.runtime.driver.sink.changed_topics import changed_topics
from airflow_connect.runtime.driver.sink.dead_letters import Letters, letters_of
from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
from airflow_connect.runtime.driver.sink.lost_deletions import lost_deletions
from airflow_connect.runtime.driver.sink.lost_files import LostFiles
from airflow_connect.runtime.driver.sink.own_commits import with_unjudged
from airflow_connect.runtime.driver.sink.run_documents import (
    RunDocuments,
    announcing,
    beginning,
    planned_run,
    published_run,
    said_by,
)
from airflow_connect.runtime.driver.sink.run_state import SinkRunState
from airflow_connect.runtime.driver.sink.set_back import earlier_offsets, facts_of, naming, reset_target, set_back
from airflow_connect.runtime.driver.sink.staged_files import StagedFiles
from airflow_connect.runtime.driver.sink.start_offsets import begin_at, start_offsets
from airflow_connect.runtime.driver.sink.unpublished import naming_changes, naming_unpublished
from airflow_connect.runtime.driver.stopping import finishing, refuse_when_stopping
from airflow_connect.runtime.failed_records import refuse_too_many
from airflow_connect.runtime.reporting.notes import of_tasks
from airflow_connect.runtime.reporting.skew import skew_notes
from airflow_connect.runtime.settings import TaskSettings

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.spec import Observer


class SinkRun(RunInProgress):
    """One run: its steps, and what they need. What they find out is in `SinkRunState`."""

    def __init__(self, configuration: SinkConfiguration, observer: Observer, engine: Engine | None) -> None:
        """Opens nothing."""
        super().__init__(configuration.references, configuration.worker_spark, observer, engine)
        self._config = configuration
        self._staged = StagedFiles(configuration, self._warn)

    def execute(self) -> RunReport:
        """The protocol. Returns the report of a run that is done or had nothing to do.

        Raises:
            ConnectError: the run failed; its message says what the next run will find.
        """
        with SinkSession(self._config) as kafka, self._telling_others(kafka, self._config.spec):
            try:
                report = self._protocol(kafka)
            except Exception as error:
                self._staged.discard(kafka, error)
                raise
            finally:
                self._staged.close()
            if report.status == EMPTY:
                self._tell_end(kafka, end_of(report))
            return report

    def _protocol(self, kafka: SinkSession) -> RunReport:
        with self._phase("fence"):
            kafka.ensure_group_empty()  # Invariant 9.
            kafka.journal.fence()  # Invariant 2.
            reached(crash_points.FENCED)
            view = kafka.journal.read()
        state = self._recover(kafka, view)
        reached(crash_points.RECOVERED)
        with self._phase("plan"):
            state = self._bounded(kafka, state)
            plan, positions = self.plan_from(kafka, JournalView(state=state.connector))
            state, plan = self._without_deleted_topics(kafka, state, plan)
            plan = replace(plan, notes=(*state.notes, *plan.notes))
            state = replace(state, lag=RunLag(positions.behind, positions.behind, plan.created_ms))
            self._observer({"event": "plan", "plan": plan.to_json(), "notes": list(plan.notes)})
            reached(crash_points.PLANNED)
        planned = planned_run(state.connector, plan, positions)
        if plan.is_empty:
            return self._end_empty(kafka, state, plan, positions, RunDocuments.of(self._config.sink, planned))
        state = replace(state, connector=begin_at(kafka, state.connector, plan, plan.at_latest))
        if self._config.guarantee.may_repeat:
            for note in self._config.delivery_notes:
                self._warn(note)
        plan = self._noting(plan, self._config.check_converters())
        kafka.ensure_dead_letter_queue()
        documents = RunDocuments.of(self._config.sink, planned)
        plan = self._noting(plan, tuple(documents.state.notes))
        # With the document: it has the reason for these offsets, which the next run must find with them.
        told = begin_at(kafka, documents.told(state.connector), plan, documents.state.group_offsets)
        state = self._begin(kafka, replace(state, connector=told), plan)
        self._staged.publisher.preflight()  # After `begin`: it starts an upload, which a crash may leave.
        settings = self._config.task_settings(plan.created_ms)
        settings = replace(
            settings,
            state=documents.state.for_tasks,
            flush_on_end=settings.flush_on_end or documents.state.leaves_nothing,
            topic_ids=dict(plan.topic_ids),
        )
        self._staged.copying(state.connector)
        copied = contiguous(plan, self._copy(plan, settings))
        self._config.sink.after_tasks()
        reports, plan = copied.reports, replace(plan, notes=(*plan.notes, *copied.notes))
        state = replace(state, must_sweep=bool(copied.given_up))
        with self._phase("audit"):
            counted_role = self._config.sink.counted_role
            counted = [f for r in reports for f in r.files if f.role == counted_role]
            audit(plan, reports, None if counted_role is None else counted)
            refuse_too_many(reports, self._config.max_failed_records)
            reached(crash_points.AUDITED)
        if all_left := no_progress_warning(reports, self._config.policy.limits):
            self._warn(all_left)
        if stopped := stopped_by_dead_letters(plan, reports):
            plan = self._noting(plan, (stopped,))
        plan = self._noting(
            plan, lost_deletions(self._config, kafka.admin, planned, state.connector.committed, reports)
        )
        manifest = self._manifest(plan, positions, documents, reports)
        self._letters(kafka, manifest, is_published=False)  # The commit must not be refused because of them.
        return self._publish_and_commit(kafka, state, plan, manifest, reports)

    def _manifest(
        self, plan: Plan, positions: Positions, documents: RunDocuments, reports: Sequence[TaskReport]
    ) -> Manifest:
        kept, marks = self._config.without_secrets(), self._config.reference_marks()
        manifest = manifest_of(plan, reports, kept, positions.to_commit, marks)
        after = documents.after(reports)
        has_details = any(report.details for report in manifest.partitions)
        kept_after = after if has_details or documents.changes(after) else None
        counts = {**manifest.counts, **after.counts}
        files, for_tasks = self._config.sink.prepare(manifest.files), documents.state.for_tasks
        constant = {*self._config.sink_notes, *self._config.delivery_notes}
        notes = (*plan.notes, *after.notes, *of_tasks(r.notes for r in reports))
        said = tuple(note for note in notes if note not in constant)
        # Nothing reads the details of tasks any more, and samples of keys are large.
        partitions = tuple(replace(report, details={}) for report in manifest.partitions)
        found = replace(manifest, partitions=partitions, files=files, counts=counts, for_tasks=for_tasks)
        return replace(found, after=kept_after, said=said)

    # --- recover -------------------------------------------------------------------------------------------------

    def _recover(self, kafka: SinkSession, view: JournalView) -> SinkRunState:
        known = view.state or ConnectorState(self._config.name, "", CLOSED, 0)
        state = beginning(known, self._config.spec.origin)
        if view.manifest is not None:  # Invariant 6: never plan while a manifest is open.
            with self._phase("recover"), finishing(is_resumable=True):
                state = self._roll_forward(kafka, state, earlier.completed(view.manifest, known))
        if not state.connector.leftovers:
            return state
        with self._phase("sweep"):
            notes = self._staged.sweep(state.connector, kafka.journal)
        resweep = leftovers_to_resweep(state.connector)
        swept = replace(state.connector, phase=CLOSED, leftovers=resweep, unpublished="")
        return replace(state, connector=swept, resweep=resweep, is_stale=True, notes=(*state.notes, *notes))

    def _roll_forward(self, kafka: SinkSession, state: SinkRunState, manifest: Manifest) -> SinkRunState:
        count = len(manifest.files)
        what = f"publishing its {plural(count, 'file')}" if count else "committing its offsets"
        self._warn(f"Run {manifest.run_id} ended between manifest and commit; {what}.")
        # A fenced run that fails now must not discard what this one may have to copy again.
        state = replace(state, connector=replace(state.connector, run_id=self._config.run_id))
        kafka.journal.begin(state.connector)
        try:
            manifest, notes = self._publish(kafka, manifest, kafka.journal, state)
        except commits.NeverVisibleError as error:
            return self._give_up(kafka, state, str(error))
        refuse_when_stopping()
        kafka.ensure_group_empty()
        if manifest.dead_letters:
            kafka.ensure_dead_letter_queue()  # It may be another one now.
        letters = self._letters(kafka, manifest, is_published=True)
        gone = kafka.gone_topics(manifest.topic_ids)
        replaced = kafka.overwritten_offsets(state.connector.committed, manifest.offsets, gone)
        copied = (f"{what} Run {manifest.run_id} had copied it before." for what in gone.values())
        found = (*letters.notes, *replaced, *copied)
        for note in found:
            self._warn(note)
        notes = (*notes, *found)
        own = self._announcing(replace(state, complete=(), tables=()), manifest)
        report = self._report(DONE, own, manifest, notes=(*manifest.said, *notes))
        report = replace(report, run_id=manifest.run_id)
        state = self._announcing(state, manifest)
        commits.commit(manifest, kafka.journal, letters.records, report.to_json(), state.connector, gone)
        after = replace(commits.state_after(manifest, state.connector), at_ms=now_ms())
        notes = (*state.notes, *said_by(manifest), *manifest.notes, *replaced)
        return replace(state, connector=after, recovered=manifest, notes=notes)

    def _give_up(self, kafka: SinkSession, state: SinkRunState, why: str) -> SinkRunState:
        """Close a manifest of which nothing is visible and nothing ever can be; its records are planned again."""
        refuse_when_stopping()
        kafka.ensure_group_empty()
        kafka.journal.commit(Commit(offsets={}, state=state.connector, closes_manifest=True))
        note = f"{why} None is visible, and all are given up. No offset was moved, and the records are copied again."
        self._warn(note)
        return replace(state, notes=(*state.notes, note))

    # --- plan ----------------------------------------------------------------------------------------------------

    def plan_from(self, kafka: SinkSession, view: JournalView, *, peek: bool = False) -> tuple[Plan, Positions]:
        """The frozen plan; offsets of an open manifest count as committed (only `plan` meets one here).

        `peek`: change nothing anywhere.
        """
        created_ms = now_ms()
        state = view.state
        committed = dict(state.committed) if state else {}
        if view.manifest is not None:
            committed.update(view.manifest.offsets)
        memory = Memory(committed, state.topic_ids if state else {}, state.at_ms if state else 0)
        log = with_unjudged(self._config, kafka.log_state(self._config.policy.limits), state)
        changes = changed_topics(log, memory)
        if view.manifest is not None:
            log = replace(log, committed={**log.committed, **view.manifest.offsets})
        bounds = bounds_of(kafka, self._config.spec.bounds, state)
        if bounds is not None:
            log, memory = bounds.narrow(log, memory)
        taken_over = start_offsets(self._config.sink, log, memory, apply=not peek)
        log = taken_over.in_log(log)

        def positions_in(log: LogState, memory: Memory) -> Positions:
            found = plan_positions(log, memory, self._config.policy, created_ms, taken_over.offsets)
            return taken_over.in_positions(found)

        positions = positions_in(log, memory)
        if not peek:
            reset_target(self._config, positions.reset, log.topic_ids)  # Before this run claims its epoch there.
        of_target: tuple[str, ...] = ()
        if positions.total and state is not None:
            earlier, of_target = earlier_offsets(self._config.sink, log, memory, state, positions.reset)
            if earlier:
                facts = facts_of(memory, earlier, self._config.sink.store_name)
                log, memory = set_back(log, memory, earlier)
                with naming(facts):
                    positions = positions_in(log, memory)
                of_target += tuple(f"{fact} Its records from there on are written again." for fact in facts)
        # Also if there is nothing to copy: this run commits the new partitions, and the next one sees no change.
        of_changes = self._config.sink.notes_on_changes(changes)
        of_bounds = bounds.check(positions) if bounds is not None else ()
        sizes = state.bytes_per_record if state else {}
        tasks_max = self._config.tasks_max if positions.total else 1  # Nothing to copy: the connector is not asked.
        divided = divide(positions.ranges, tasks_max, cost_by_bytes(sizes), sizes, self._config.split_rules)
        tasks = pack(divided.ranges, tasks_max, sizes, self._config.policy.limits)
        of_plan = (*self._config.sink_notes, *of_target, *of_changes, *positions.notes, *of_bounds)
        notes = (*of_plan, *divided.notes, *self._config.delivery_notes, *kafka.notes)
        name, run_id, at_latest = self._config.name, self._config.run_id, dict(positions.at_latest)
        plan = Plan(name, run_id, created_ms, tasks, dict(log.topic_ids), notes, at_latest=at_latest)
        return plan, positions

    def _noting(self, plan: Plan, notes: tuple[str, ...]) -> Plan:
        """The plan with more notes, which are shown now."""
        for note in notes:
            self._warn(note)
        return replace(plan, notes=(*plan.notes, *notes))

    def _without_deleted_topics(self, kafka: SinkSession, state: SinkRunState, plan: Plan) -> tuple[SinkRunState, Plan]:
        """The state without the offsets of topics that Kafka no longer has, and the plan with a note of each."""
        known = state.connector
        absent = {tp: at for tp, at in known.committed.items() if tp.topic not in plan.topic_ids}
        begun = known.begun.keys() - plan.topic_ids.keys()
        deleted = kafka.deleted_topics(sorted({tp.topic for tp in absent} | begun))
        notes = notes_on_begun(known.begun, plan.topic_ids, deleted)
        copied = [f"{tp}@{offset}" for tp, offset in sorted(absent.items()) if tp.topic in deleted]
        if copied:
            gone = names(sorted({tp.topic for tp in absent if tp.topic in deleted}))
            notes = (f"Kafka no longer has topic {gone}. It was copied up to {names(copied)}.", *notes)
        if not notes:
            return state, plan
        remaining = known.seeing({}, deleted)
        return replace(state, connector=remaining, is_stale=True), replace(plan, notes=(*plan.notes, *notes))

    def _bounded(self, kafka: SinkSession, state: SinkRunState) -> SinkRunState:
        """The state with the bounds of a replay: those of its first run hold for all that follow."""
        asked = self._config.spec.bounds
        kept = remembered(asked, bounds_of(kafka, asked, state.connector))
        if not kept or state.connector.bounds == kept:
            return state
        return replace(state, connector=replace(state.connector, bounds=kept), is_stale=True)

    def _end_empty(
        self, kafka: SinkSession, state: SinkRunState, plan: Plan, positions: Positions, documents: RunDocuments
    ) -> RunReport:
        plan = self._noting(plan, (*documents.state.notes, *self._config.sink.unfinished(documents.planned)))
        is_stale = state.is_stale or documents.state.kept is not None
        state = replace(state, connector=documents.told(state.connector), is_stale=is_stale)
        manifest = self._manifest(plan, positions, documents, ())
        refuse_when_stopping()
        if manifest.complete:
            with finishing(is_resumable=self._config.guarantee.writes_manifest):
                return self._announce(kafka, state, plan, manifest)
        if positions.to_commit or state.is_stale:
            known = documents.told(state.connector.seeing(plan.topic_ids))
            closed = replace(
                known,
                phase=CLOSED,
                leftovers=state.resweep,
                at_ms=plan.created_ms,
                committed={**known.committed, **positions.to_commit},
            )
            kafka.journal.commit(Commit(offsets=dict(positions.to_commit), state=closed))
        return self._report(EMPTY, state, None, notes=plan.notes, committed=positions.to_commit)

    def _announce(self, kafka: SinkSession, state: SinkRunState, plan: Plan, manifest: Manifest) -> RunReport:
        """Something became complete because time went by: as much of the protocol as that needs (invariants 2, 6)."""
        if self._config.guarantee.writes_manifest:
            with self._phase("manifest"):
                kafka.journal.write_manifest(manifest)
                reached(crash_points.MANIFEST_WRITTEN)
        manifest, notes = self._publish(kafka, manifest, kafka.journal, state)
        return self._commit(kafka, state, plan, manifest, (), notes)

    # --- copy ----------------------------------------------------------------------------------------------------

    def _begin(self, kafka: SinkSession, state: SinkRunState, plan: Plan) -> SinkRunState:
        """Say how leftovers of this run would look before anything is staged (invariant 8)."""
        leftovers = self._config.sink.leftovers(plan.ranges)
        every = merge_leftovers([leftovers, *state.resweep])
        begun = replace(state.connector.beginning(plan.run_id, plan.topic_ids, plan.ranges), leftovers=every)
        kafka.journal.begin(begun)
        reached(crash_points.BEGUN)
        return replace(state, connector=begun)

    def _copy(self, plan: Plan, settings: TaskSettings) -> list[TaskReport]:
        return self._staged.by(lambda: self._run_tasks(plan, settings, sum(len(r) for r in plan.ranges)))

    # --- audit passed: manifest, publish, commit -----------------------------------------------------------------

    def _publish_and_commit(
        self,
        kafka: SinkSession,
        state: SinkRunState,
        plan: Plan,
        manifest: Manifest,
        reports: Sequence[TaskReport],
    ) -> RunReport:
        guarantee = self._config.guarantee
        kafka.ensure_group_empty()  # Again: a worker may have started while the copy ran.
        kafka.refuse_recreated_topics(plan)
        kafka.refuse_changed_offsets(plan, state.connector)
        refuse_when_stopping()
        if guarantee.writes_manifest:
            with self._phase("manifest"):
                self._staged.may_be_named()
                kafka.journal.write_manifest(manifest)  # The point of no return.
                reached(crash_points.MANIFEST_WRITTEN)
        with finishing(is_resumable=guarantee.writes_manifest):
            if guarantee.commits_first:
                known = replace(state.connector, unpublished=self._config.run_id)
                state = replace(state, connector=known, resweep=known.leftovers)
                report = self._commit(kafka, state, plan, manifest, reports, ())
                with naming_unpublished(manifest):
                    notes = (*report.notes, *self._publish(kafka, manifest, None, state)[1])
                return replace(report, notes=notes, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))
            manifest, notes = self._publish(kafka, manifest, kafka.journal, state)
            return self._commit(kafka, state, plan, manifest, reports, notes)

    def _publish(
        self, kafka: SinkSession, manifest: Manifest, journal: Journal | None, state: SinkRunState
    ) -> tuple[Manifest, tuple[str, ...]]:
        """Make the files of a manifest visible; returns it as it was published, and notes for the report."""
        total = len(manifest.files)
        with self._phase("publish", total=total), naming_changes(self._config, manifest):
            show = PublishProgress(lambda done: self._observer(publishing(done, total)))
            there, publisher = self._staged.store_of(manifest)
            again = LostFiles(self._config, self._staged, self._get_engine, self._warn)
            save = partial(again.save, kafka) if self._config.policy.out_of_range else None
            manifest = commits.publish(manifest, publisher, journal, partial(again.copy_again, kafka), show, save)
            seen = published_run(manifest, state.connector.kept)
            notes = tuple(there.published(seen, publisher))
            for note in notes:
                self._warn(note)
            reached(crash_points.PUBLISHED)
        return manifest, (*manifest.notes, *notes)

    def _commit(
        self,
        kafka: SinkSession,
        state: SinkRunState,
        plan: Plan,
        manifest: Manifest,
        reports: Sequence[TaskReport],
        notes: Sequence[str],
    ) -> RunReport:
        leftovers = state.resweep
        if state.must_sweep or (reports and self._staged.may_have_duplicates(manifest, reports, self._get_engine())):
            with self._phase("sweep"):
                self._staged.sweep_own(state.connector, kafka.journal, manifest)
            # Attempts that lost, or that Spark has lost sight of, may stage more: later runs look again.
            leftovers = state.connector.leftovers
        with self._phase("commit"):
            refuse_when_stopping()
            state = self._announcing(state, manifest)
            of_state = manifest.after.notes if manifest.after else ()
            letters = self._letters(kafka, manifest, is_published=True)
            gone = kafka.gone_topics(manifest.topic_ids)  # The client would wait a minute for them, and fail.
            of_gone = tuple(f"{what} This run had copied it before." for what in gone.values())
            for note in of_gone:
                self._warn(note)
            notes = (*plan.notes, *of_state, *notes, *of_tasks(r.notes for r in reports), *letters.notes, *of_gone)
            report = self._report(DONE if reports else EMPTY, state, manifest, reports=reports, notes=notes)
            closed = replace(
                state.connector,
                at_ms=plan.created_ms,
                leftovers=leftovers,
                bytes_per_record={**state.connector.bytes_per_record, **bytes_per_record(manifest)},
                lag_of_hours=with_lag(state.connector.lag_of_hours, state.lag) if state.lag else (),
            )
            commits.commit(manifest, kafka.journal, letters.records, report.to_json(), closed, gone)
            reached(crash_points.COMMITTED)
        return replace(report, ended_ms=now_ms(), phases_ms=dict(self.phases_ms))

    def _letters(self, kafka: SinkSession, manifest: Manifest, *, is_published: bool) -> Letters:
        """The dead letters of a manifest, as the connector's queue accepts them."""
        limits = kafka.queue_limits() if manifest.dead_letters else None
        return letters_of(manifest, limits, now_ms(), is_published=is_published)

    def _announcing(self, state: SinkRunState, manifest: Manifest) -> SinkRunState:
        seen = published_run(manifest, state.connector.kept)
        return announcing(state, seen, self._staged.store_of(manifest)[0], self._config.spec.origin)

    # --- parts ---------------------------------------------------------------------------------------------------

    def _report(
        self,
        status: str,
        state: SinkRunState,
        manifest: Manifest | None,
        *,
        reports: Sequence[TaskReport] = (),
        notes: Sequence[str] = (),
        committed: Mapping[Any, int] | None = None,
    ) -> RunReport:
        offsets = {**state.recovered_offsets, **(manifest.offsets if manifest else (committed or {}))}
        counts: dict[str, Any] = dict(manifest.counts) if manifest else {}
        return RunReport(
            connector=self._config.name,
            run_id=self._config.run_id,
            status=status,
            started_ms=self._started_ms,
            ended_ms=now_ms(),
            delivery_guarantee=self._config.guarantee.name,
            recovered_run_id=state.recovered_run_id,
            recovered=state.recovered_counts,
            **counts,
            tasks=len(reports),
            swept=self._staged.swept,
            peak_memory_bytes=max((r.peak_memory_bytes for r in reports), default=0),
            committed={str(tp): offset for tp, offset in sorted(offsets.items())},
            phases_ms=dict(self.phases_ms),
            ignored_keys=tuple(self._config.ignored_keys),
            notes=(*notes, *skew_notes(reports)),
            complete=state.complete,
            origin=dict(self._config.spec.origin),
            detail=RunDetail.of(reports, self._config.dead_letter_topic),
            lag=lag_after(state.lag, manifest, reports),
            tables=state.tables,
        )
