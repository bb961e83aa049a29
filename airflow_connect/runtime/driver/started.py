"""A connector object in the driver: started on first use, stopped once. Also its context."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_connect.api.connector import Connector
from airflow_connect.api.sink_roles import SinkGroup
from airflow_connect.errors import ConnectError, TaskFailedError
from airflow_connect.runtime.reporting.exception_text import describe_exception

if TYPE_CHECKING:
    from typing import Self

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class ConnectorRun:
    """What a connector object gets from its run.

    Attributes:
        config: the connector's configuration, resolved; may hold secrets.
        run_id: identifier of the run.
        aws: credentials of an Airflow connection, or {}.
        cluster_id: Kafka's id of the worker's cluster, or "".
        admin_settings: makes those of an admin client of that cluster; {}: only a plan is shown.
        kept: of a source, its document of the last run.
        group: makes the consumer group of a sink.
    """

    config: Mapping[str, str] = field(repr=False)
    run_id: str = ""
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    cluster_id: str = ""
    admin_settings: Callable[[], Mapping[str, Any]] = field(default=dict, repr=False)
    kept: Mapping[str, Any] = field(default_factory=dict)
    group: Callable[[], SinkGroup] = field(default=lambda: SinkGroup(""), repr=False)


class Started:
    """A connector object that is created and started on first use, and stopped once. Also its context."""

    def __init__(self, connector: type[Any], run: ConnectorRun) -> None:
        """`connector`: the class."""
        self._class = connector
        self._run = run
        self._connector: Any = None
        self._is_started = False
        self._error: Exception | None = None
        self._raises_defects = False

    def __enter__(self) -> Self:
        """Does nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return self._run.run_id

    @property
    def aws(self) -> Mapping[str, str]:
        """Credentials of an Airflow connection, or {}."""
        return self._run.aws

    def request_task_reconfiguration(self) -> None:
        """Log it only: every run calls `task_configs` again."""
        log.info("%s requested new task configurations; the next run uses them.", self._class.__name__)

    def raise_error(self, error: Exception) -> None:
        """Fail the run as soon as the connector's current method returns."""
        self._error = self._error or error

    def call(self, method: str, use: Callable[[Any], _Result]) -> _Result:
        """Call a method of the started connector; exceptions of third-party code become a `ConnectError`.

        Raises:
            ConnectError: what the connector raised, or a description of it.
        """
        self._make()
        if not self._is_started:
            self._is_started = True
            try:
                self._guarded("start", lambda: self._connector.start(dict(self._run.config)))
            except ConnectError:
                self.stop()
                raise
        return self._guarded(method, lambda: use(self._connector))

    def call_unstarted(self, method: str, use: Callable[[Any], _Result]) -> _Result:
        """Like `call`, for a method that may also be called before `start`."""
        self._make()
        return self._guarded(method, lambda: use(self._connector))

    def after_tasks(self) -> None:
        """Ask whether the connector has a reason to fail the run.

        Raises:
            ConnectError: it has.
        """
        if self._is_started and self._class.after_tasks is not Connector.after_tasks:
            self._guarded("after_tasks", self._connector.after_tasks)

    def stop(self) -> None:
        """Stop the connector, if it was started. A failure is only logged: it does not undo anything."""
        connector, self._connector = self._connector, None
        was_started, self._is_started = self._is_started, False
        if not was_started:
            return
        try:
            self._guarded("stop", connector.stop)
        except ConnectError as error:
            log.warning("%s", error)

    def _make(self) -> None:
        if self._connector is None:
            connector = self._guarded("__init__", self._class)
            self._guarded("initialize", lambda: connector.initialize(self))
            self._connector = connector

    def _guarded(self, method: str, call: Callable[[], _Result]) -> _Result:
        try:
            result = call()
            if self._error is not None:
                asked, self._error = self._error, None
                raise asked
        except ConnectError:
            raise
        except Exception as error:
            if self._raises_defects:
                raise
            raise TaskFailedError(
                f"{self._class.__name__}.{method} failed with {describe_exception(error)}.",
                code="plugin.failed",
                suggestion="The next run continues from here. If it happens again, check the connector.",
            ) from error
        return result
