"""Both configurations of a run, for sinks and sources: resolves references, checks them, lists findings."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.config.resolved.loading import ResolvedConfig
from airflow_connect.config.resolved.source import ResolvedSourceConfig
from airflow_connect.config_providers.resolving import look_up, resolve_references
from airflow_connect.errors import ConnectError
from airflow_connect.kafka.clients import settings as client_config
from airflow_connect.runtime.driver.checks import findings as found
from airflow_connect.runtime.engine.spark_settings import refuse_unusable

if TYPE_CHECKING:
    from typing import Self

    from airflow_connect.api.config.config_def import ConfigDef
    from airflow_connect.kafka.clients.settings import ClientConfig
    from airflow_connect.runtime.spec import RunSpec

Resolved = TypeVar("Resolved", ResolvedConfig, ResolvedSourceConfig)


@dataclass(frozen=True)
class CheckedConfiguration(ABC, Generic[Resolved]):
    """A run's configuration, checked.

    Attributes:
        spec: the request; it holds references to config providers as they were written.
        resolved: connector and worker together, with references resolved.
        definition: every key of this kind of connector.
        worker: the worker's configuration with references resolved.
        references: the values of the references.
    """

    spec: RunSpec
    resolved: Resolved
    definition: ConfigDef
    worker: Mapping[str, Any] = field(repr=False)
    references: ResolvedReferences = field(default_factory=ResolvedReferences, repr=False)

    @classmethod
    @abstractmethod
    def _of(cls, spec: RunSpec, references: ResolvedReferences) -> Self:
        """Check and type both configurations.

        Raises:
            ConfigError: names every wrong key.
        """

    @classmethod
    def from_spec(cls, spec: RunSpec) -> Self:
        """Resolve references, check and type both configurations.

        Raises:
            ConfigError: names every wrong key.
            UnavailableError: a config provider's server did not answer.
        """
        references = resolve_references(spec.connector, spec.worker, spec.references)
        with references.hiding_errors():
            checked = cls._of(spec, references)
            refuse_unusable(checked.worker_spark)
            return checked

    @classmethod
    def findings(cls, spec: RunSpec) -> list[dict[str, Any]]:
        """Every finding, offline: `key`, `message`, `suggestion`, `level` (`error`, `ignored` or `unknown`)."""

        def check(references: ResolvedReferences) -> list[dict[str, Any]]:
            configuration = cls._of(spec, references)
            refuse_unusable(configuration.worker_spark)
            return found.of_resolved(configuration.resolved, configuration.worker, references)

        try:
            return found.collected(look_up(spec.connector, spec.worker, spec.references), spec.connector, check)
        except ConnectError as error:
            return [found.of_error(error)]

    def check_converters(self) -> tuple[str, ...]:
        """Open the converters as every task does, to find mistakes in their keys before Spark is started.

        Returns:
            Sentences for the report about unknown keys of connector, converters and worker.

        Raises:
            ConfigError: the first mistake.
        """
        from airflow_connect.runtime.driver.checks import (
            offline as offline_checks,  # loads converters: not for an empty run
        )

        for problem in offline_checks.offline_problems(self.resolved, self.worker):
            self.references.hide_in_error(problem)
            raise problem
        return offline_checks.unknown_key_notes(self.resolved)

    @property
    def name(self) -> str:
        """Connector name."""
        return self.resolved.connector.name

    @property
    def run_id(self) -> str:
        """Identifier of the run."""
        return self.spec.run_id

    @property
    def worker_spark(self) -> Mapping[str, str]:
        """`spark.*` of the worker."""
        return self.resolved.worker.spark

    @cached_property
    def consumer(self) -> ClientConfig:
        """Settings of the run's consumers; the plan is based on the same values.

        Raises:
            ConfigError: a client setting is wrong.
        """
        return client_config.consumer_config(self.worker, self.resolved.connector.raw)

    @cached_property
    def producer(self) -> ClientConfig:
        """Settings of the run's producers.

        Raises:
            ConfigError: a client setting is wrong.
        """
        return client_config.producer_config(self.worker, self.resolved.connector.raw)

    @cached_property
    def admin(self) -> ClientConfig:
        """Settings of the run's admin clients.

        Raises:
            ConfigError: a client setting is wrong.
        """
        return client_config.admin_config(self.worker, self.resolved.connector.raw)

    @property
    def ignored_keys(self) -> list[str]:
        """Names of configured keys that have no effect here."""
        own = [k.name for config in (self.resolved.connector, self.resolved.worker) for k in config.ignored]
        return own + [key.name for key in client_config.keys_without_prefix(self.worker)]
