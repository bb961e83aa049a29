"""The publisher of a sink connector, as the run uses it: opened on first use, with typed errors."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from airflow_connect.api.staging import LeftOver, Outcome
from airflow_connect.counting import plural
from airflow_connect.errors import ConnectError, TaskFailedError

if TYPE_CHECKING:
    from airflow_connect.api.publishing import Publisher
    from airflow_connect.api.staging import StagedFile
    from airflow_connect.runtime.driver.started import Started

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


class SinkPublisher:
    """What `StagingSinkConnector.publisher` returns; called once."""

    def __init__(self, started: Started) -> None:
        """`started`: the connector; not called yet."""
        self._started = started
        self._opened: Publisher | None = None

    def opened(self) -> Publisher:
        """The connector's own publisher.

        Raises:
            ConnectError: the connector does not start, or has no publisher.
        """
        if self._opened is None:
            self._opened = self._started.call("publisher", lambda connector: connector.publisher())
        return self._opened

    @property
    def possible_duplicates(self) -> bool:
        """See `Publisher`."""
        return self._call("publisher", lambda publisher: publisher.possible_duplicates)

    def preflight(self) -> None:
        """Check that the store can be written to."""
        self._call("preflight", lambda publisher: publisher.preflight())

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Make files visible.

        Raises:
            ConnectError: it failed, or returned no outcome for a file.
        """
        if not files:
            return {}
        outcomes = self._call("publish", lambda publisher: publisher.publish(files, progress))
        unknown = [f.key for f in files if not isinstance(outcomes.get(f.key), Outcome)]
        if unknown:
            raise TaskFailedError(
                f"The connector's publish returned no outcome for {len(unknown)} of"
                f" {plural(len(files), 'file')}, such as {unknown[0]}.",
                code="plugin.publish",
                suggestion="It must return an Outcome for the key of every file. The next run publishes again.",
            )
        return outcomes

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Discard staged files."""
        discarded = list(files)
        return self._call("abort", lambda publisher: publisher.abort(discarded)) if discarded else 0

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """What is staged and not published."""
        return self._call("list_staged", lambda publisher: list(publisher.list_staged(prefixes)))

    def close(self) -> None:
        """Close it if it was opened; idempotent. A failure is only logged: it does not undo anything."""
        publisher, self._opened = self._opened, None
        if publisher is None:
            return
        try:
            self._started.call("publisher", lambda _: publisher.close())
        except ConnectError as error:
            log.warning("%s", error)

    def _call(self, method: str, use: Callable[[Publisher], _Result]) -> _Result:
        publisher = self.opened()
        return self._started.call(method, lambda _: use(publisher))


class NoPublisher:
    """For sinks that do not stage."""

    possible_duplicates = False

    def preflight(self) -> None:
        """Nothing to check: the task finds out."""

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Nothing is staged.

        Raises:
            TaskFailedError: a task returned staged files although its connector has no way to publish them.
        """
        if files:
            raise TaskFailedError(
                f"A task staged {files[0].key}, but its connector does not publish.",
                code="plugin.publish",
                suggestion="Extend StagingSinkConnector, or return nothing from flush.",
            )
        return {}

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Nothing is staged."""
        return 0

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """Nothing is staged."""
        return ()

    def close(self) -> None:
        """Nothing is open."""
