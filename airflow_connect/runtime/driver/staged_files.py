"""What this connector's runs have staged and nobody made visible: swept after a crash, discarded after a failure."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.api.errors import ConnectError, UnavailableError
from airflow_connect.exactly_once.journal import JournalView
from airflow_connect.exactly_once.recovery import identity, left_over, sweep
from airflow_connect.kafka.transaction_steps import CommitUnknownError
from airflow_connect.runtime.other_tasks import OtherTasksError
from airflow_connect.stores.staging import resolve
from airflow_connect.stores.store import HAS_TWIN

if TYPE_CHECKING:
    from airflow_connect.api.run import StagedFile, TaskReport
    from airflow_connect.api.staging import LeftOver
    from airflow_connect.exactly_once.journal import Journal
    from airflow_connect.exactly_once.manifest import Manifest
    from airflow_connect.exactly_once.state import ConnectorState
    from airflow_connect.runtime.driver.configuration import RunConfiguration, SinkDriver
    from airflow_connect.runtime.driver.kafka_session import KafkaSession
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.stores.store import Publisher

DISCARD_WITHIN_S = 30.0
"""How long a run that fails waits for the store to discard what it staged."""
DISCARDED_AT_ONCE = 64
"""Files handed to the store between two looks at the clock."""
_Result = TypeVar("_Result")


class StagedFiles:
    """The store of a run, as far as unpublished files are concerned.

    Attributes:
        swept: files that sweeps of this run have discarded.
    """

    def __init__(self, config: RunConfiguration, warn: Callable[[str], None]) -> None:
        """Opens nothing. `warn`: hears what could not be swept or discarded."""
        self.swept = 0
        self._config = config
        self._warn = warn
        self._publisher: Publisher | None = None
        self._reported: list[StagedFile] = []
        self._copying: ConnectorState | None = None
        self._may_be_named = False
        self._is_stuck = False

    # --- the store ------------------------------------------------------------------------------------------------

    @property
    def publisher(self) -> Publisher:
        """The publisher of the configured store, made on first use."""
        if self._publisher is None:
            self._publisher = self._config.open_driver().publisher()
        return self._publisher

    def store_of(self, manifest: Manifest) -> tuple[SinkDriver, Publisher]:
        """The store of the manifest's run: since then the configuration may name another bucket."""
        there = self._config.with_manifest(manifest).open_driver()
        if there.store_name == self._config.open_driver().store_name:
            return there, self.publisher
        return there, there.publisher()

    def close(self) -> None:
        """Release the publisher, unless a request of it still hangs."""
        if self._publisher is not None and not self._is_stuck:
            self._publisher.close()

    # --- what is staged -------------------------------------------------------------------------------------------

    def copying(self, state: ConnectorState) -> None:
        """Tasks begin to stage; `state` says how their files look."""
        self._copying = state

    def by(self, job: Callable[[], list[TaskReport]]) -> list[TaskReport]:
        """Run a job and remember what its tasks report as staged, also when one of them fails."""
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
        """Whether something may be staged, now or later, that is not in the manifest although nothing crashed."""
        return (
            any(report.attempt for report in reports)
            or any(HAS_TWIN in file.token for file in manifest.files)
            or self.publisher.may_have_twins
            or engine.may_leave_duplicates
        )

    # --- sweep and discard ----------------------------------------------------------------------------------------

    def sweep(self, state: ConnectorState, journal: Journal, manifest: Manifest | None = None) -> None:
        """Discard what `state.leftovers` describes, except the files of `manifest`.

        Once a newer run has begun to copy, its files look the same: then nothing is discarded.
        """
        store = self._config.open_driver().store_name
        keep = manifest.files if manifest else ()
        for leftovers in state.leftovers:
            if leftovers.store == store:
                self.swept += sweep(self.publisher, leftovers, keep, lambda: _is_last_to_copy(state, journal.read()))
                continue
            self._warn(
                f"Run {state.run_id} may have left unfinished uploads in {leftovers.store}, which this configuration "
                "does not name any more; the bucket's rule for incomplete uploads will remove them."
            )

    def discard(self, kafka: KafkaSession, error: Exception) -> None:
        """Discard what this run has staged, because it ends with `error`.

        Files that the open manifest names stay: this run may have been told that it is fenced, or that publishing
        failed, after its manifest was committed. What cannot be discarded is left to the sweep of the next run; so is
        everything when nobody knows whether the manifest was written.
        """
        if isinstance(error, CommitUnknownError) or not (self._reported or self._copying):
            return
        try:
            self._discard(kafka)
        except Exception as problem:  # noqa: BLE001 (the run fails already, and for another reason)
            self._warn(f"Files that this run staged were not discarded; the next run does it: {problem}")

    def _discard(self, kafka: KafkaSession) -> None:
        deadline = time.monotonic() + DISCARD_WITHIN_S
        # The order matters: what is found before a newer run has begun cannot be that run's.
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

    def _found(self, deadline: float) -> list[LeftOver]:
        """What a listing finds of this run: some tasks have staged files and could not report them."""
        if self._copying is None:
            return []
        store, patterns = self._config.open_driver().store_name, self._copying.leftovers
        try:
            return self._within(
                deadline, lambda: [f for p in patterns if p.store == store for f in left_over(self.publisher, p)]
            )
        except ConnectError as error:
            self._warn(f"Files that this run staged could not be listed; the next run does it: {error}")
            return []

    def _abort(self, doomed: Sequence[StagedFile | LeftOver], deadline: float) -> None:
        for start in range(0, len(doomed), DISCARDED_AT_ONCE):
            if time.monotonic() >= deadline:
                return  # Nobody waits any more.
            self.publisher.abort(doomed[start : start + DISCARDED_AT_ONCE])

    def _within(self, deadline: float, work: Callable[[], _Result]) -> _Result:
        """What `work` returns, if it does so in time; else its thread is left alone, and its publisher open.

        Raises:
            UnavailableError: it is late.
        """
        outcome: Future[_Result] = Future()
        threading.Thread(target=lambda: resolve(outcome, work), name="discard", daemon=True).start()
        try:
            return outcome.result(max(0.0, deadline - time.monotonic()))
        except TimeoutError:
            self._is_stuck = True
            raise UnavailableError(f"The store did not answer within {DISCARD_WITHIN_S:g} s.") from None


def _is_last_to_copy(state: ConnectorState, view: JournalView) -> bool:
    """Whether no run has begun to copy since the one of `state`."""
    return view.state is not None and view.state.run_id == state.run_id
