"""Everything the driver takes from the two configurations of a source."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from airflow_connect.api.config import plugins
from airflow_connect.api.source import ExactlyOnceSupport, SourceConnector
from airflow_connect.config.keys import sink as keys
from airflow_connect.config.keys import source as source_keys
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.config.keys.source import SourceKeys
from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.config.resolved.source import ResolvedSourceConfig, load_source_config
from airflow_connect.errors import ConfigError, ConnectError, TaskFailedError
from airflow_connect.exactly_once.guarantee import AT_LEAST_ONCE, EXACTLY_ONCE, Guarantee
from airflow_connect.runtime.driver.checked_configuration import CheckedConfiguration
from airflow_connect.runtime.driver.checks.java import plugins_of
from airflow_connect.runtime.driver.checks.plugins import refuse_incomplete, refuse_wrong_values
from airflow_connect.runtime.driver.source.changed_routes import routes_of
from airflow_connect.runtime.executor.transforming import TransformChain
from airflow_connect.runtime.reporting.exception_text import describe_exception
from airflow_connect.runtime.settings import KnownState, SourceTaskSettings, TaskSettings

if TYPE_CHECKING:
    from airflow_connect.api.config.references import ResolvedReferences
    from airflow_connect.runtime.spec import RunSpec

_Answer = TypeVar("_Answer")
_NOT_ENABLED = "This worker does not have exactly-once source support enabled."
_UNSUPPORTED = "The connector does not support exactly-once semantics with the provided configuration."
_SAYS_NOTHING = (
    "The connector does not implement the API required for preflight validation of exactly-once source support. Please"
    " consult the documentation for the connector to determine whether it supports exactly-once semantics, and then"
    ' consider reconfiguring the connector to use the value "requested" for this property (which will disable this'
    " preflight check and allow the connector to be created)."
)
_NO_BOUNDARIES = (
    "The connector does not support connector-defined transaction boundaries with the given configuration. Please"
    " reconfigure it to use a different transaction boundary definition."
)
"""Texts of Kafka Connect's AbstractHerder and DistributedHerder (KIP-618)."""


