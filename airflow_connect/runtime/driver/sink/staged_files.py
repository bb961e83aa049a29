"""Files that runs of this connector staged but never published: swept after a crash, discarded after a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.errors import ConnectError, FencedError, UnavailableError
from airflow_connect.exactly_once.journal import JournalView
from airflow_connect.exactly_once.recovery import identity, left_over, sweep
from airflow_connect.kafka.writing.transaction_steps import CommitUnknownError
from airflow_connect.runtime.driver.sink.unpublished import notes_of_unpublished
from airflow_connect.runtime.driver.stopping import StoppedError
from airflow_connect.runtime.other_tasks import OtherTasksError
from airflow_connect.stores.staging import resolve
from airflow_connect.stores.store import POSSIBLE_DUPLICATE

if TYPE_CHECKING:
    from airflow_connect.api.staging import LeftOver, StagedFile
    from airflow_connect.documents.run import TaskReport
    from airflow_connect.exactly_once.journal import Journal
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
    from airflow_connect.runtime.driver.sink.started_sink import StartedSink
    from airflow_connect.stores.store import Publisher

DISCARD_WITHIN_S = 30.0
"""How long a failed run waits for the store to discard what it staged."""
DISCARDED_AT_ONCE = 64
"""Files passed to the store between two checks of the deadline."""
_Result = TypeVar("_Result")


class StagedFiles:
    """The store of a run, as far as unpublished files are concerned.

    Attributes:
        swept: files that sweeps of this run have discarded.
    """

    def __init__(self, config: SinkConfiguration, warn: Callable[[str], None]) -> None:
        """Opens nothing. `warn`: receives a message if something could not be swept or discarded."""
        self.swept = 0
        self._config = config
        self._warn = warn
        self._earlier: dict[str, SinkConfiguration] = {}
        self._reported: list[StagedFile] = []
        self._copying: ConnectorState | None = None
        self._may_be_named = False
        self._is_stuck = False

    # --- the store ------------------------------------------------------------------------------------------------

    @property
    def publisher(self) -> Publisher:
        """The publisher of the configured store."""
        return self._config.sink.publisher

    def configuration_of(self, manifest: Manifest) -> SinkConfiguration:
        """The configuration of the manifest's run, without its limits; opened once."""
        there = self._earlier.get(manifest.run_id)
        if there is None:
            there = self._earlier[manifest.run_id] = self._config.with_manifest(manifest)
        return there

    def store_of(self, manifest: Manifest) -> tuple[StartedSink, Publisher]:
        """The store of the manifest's run: the configuration may name another bucket now."""
        here = self._config.sink
        there = here if manifest.run_id == self._config.run_id else self.configuration_of(manifest).sink
        return there, here.publisher if there.store_name == here.store_name else there.publisher

    def close(self) -> None:
        """Stop every connector that was used, unless a request of a publisher still hangs."""
        if not self._is_stuck:
            for configuration in (self._config, *self._earlier.values()):
                configuration.sink.stop()

    # --- what is staged -------------------------------------------------------------------------------------------

    def copying(self, state: ConnectorState) -> None:
        """Tasks start to stage; `state` describes their files."""
        self._copying = state

    def by(self, job: Callable[[], list[TaskReport]]) -> list[TaskReport]:
        """Run a job and remember what its tasks report as staged, even if one of them fails."""
        try:
            reports = job()
        except ConnectError as error:
            if isinstance(error.__cause__, OtherTasksError):
                self._remember(error.__cause__.reports)
            raise
        self._remember(reports)
        return reports

    def _remember(self, reports: Iterable[TaskReport]) -> None:
        self._reported += [file for report in reports for file in report.files]

    def may_be_named(self) -> None:
        """From now on a manifest in the journal may name these files."""
        self._may_be_named = True

    def may_have_duplicates(self, manifest: Manifest, reports: Sequence[TaskReport], engine: Engine) -> bool:
        """Whether files outside the manifest may be staged, now or later, although nothing crashed."""
        return (
            any(report.attempt for report in reports)
            or any(POSSIBLE_DUPLICATE in file.token for file in manifest.files)
            or self.publisher.possible_duplicates
            or engine.may_leave_duplicates
        )

    # --- sweep and discard ----------------------------------------------------------------------------------------

    def sweep(self, state: ConnectorState, journal: Journal) -> tuple[str, ...]:
        """Discard what `state.leftovers` describes, files of runs that have ended; returns notes for the report.

        The files of a newer run look the same. If this run was suspended after it had fenced the others, even the state
        that it has read may be that of a newer run. So it writes the state before it discards anything: Kafka refuses
        that if a newer run has begun.

        Raises:
            FencedError: a newer run has taken over. Nothing was discarded.
        """

        def is_newest() -> bool:
            journal.begin(replace(state, run_id=self._config.run_id))
            return True

        store = self._config.sink.store_name
        before, elsewhere = self.swept, sorted({p.store for p in state.leftovers} - {store})
        for leftovers in state.leftovers:
            if leftovers.store == store:
                self.swept += sweep(self.publisher, leftovers, (), is_newest)
                continue
            self._warn_of_other_store(leftovers.store)
        notes = notes_of_unpublished(state, self.swept - before, elsewhere)
        for note in notes:
            self._warn(note)
        return notes

    def sweep_own(self, state: ConnectorState, journal: Journal, manifest: Manifest) -> None:
        """Discard what this run has staged in addition to the files of its `manifest`, such as by a second attempt."""
        store = self._config.sink.store_name
        for leftovers in state.leftovers:
            if leftovers.store == store:
                self.swept += sweep(
                    self.publisher, leftovers, manifest.files, lambda: _is_last_to_copy(state, journal.read())
                )
            else:
                self._warn_of_other_store(leftovers.store)

    def _warn_of_other_store(self, store: str) -> None:
        self._warn(
            f"An earlier run may have left staged files in {store}, which this configuration no longer names. The"
            " bucket's rule for incomplete uploads removes them; in other stores, delete them manually."
        )

    def discard(self, kafka: SinkSession, error: Exception) -> None:
        """Discard what this run has staged, because it ends with `error`.

        Files in the open manifest stay: this run may have been fenced, or may have failed to publish, after its
        manifest was committed. What cannot be discarded is left to the sweep of the next run; so is everything if it
        is unknown whether the manifest was written.

        Raises:
            FencedError: a newer run has taken over, and may have discarded the files of this one: `error` follows.
        """
        if isinstance(error, CommitUnknownError) or not (self._reported or self._copying):
            return
        try:
            newer = self._discard(kafka)
        except Exception as problem:  # noqa: BLE001 (the run has already failed for another reason)
            self._warn(f"Files that this run staged were not discarded; the next run discards them: {problem}")
            return
        if newer and isinstance(error, ConnectError) and not isinstance(error, (FencedError, StoppedError)):
            raise FencedError(
                f"Run {newer} of the same connector has taken over, and may have discarded what this run had staged."
                f" This run failed meanwhile: {error.message}",
                suggestion=FencedError.advice,
            ) from error

    def _discard(self, kafka: SinkSession) -> str:
        """Returns the id of the newer run that has begun to copy or to recover, if there is one."""
        deadline = time.monotonic() + DISCARD_WITHIN_S
        # The order matters: files that are listed before a newer run has begun cannot belong to it.
        found = self._found(deadline)
        try:
            view = kafka.journal.read()
        except ConnectError:
            if self._may_be_named:
                raise
            view = JournalView()
        doomed: dict[tuple[str, str], StagedFile | LeftOver] = {identity(f.key, f.token): f for f in self._reported}
        if self._copying is not None and _is_last_to_copy(self._copying, view):
            doomed.update((identity(f.key, f.token), f) for f in found)
        for named in view.manifest.files if view.manifest else ():
            doomed.pop(identity(named.key, named.token), None)
        if doomed:
            self._within(deadline, lambda: self._abort(list(doomed.values()), deadline))
        if self._copying is None or view.state is None or _is_last_to_copy(self._copying, view):
            return ""
        return view.state.run_id

    def _found(self, deadline: float) -> list[LeftOver]:
        """Files of this run that a listing finds: some tasks staged files but could not report them."""
        if self._copying is None:
            return []
        store, patterns = self._config.sink.store_name, self._copying.leftovers
        try:
            return self._within(
                deadline, lambda: [f for p in patterns if p.store == store for f in left_over(self.publisher, p)]
            )
        except ConnectError as error:
            self._warn(f"Files that this run staged could not be listed; the next run discards them: {error}")
            return []

    def _abort(self, doomed: Sequence[StagedFile | LeftOver], deadline: float) -> None:
        for start in range(0, len(doomed), DISCARDED_AT_ONCE):
            if time.monotonic() >= deadline:
                return  # The caller no longer waits.
            self.publisher.abort(doomed[start : start + DISCARDED_AT_ONCE])

    def _within(self, deadline: float, work: Callable[[], _Result]) -> _Result:
        """What `work` returns, if in time; otherwise its thread keeps running, and its publisher stays open.

        Raises:
            UnavailableError: it takes too long.
        """
        outcome: Future[_Result] = Future()
        threading.Thread(target=lambda: resolve(outcome, work), name="discard", daemon=True).start()
        try:
            return outcome.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            self._is_stuck = True
            raise UnavailableError(f"The store did not answer within {DISCARD_WITHIN_S:g} s.") from None


def _is_last_to_copy(state: ConnectorState, view: JournalView) -> bool:
    """Whether no run has begun to copy, or to recover a manifest, since the run of `state`."""
    return view.state is not None and view.state.run_id == state.run_id
