"""Which connector an operator, a sensor or a hook means, and the input of a run of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from airflow_connect.airflow.config_provider import PROVIDER_NAME, AirflowConfigProvider
from airflow_connect.airflow.connections.config_urls import read_connector, read_worker
from airflow_connect.airflow.connections.database import ConnectorWithDatabase, with_database
from airflow_connect.airflow.connections.official import (
    DEFAULT_KAFKA_CONN_ID,
    aws_credentials,
    worker_with_kafka,
    worker_with_spark,
)
from airflow_connect.airflow.connections.worker import worker_with_connection
from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.errors import ConfigError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.runtime.config_files import unwrap_connector
from airflow_connect.runtime.reporting.redaction import secret_values
from airflow_connect.runtime.spec import RunSpec


@dataclass(frozen=True, slots=True)
class ConnectorArguments:
    """The arguments by which every Airflow object of this package names a connector and its worker.

    Attributes:
        owner: who has them, for messages: "task 'copy'".
        config: connector configuration as for Kafka Connect. Either this or `config_file` is given.
        config_file: path of a properties or JSON file with it, or a URL in object storage: `s3://conn_id@bucket/key`.
        worker: worker configuration, or the path or URL of a file with it.
        kafka_conn_id: connection with the brokers, see `connections.worker_with_kafka`.
        aws_conn_id: connection with credentials for S3; None: boto3's default chain.
        spark_conn_id: connection of type `spark` or `spark_connect`; None: `spark.*` of the worker, or else local.
        worker_conn_id: connection of type `connect_worker` with keys that `worker` does not set; None: not used.
        db_conn_id: connection to the database of a JDBC connector, see `database_connection`; None: not used.
    """

    owner: str
    config: Mapping[str, Any] | None = None
    config_file: str | None = None
    worker: Mapping[str, Any] | str | None = None
    kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID
    aws_conn_id: str | None = None
    spark_conn_id: str | None = None
    worker_conn_id: str | None = None
    db_conn_id: str | None = None

    def check(self) -> None:
        """Refuse arguments that name no connector, or two. Reads nothing, so constructors may call it.

        Raises:
            ConfigError: neither or both of `config` and `config_file` are given.
        """
        if (self.config is None) == (self.config_file is None):
            which = "neither" if self.config is None else "both"
            raise ConfigError(
                f"{self.owner[:1].upper()}{self.owner[1:]} has {which} config and config_file.",
                config_path="config",
                suggestion="Give the connector's configuration as one of them.",
            )

    def connector_config(self) -> dict[str, Any]:
        """The connector's configuration; references to config providers stay as they are.

        Raises:
            ConfigError: it is missing or cannot be read.
        """
        if self.config_file is not None:
            return read_connector(self.config_file)
        if not isinstance(self.config, Mapping):
            raise ConfigError(
                f"The config of {self.owner} is a {type(self.config).__name__}, not a dictionary.",
                config_path="config",
                suggestion="Give a dictionary, or use config_file for a path.",
            )
        return unwrap_connector(self.config, f"the config of {self.owner}")

    def connector_with_database(self) -> ConnectorWithDatabase:
        """`connector_config` with what `db_conn_id` says. Reads that connection, so only while a task runs.

        Raises:
            ConfigError: as `connector_config` and `database_connection.with_database`.
            UnavailableError: Airflow did not answer.
        """
        return with_database(self.connector_config(), self.db_conn_id)

    def worker_config(self) -> dict[str, Any]:
        """The worker's configuration with what the connections say. Reads connections, so only while a task runs.

        Brokers and security settings are taken from the first of these that names them: a `kafka_conn_id` other than
        the default one, `worker`, `worker_conn_id`, the default `kafka_conn_id`.

        Raises:
            ConfigError: a file or connection is missing or cannot be read.
            UnavailableError: Airflow did not answer.
        """
        worker = read_worker(self.worker) if isinstance(self.worker, str) else dict(self.worker or {})
        named = self.kafka_conn_id not in (None, DEFAULT_KAFKA_CONN_ID)
        worker = worker_with_connection(worker, self.worker_conn_id, has_other_brokers=named)
        return worker_with_spark(worker_with_kafka(worker, self.kafka_conn_id), self.spark_conn_id)

    def run_spec(self, limits: Mapping[str, Any] | None = None, origin: Mapping[str, str] | None = None) -> RunSpec:
        """The input of a run, from files and connections; references to config providers are resolved.

        Args:
            limits: `run.*` keys that this run adds to the connector's configuration.
            origin: see `RunSpec.origin`.

        Raises:
            ConfigError: they are invalid; nothing was started.
            UnavailableError: Airflow, or a config provider's server, did not answer.
        """
        found = self.connector_with_database()
        connector = {**found.config, **(limits or {})}
        worker = self.worker_config()
        providers = {PROVIDER_NAME: AirflowConfigProvider}
        references = resolve_references(connector, worker, found.references, providers)
        # Which keys of a Java class are secrets is known once it is found.
        use_plugin_path(worker, references.values)
        return RunSpec(
            connector=connector,
            worker=worker,
            aws=aws_credentials(self.aws_conn_id),
            references=references.values,
            origin=origin or {},
        )


def as_path(value: Any) -> Any:
    """The text of a path or an `ObjectStoragePath`, because template fields are text; every other value as it is."""
    is_path = isinstance(value, Path) or type(value).__name__ == "ObjectStoragePath"
    return str(value) if is_path else value


def secrets_of(spec: RunSpec) -> list[str]:
    """Values of a run's input that must not be shown."""
    aws = {"aws.password": "", **_aws_secrets(spec.aws)}
    return secret_values(spec.connector, spec.worker, aws, secret_names=secret_names(spec.connector))


def _aws_secrets(aws: Mapping[str, str]) -> dict[str, str]:
    """Credentials of a connection, under key names that mark them as secret."""
    return {f"aws.{key}": value for key, value in aws.items() if key in ("secret_access_key", "session_token")}
