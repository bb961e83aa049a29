"""Driver role of every sink that is written as a `SinkConnector` (api/sink.py).

A connector object is made, started and stopped around each thing that the run needs of it: the configurations of its
tasks, and publishing. A sink that does not stage has nothing to publish.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_connect.api import connector_keys as keys
from airflow_connect.api import plugins
from airflow_connect.api.errors import ConfigError, ConnectError, TaskFailedError
from airflow_connect.api.sink import Delivery, SinkConnector, StagingSinkConnector
from airflow_connect.runtime.driver.plugin_checks import refuse_incomplete, refuse_wrong_values
from airflow_connect.runtime.raised import words_for
from airflow_connect.stores.leftovers import LeftoverPattern
from airflow_connect.stores.store import LeftOver, Outcome, Publisher

if TYPE_CHECKING:
    from airflow_connect.api.offsets import OffsetRange, TopicPartition
    from airflow_connect.api.run import PublishedRun, StagedFile
    from airflow_connect.api.sink_roles import RoleContext

ALL_LISTED = r"(?s).*"
"""A connector lists only what is its own, so every listed file is a leftover."""
NOTHING = r"(?!)"

log = logging.getLogger(__name__)
_Result = TypeVar("_Result")


def open_driver(context: RoleContext) -> PluginDriver:
    """The driver role.

    Raises:
        ConfigError: the class is incomplete, refuses its keys, or cannot deliver as `delivery.guarantee` asks.
    """
    name = context.config[keys.CONNECTOR_CLASS]
    connector: type[SinkConnector] = plugins.load_class(plugins.PluginKind.CONNECTOR, name)
    _check_class(name, connector)
    refuse_wrong_values(name, connector, context.config)
    _check_delivery(name, connector, context.config)
    return PluginDriver(connector, context)


def _check_class(name: str, connector: type[SinkConnector]) -> None:
    refuse_incomplete(name, connector)
    if (connector.delivery is Delivery.STAGED) != issubclass(connector, StagingSinkConnector):
        raise ConfigError(
            f"The connector class {name} declares delivery {connector.delivery.value}, which does not fit its class.",
            suggestion="A sink that stages extends StagingSinkConnector; others declare idempotent or at_least_once.",
            config_path=keys.CONNECTOR_CLASS,
        )


def _check_delivery(name: str, connector: type[SinkConnector], config: Mapping[str, str]) -> None:
    """Sinks that write while they copy cannot promise everything."""
    asked = config.get(keys.DELIVERY_GUARANTEE, "")
    if connector.delivery is Delivery.STAGED or not asked:
        return
    refused = {keys.AT_MOST_ONCE: "writes before offsets are committed, so it cannot deliver at most once"}
    if connector.delivery is Delivery.AT_LEAST_ONCE:
        refused[keys.EXACTLY_ONCE] = "does not recognise records that it has, so it cannot deliver exactly once"
    if asked in refused:
        can = keys.AT_LEAST_ONCE if connector.delivery is Delivery.AT_LEAST_ONCE else keys.EXACTLY_ONCE
        raise ConfigError(
            f"{keys.DELIVERY_GUARANTEE} is {asked}, but {name} {refused[asked]}.",
            suggestion=f"Set {keys.DELIVERY_GUARANTEE}={can}, or remove it.",
            config_path=keys.DELIVERY_GUARANTEE,
        )


class PluginDriver:
    """See `runtime.driver.configuration.SinkDriver`."""

    def __init__(self, connector: type[SinkConnector], context: RoleContext) -> None:
        """Nothing is started."""
        self._class = connector
        self._context = context

    @property
    def store_name(self) -> str:
        """Where output goes."""
        if issubclass(self._class, StagingSinkConnector):
            return self._class.store_name(self._context.config)
        return self._class.__name__

    @property
    def counted_role(self) -> str | None:
        """Every staged file holds values; None where nothing is staged and so no file can be counted."""
        return "value" if self._class.delivery is Delivery.STAGED else None

    def leftovers(self, ranges: Sequence[OffsetRange]) -> LeftoverPattern:
        """How to find what a run over `ranges` staged: by asking the connector."""
        staged = self._class.delivery is Delivery.STAGED
        return LeftoverPattern(self.store_name, (), ALL_LISTED if staged else NOTHING, tuple(ranges))

    def schedule_expired(self, last_run_ms: int, now_ms: int) -> bool:
        """Nothing is left open between runs."""
        return False

    def task_configs(self, max_tasks: int) -> list[Mapping[str, str]]:
        """What the connector says each task is to be configured with.

        Raises:
            ConnectError: it says nothing, too much, or fails.
        """
        config = self._context.config
        with Started(self._class, self._context) as started:
            found = started.call("task_configs", lambda connector: list(connector.task_configs(max_tasks)))
        if not 1 <= len(found) <= max_tasks:
            name = self._class.__name__
            raise TaskFailedError(
                f"{name}.task_configs returned {len(found)} configurations and was asked for up to {max_tasks}.",
                code="plugin.task_configs",
                suggestion="It must return at least one, and not more than it was asked for.",
            )
        # As Kafka Connect does: a task can see what it is a task of.
        always = {key: config[key] for key in (keys.TOPICS, keys.TOPICS_REGEX) if key in config}
        return [{**always, **own} for own in found]

    def publisher(self) -> Publisher:
        """What makes staged output visible; nothing is started before it is needed."""
        if issubclass(self._class, StagingSinkConnector):
            return PluginPublisher(Started(self._class, self._context))
        return NoPublisher()

    def time_keeper(self, topics: Iterable[str]) -> None:
        """Nothing is known of how a connector lays out its output."""

    def last_schemas(self, partitions: Iterable[TopicPartition]) -> None:
        """A connector that needs schemas of earlier runs finds them by itself."""

    def published(self, run: PublishedRun, publisher: Publisher) -> None:
        """Nothing: what a connector does with its output, its `publish` does."""


class Started:
    """A connector object that is started on first use and stopped once. Also its context."""

    def __init__(self, connector: type[Any], role: RoleContext) -> None:
        """`connector`: the class."""
        self._class = connector
        self._role = role
        self._connector: Any = None
        self._error: Exception | None = None

    def __enter__(self) -> Started:
        """Nothing yet."""
        return self

    def __exit__(self, *_: object) -> None:
        """Stop it."""
        self.stop()

    @property
    def run_id(self) -> str:
        """Identity of the run."""
        return self._role.run_id

    def request_task_reconfiguration(self) -> None:
        """The next run asks for configurations anew; there is nothing to do."""
        log.info("%s asked for new task configurations; the next run uses them.", self._class.__name__)

    def raise_error(self, error: Exception) -> None:
        """Fail the run as soon as the method that runs now has returned."""
        self._error = self._error or error

    def call(self, method: str, use: Callable[[Any], _Result]) -> _Result:
        """Call a method of the started connector; whatever goes wrong becomes an error with a sentence.

        Raises:
            ConnectError: what the connector raised, or a sentence about it.
        """
        if self._connector is None:
            self._connector = self._guarded("__init__", self._class)
            try:
                self._guarded("initialize", lambda: self._connector.initialize(self))
                self._guarded("start", lambda: self._connector.start(dict(self._role.config)))
            except ConnectError:
                self.stop()
                raise
        return self._guarded(method, lambda: use(self._connector))

    def stop(self) -> None:
        """Stop the connector, if it was made. A failure is logged only: what was done stays done."""
        connector, self._connector = self._connector, None
        if connector is None:
            return
        try:
            self._guarded("stop", connector.stop)
        except ConnectError as error:
            log.warning("%s", error)

    def _guarded(self, method: str, call: Callable[[], _Result]) -> _Result:
        try:
            result = call()
            if self._error is not None:
                asked, self._error = self._error, None
                raise asked
        except ConnectError:
            raise
        except Exception as error:
            raise TaskFailedError(
                f"{self._class.__name__}.{method} failed with {words_for(error)}.",
                code="plugin.failed",
                suggestion="The next run goes on from here. If it happens again, look for the cause in the connector.",
            ) from error
        return result


class PluginPublisher:
    """Publishes through a `StagingSinkConnector`."""

    may_have_twins = True
    """Nothing is known about how a connector stages, so every run looks for what it left over."""

    def __init__(self, started: Started) -> None:
        """`started`: the connector."""
        self._started = started

    def preflight(self) -> None:
        """Have the connector look whether it can write."""
        self._started.call("preflight", lambda connector: connector.preflight())

    def publish(self, files: Sequence[StagedFile], progress: Callable[[int], None]) -> dict[str, Outcome]:
        """Have the connector make files visible.

        Raises:
            ConnectError: it failed, or said nothing about a file.
        """
        if not files:
            return {}
        outcomes = dict(self._started.call("publish", lambda connector: connector.publish(files)))
        unknown = [f.key for f in files if not isinstance(outcomes.get(f.key), Outcome)]
        if unknown:
            raise TaskFailedError(
                f"The connector's publish said nothing about {len(unknown)} of {len(files)} files, {unknown[0]} first.",
                code="plugin.publish",
                suggestion="It must return an Outcome for the key of every file. The next run publishes again.",
            )
        progress(len(files))
        return outcomes

    def abort(self, files: Iterable[StagedFile | LeftOver]) -> int:
        """Have the connector discard staged files."""
        discarded = list(files)
        if not discarded:
            return 0
        return int(self._started.call("abort", lambda connector: connector.abort(discarded)))

    def list_staged(self, prefixes: Iterable[str]) -> Iterable[LeftOver]:
        """What the connector finds of its own."""
        return list(self._started.call("list_staged", lambda connector: list(connector.list_staged())))

    def close(self) -> None:
        """Stop the connector; idempotent."""
        self._started.stop()


class NoPublisher:
    """For sinks that do not stage."""

    may_have_twins = False

    def preflight(self) -> None:
        """The task finds out."""

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
