"""What a sensor or trigger looks at, as it travels to a triggerer: without secrets, and without what is not needed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from airflow_connect.airflow.connections.config_urls import read_worker
from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.errors import ConfigError
from airflow_connect.observe.watches.conditions import (
    AnyCondition,
    RunEnds,
    SourceChanges,
    condition_of_json,
    condition_to_json,
)
from airflow_connect.observe.watches.needed_keys import without_unneeded
from airflow_connect.runtime.reporting.redaction import secret_values

if TYPE_CHECKING:
    from airflow_connect.observe.watches.reader import Watch
    from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class PeekRequest:
    """Where to look and what for.

    Attributes:
        arguments: of the connector, or of topics alone; files have been read, references are as they were written.
        condition: what is waited for.
    """

    arguments: ConnectorArguments
    condition: AnyCondition

    @classmethod
    def of(cls, arguments: ConnectorArguments, condition: AnyCondition) -> PeekRequest:
        """Read the files, which a triggerer may not have, and drop the keys that are not needed to look.

        Raises:
            ConfigError: a file cannot be read, or the arguments name no connector.
            AccessError, UnavailableError: a file is in object storage, which refused, or did not answer.
        """
        arguments.check()
        connector = arguments.connector_config()
        given = arguments.worker
        worker = read_worker(given) if isinstance(given, str) else dict(given or {})
        if not isinstance(condition, SourceChanges):
            connector, worker = without_unneeded(connector, worker)
            arguments = replace(arguments, db_conn_id=None)
        return cls(replace(arguments, config=connector, config_file=None, worker=worker), condition)

    def ensure_no_secrets(self) -> None:
        """Refuse to store a secret in Airflow's database.

        Raises:
            ConfigError: names the key.
        """
        for name, given in (("config", self.arguments.config), ("worker", self.arguments.worker)):
            config = given if isinstance(given, Mapping) else {}
            names = secret_names(config) if config.get("connector.class") else frozenset()
            for key, value in config.items():
                if secret_values({key: value}, secret_names=names):
                    raise ConfigError(
                        f"The value of {key} in the {name} of {self.arguments.owner} is a secret, and would be stored"
                        " with the trigger in Airflow's database.",
                        code="airflow.secret_in_trigger",
                        config_path=key,
                        suggestion="Move it to the Airflow connection, or write a reference such as"
                        " ${airflow:connection_id:password}; or set deferrable=False.",
                    )

    def spec(self) -> RunSpec:
        """The input of a plan. Reads connections and resolves references, so it may block.

        Raises:
            ConfigError: a connection or a value is missing.
            UnavailableError: Airflow, or a config provider's server, did not answer.
        """
        return self.arguments.run_spec()

    def watch(self) -> Watch:
        """The question to a cluster, for every condition but `SourceChanges`. Reads connections, so it may block.

        Raises:
            ConfigError, UnavailableError: as `spec`.
        """
        from airflow_connect.observe.watches.reader import Watch
        from airflow_connect.observe.watches.target import target_of

        if isinstance(self.condition, SourceChanges):
            raise TypeError("A source is not watched through its cluster.")
        target = target_of(self.spec(), reads_topics=not isinstance(self.condition, RunEnds))
        return Watch(target, self.condition)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form, the arguments of a trigger."""
        given = {key: value for key, value in asdict(self.arguments).items() if value is not None}
        # None means that no connection is read, which is not the default.
        return {
            "arguments": {**given, "kafka_conn_id": self.arguments.kafka_conn_id},
            "condition": condition_to_json(self.condition),
        }

    @classmethod
    def from_json(cls, arguments: Mapping[str, Any], condition: Mapping[str, Any]) -> PeekRequest:
        """Inverse of `to_json`."""
        return cls(ConnectorArguments(**arguments), condition_of_json(condition))