class SourceConfiguration(CheckedConfiguration[ResolvedSourceConfig]):
    """Everything the driver takes from the two configurations of a source."""

    @classmethod
    def _of(cls, spec: RunSpec, references: ResolvedReferences) -> SourceConfiguration:
        connector, worker = references.resolve(spec.connector), references.resolve(spec.worker)
        definition = connector_definition(connector)
        configuration = cls(spec, load_source_config(connector, worker, definition), definition, worker, references)
        name = str(connector[keys.CONNECTOR_CLASS])
        refuse_incomplete(name, configuration.connector_class)
        refuse_wrong_values(name, configuration.connector_class, configuration.resolved.connector.raw)
        _refuse_limits_of_sinks(connector)
        configuration._check_support()
        TransformChain.open(configuration.resolved.connector.transforms).close()
        return configuration

    @property
    def connector_class(self) -> type[SourceConnector]:
        """The connector's class."""
        loaded: type[SourceConnector] = plugins.load(self.resolved.connector.connector)
        return loaded

    @cached_property
    def support(self) -> ExactlyOnceSupport | None:
        """Whether the connector supports exactly once."""
        config = dict(self.resolved.connector.raw)
        return self._asked("exactly_once_support", lambda: self.connector_class().exactly_once_support(config))

    @cached_property
    def names_changed_topics(self) -> bool:
        """Whether runs look if topics to which earlier ones wrote were deleted or created again."""
        config = dict(self.resolved.connector.raw)
        return bool(self._asked("names_changed_topics", lambda: self.connector_class().names_changed_topics(config)))

    @cached_property
    def routes(self) -> Mapping[str, str]:
        """See `routes_of`; {} if it is of no interest whether they were changed."""
        config = dict(self.resolved.connector.raw)
        if not self._asked("names_changed_routes", lambda: self.connector_class().names_changed_routes(config)):
            return {}
        return routes_of(self.spec.connector, self.definition.secret_names)

    @cached_property
    def guarantee(self) -> Guarantee:
        """`delivery.guarantee`; by default the best one that connector and worker allow."""
        connector = self.resolved.connector
        if connector.delivery_guarantee:
            return Guarantee.of(connector.delivery_guarantee)
        if connector.requires_exactly_once:
            return EXACTLY_ONCE
        rules_out = self.support is ExactlyOnceSupport.UNSUPPORTED or not self.resolved.worker.sources.exactly_once
        return AT_LEAST_ONCE if rules_out else EXACTLY_ONCE

    @property
    def delivery_notes(self) -> tuple[str, ...]:
        """Sentences about a run that is not exactly once, or may not be."""
        name, guarantee = self.resolved.connector.connector.name, self.guarantee
        if guarantee.may_repeat:
            return (f"{name} delivers at least once: after a run that failed, records are written again.",)
        if guarantee.may_lose:
            return (f"{name} delivers at most once: a run that fails may lose records.",)
        if self.support is None:
            note = f"{name} does not declare support for exactly once: records and offsets share one transaction,"
            return (f"{note} but the connector decides whether the same records follow an offset.",)
        return ()

    def task_settings(self, now_ms: int, task_configs: list[Mapping[str, str]], known: KnownState) -> TaskSettings:
        """What tasks get."""
        connector, count = self.resolved.connector, max(1, len(task_configs))
        return TaskSettings(
            connector=connector.raw,
            worker=dict(self.worker),
            resolved=self.resolved,
            aws=dict(self.spec.aws),
            run_id=self.run_id,
            now_ms=now_ms,
            task_configs=task_configs,
            java_plugins=plugins_of(self.resolved.connector.raw, self.resolved.java),
            source=SourceTaskSettings(
                guarantee=self.guarantee,
                max_records=-(-connector.run_max_records // count),
                max_bytes=-(-connector.run_max_bytes // count),
                max_seconds=connector.run_max_seconds,
                known=known,
            ),
        )

    def _check_support(self) -> None:
        """Source: DistributedHerder.validateExactlyOnceSupport, validateConnectorTransactionBoundary."""
        connector = self.resolved.connector
        if connector.requires_exactly_once:
            if connector.delivery_guarantee not in ("", keys.EXACTLY_ONCE):
                raise _refused(
                    f"{SinkKeys.delivery_guarantee} is {connector.delivery_guarantee}, but exactly.once.support is"
                    " required.",
                    f"Remove {SinkKeys.delivery_guarantee}, or set exactly.once.support=requested.",
                )
            if not self.resolved.worker.sources.exactly_once:
                raise _refused(_NOT_ENABLED, "Set exactly.once.source.support=enabled in the worker.")
            if self.support is None:
                raise _refused(_SAYS_NOTHING, "Set exactly.once.support=requested.")
        asks = connector.requires_exactly_once or connector.delivery_guarantee == keys.EXACTLY_ONCE
        if asks and self.support is ExactlyOnceSupport.UNSUPPORTED:
            raise _refused(
                _UNSUPPORTED, f"Set {SinkKeys.delivery_guarantee}={keys.AT_LEAST_ONCE}, or change its other keys."
            )
        if connector.boundary == source_keys.CONNECTOR and self.guarantee.uses_transactions:
            config = dict(connector.raw)
            asked = self._asked(
                "can_define_transaction_boundaries",
                lambda: self.connector_class().can_define_transaction_boundaries(config),
            )
            if not asked:
                raise _refused(
                    _NO_BOUNDARIES, "Set transaction.boundary to poll or interval.", SourceKeys.boundary.name
                )

    def _asked(self, method: str, ask: Callable[[], _Answer]) -> _Answer:
        try:
            return ask()
        except ConnectError:
            raise
        except Exception as error:
            raise TaskFailedError(
                f"{self.connector_class.__name__}.{method} failed with {describe_exception(error)}.",
                code="plugin.failed",
                suggestion="Look for the cause in the connector.",
            ) from error


def _refuse_limits_of_sinks(connector: Mapping[str, Any]) -> None:
    """Kafka Connect ignores unknown keys; but a limit that was set for a run must not be ignored."""
    if connector.get(SinkKeys.run_until_timestamp_ms.name):
        raise _refused(
            f"{SinkKeys.run_until_timestamp_ms} limits runs of sinks only; a source cannot look records up by time.",
            f"Remove it, or limit the run by {SinkKeys.run_max_records}, {SinkKeys.run_max_bytes} or"
            f" {SinkKeys.run_max_seconds}.",
            SinkKeys.run_until_timestamp_ms.name,
        )


def _refused(message: str, suggestion: str, key: str = SourceKeys.requires_exactly_once.name) -> ConfigError:
    return ConfigError(message, suggestion=suggestion, config_path=key)
