"""`Connect`: connectors inside a program, as KIP-26 describes it."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from airflow_connect.embedded.settings import INTERVAL, engine_of, worker_of
from airflow_connect.errors import ConfigError, ConnectError, FencedError, UnavailableError

if TYPE_CHECKING:
    from airflow_connect.api.record import KafkaRecord
    from airflow_connect.control.client.over_kafka import KafkaConnectors, Registered
    from airflow_connect.documents.run import RunReport
    from airflow_connect.runtime.driver.run_in_progress import Engine

_LOG = logging.getLogger(__name__)
_LOOK_EVERY_S = 0.2
_STOP_WITHIN_S = 60.0
_EMPTY, _PERMANENT = "empty", ("ConfigError", "AccessError", "InternalError")
_ORIGIN = {"command": "embedded"}


class ConnectorRunError(ConnectError):
    """A run of an embedded connector has failed.

    Attributes:
        report: of the run; its `error` has code, message and suggestion.
    """

    code = "run.embedded"

    def __init__(self, report: RunReport) -> None:
        """`report`: of a failed run."""
        assert report.error is not None
        super().__init__(
            f"The run of connector {report.connector} failed: {report.error['message']}",
            code=str(report.error["code"]),
            suggestion=str(report.error["suggestion"]),
            config_path=str(report.error["configPath"]),
        )
        self.report = report
        self.retriable = bool(report.error["retriable"])

    def __reduce__(self) -> tuple[Any, ...]:
        """Rebuild from the report."""
        return type(self), (self.report,)


class Connect:
    """Connectors of one application: their configurations, states and offsets are in Kafka, under its id.

    A context manager. Entering it opens the state topics; connectors of an earlier process with the same id are there
    again, and continue. Nothing runs before `start` or `run`.

    Args:
        app_id: name of the application, the same in each of its processes. It is the worker's `group.id` and the
            beginning of the names of the state topics.
        worker: a worker configuration: `bootstrap.servers`, converters, security. Its keys take precedence over those
            that the id gives. `spark.*` are the settings of the Spark session; the first run with something to copy
            starts it.
        in_process: run tasks in this process, one after the other, instead of on Spark: for tests and small copies.

    Raises (when it is entered):
        ConfigError: names the key of the worker.
        NotStoppedError: live workers of Kafka Connect own the state topics.
        UnavailableError, AccessError: Kafka.
    """

    def __init__(self, app_id: str, worker: Mapping[str, Any], *, in_process: bool = False) -> None:
        """Opens nothing yet."""
        self._worker = worker_of(app_id, worker)
        self._in_process = in_process
        self._open: KafkaConnectors | None = None
        self._engine: Engine | None = None
        self._thread: threading.Thread | None = None
        self._stopping = threading.Event()
        self._one_run = threading.Lock()
        self._ended = threading.Condition()
        self._begun = 0
        self._last: dict[str, tuple[int, RunReport]] = {}
        self._due_s: dict[str, tuple[int, float]] = {}

    def __enter__(self) -> Self:
        """Open the state topics."""
        from airflow_connect.control.client.over_kafka import KafkaConnectors

        connectors = KafkaConnectors(self._worker)
        connectors.open()
        self._open, self._engine = connectors, engine_of(self._worker, in_process=self._in_process)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop; connectors and offsets stay in Kafka."""
        self.stop()
        close = getattr(self._engine, "stop", None)
        if close is not None:
            close()
        self._open = self._engine = None

    # Connectors.

    @property
    def names(self) -> list[str]:
        """Names of all connectors of the application."""
        return self._connectors.names()

    def add(self, name: str, config: Mapping[str, Any]) -> str:
        """Add a connector, or give it another configuration; returns `created`, `updated` or `unchanged`.

        Raises:
            ConfigError: the configuration is wrong; the message has every finding.
        """
        return self._connectors.apply(name, config)

    def remove(self, name: str) -> bool:
        """Remove a connector; its offsets stay. Returns False if there was none."""
        return self._connectors.delete(name)

    def pause(self, name: str) -> None:
        """Let no run of a connector begin. Returns when one that was running has ended."""
        self._connectors.pause(name)
        with self._one_run:
            return

    def resume(self, name: str) -> None:
        """Let runs of a connector begin again."""
        self._connectors.resume(name)

    def status(self, name: str) -> dict[str, Any]:
        """State of a connector and its tasks, in the form of Kafka Connect's REST API."""
        return self._connectors.states(name)

    def offsets(self, name: str) -> list[dict[str, Any]]:
        """Committed offsets of a connector: `[{"partition": {...}, "offset": {...}}]`."""
        return self._connectors.offsets(name)

    # Runs.

    def run(self, name: str, *, check: bool = True) -> RunReport:
        """One bounded run of a connector, in this thread, whatever its state is; returns its report.

        Args:
            name: of the connector.
            check: raise if the run fails; False: the caller looks at `error` of the report.

        Raises:
            ConnectorRunError: the run failed.
            ConfigError: there is no such connector.
        """
        self._connectors.registered(name)
        report = self._run(name, even_paused=True)
        assert report is not None
        if check and report.error is not None:
            raise ConnectorRunError(report)
        return report

    def start(self) -> None:
        """Run every connector repeatedly, in a thread of this process.

        Each one pauses for `run.interval.seconds`, its own or the worker's (1 s unless given).

        Raises:
            ConfigError: it is started already.
        """
        if self._thread is not None:
            raise ConfigError("This Connect is started already.", suggestion="Call stop() first.")
        self._connectors.names()
        self._stopping.clear()
        self._thread = threading.Thread(target=self._repeat, name="connect", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Begin no more runs, and wait for the one that is running.

        Raises:
            UnavailableError: it has not ended within a minute. What it has committed stays.
        """
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(_STOP_WITHIN_S)
            if thread.is_alive():
                raise UnavailableError(f"The run of a connector has not ended within {_STOP_WITHIN_S:.0f} s.")

    def wait_until_caught_up(self, name: str, timeout_s: float = 60.0) -> RunReport:
        """Return when the connector has copied everything that was there at the time of the call.

        That is when a run that began later has ended, and nothing limits how much a run copies; with `run.max.records`
        and the like, when a later run finds nothing. Without `start`, the runs happen here.

        Raises:
            ConnectorRunError: such a run failed.
            UnavailableError: it took longer.
        """
        is_limited = any(key.startswith("run.max.") for key in self._connectors.registered(name).config)
        deadline, seen = time.monotonic() + timeout_s, self._begun
        while True:
            if self._thread is None:
                self.run(name)
            with self._ended:
                began, report = self._last.get(name, (0, None))
                if report is not None and began > seen:
                    if report.error is not None:
                        raise ConnectorRunError(report)
                    if report.status == _EMPTY or not is_limited:
                        return report
                    seen = began
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise UnavailableError(
                        f"Connector {name} has not caught up within {timeout_s:g} s.",
                        suggestion="If it is paused, resume it. Otherwise give it more time.",
                    )
                if self._thread is not None:
                    self._ended.wait(left_s)

    def read(self, topic: str) -> Sequence[KafkaRecord]:
        """Every committed record of a topic, as bytes; [] if there is no such topic. Joins no group.

        Meant for tests and small topics. For a stream, use a consumer with `isolation.level=read_committed`.

        Raises:
            UnavailableError, AccessError: the topic cannot be read.
        """
        from airflow_connect.kafka.clients.short_lived import admin_client
        from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of

        settings = self._connectors.settings
        ranges = ranges_of(admin_client(settings.admin), topic)
        return list(committed_records(settings.reader, ranges))

    @property
    def _connectors(self) -> KafkaConnectors:
        if self._open is None:
            raise ConfigError(
                "This Connect is not open.", suggestion='Use it as `with Connect("app", {...}) as connect:`.'
            )
        return self._open

    def _run(self, name: str, *, even_paused: bool) -> RunReport | None:
        """One run, recorded; runs of a process follow each other. None: the connector may not run any more."""
        from airflow_connect.control.herder.recording import record_run
        from airflow_connect.runtime.driver.entry import run_connector
        from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

        connectors = self._connectors
        with self._one_run:
            with self._ended:
                self._begun += 1
                began = self._begun
            # Read after that: whoever has changed it before waits for a run that begins later.
            found = connectors.registered(name) if even_paused else connectors.to_run().get(name)
            if found is None:
                return None
            report = run_connector(connectors.herder.spec_of(found.config, _ORIGIN), engine=self._engine)
            if report.error is None or report.error["code"] != FencedError.code:
                # Who was fenced is not the one to say how the connector is.
                record_run(connectors.herder, report, found.offset, Redactor(secret_values(found.config)))
        with self._ended:
            self._last[name] = began, report
            self._ended.notify_all()
        return report

    def _repeat(self) -> None:
        while not self._stopping.is_set():
            try:
                for name, found in self._connectors.to_run().items():
                    if self._stopping.is_set():
                        return
                    if self._is_due(name, found):
                        self._run_and_tell(name, found)
            except ConnectError as error:
                _LOG.warning("No connector can run now. %s", error)
            self._stopping.wait(_LOOK_EVERY_S)

    def _run_and_tell(self, name: str, found: Registered) -> None:
        report, pause_s = self._run(name, even_paused=False), self._interval_s(found)
        if report is not None and report.error is not None:
            _LOG.error("%s", ConnectorRunError(report))
            if report.error["type"] in _PERMANENT:
                pause_s = float("inf")  # until its configuration changes
        self._due_s[name] = found.offset, time.monotonic() + pause_s

    def _is_due(self, name: str, found: Registered) -> bool:
        offset, due_s = self._due_s.get(name, (found.offset, 0.0))
        return offset != found.offset or time.monotonic() >= due_s

    def _interval_s(self, found: Registered) -> float:
        own = found.config.get(INTERVAL) or ""
        return float(own) if own.isascii() and own.isdigit() else self._connectors.settings.interval_s
