"""What every operator of this package has in common: which connector it means, secrets, errors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import BaseOperator
from airflow.sdk.exceptions import AirflowFailException

from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID
from airflow_connect.airflow.connector_arguments import ConnectorArguments, as_path, secrets_of
from airflow_connect.airflow.outcome import FENCED_ADVICE
from airflow_connect.airflow.rendering import ConfigurationTemplates
from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.errors import ConnectError, FencedError
from airflow_connect.jvm.discovery.registry import use_plugin_path
from airflow_connect.runtime.reporting.presentation import error_lines
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values, shown_config

if TYPE_CHECKING:
    from airflow.sdk import Context

    from airflow_connect.runtime.spec import RunSpec


class ConnectorTask(ConfigurationTemplates, BaseOperator):
    """A task that is about one connector.

    Args:
        config: connector configuration as for Kafka Connect. Templated.
        config_file: path or URL of a file with it, instead of `config`; see `ConnectorOperator`. Templated.
        worker: worker configuration, or the path or URL of a file with it. Templated.
        kafka_conn_id: connection with the brokers; see `ConnectorOperator`. Templated, as all ids of connections.
        aws_conn_id: connection with credentials for S3; None: boto3's default chain.
        worker_conn_id: connection of type `connect_worker` with keys that `worker` does not set; None: not used.
        db_conn_id: connection to the database of a JDBC connector; None: not used.
        kwargs: as for every operator.
    """

    # Ids of connections are templated so that a DAG may choose one, and because Airflow keeps only such fields: they
    # tell the pages where the connectors of a DAG run.
    template_fields: Sequence[str] = (
        "config",
        "config_file",
        "worker",
        "kafka_conn_id",
        "aws_conn_id",
        "worker_conn_id",
        "db_conn_id",
        "resolved_config",
    )
    template_fields_renderers: ClassVar[dict[str, str]] = {
        "config": "json",
        "worker": "json",
        "resolved_config": "json",
    }
    ui_color = "#dff3ee"

    spark_conn_id: str | None = None

    def __init__(  # noqa: PLR0913 (an operator's arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        aws_conn_id: str | None = None,
        worker_conn_id: str | None = None,
        db_conn_id: str | None = None,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments."""
        super().__init__(**kwargs)
        self.config = config
        self.config_file = as_path(config_file)
        self.worker = as_path(worker)
        self.kafka_conn_id = kafka_conn_id
        self.aws_conn_id = aws_conn_id
        self.worker_conn_id = worker_conn_id
        self.db_conn_id = db_conn_id
        self.resolved_config: dict[str, Any] | None = None
        self.arguments().check()

    def arguments(self) -> ConnectorArguments:
        """Which connector this task means. Templates are rendered only while it runs."""
        return ConnectorArguments(
            f"task {self.task_id!r}",
            config=self.config,
            config_file=self.config_file,
            worker=self.worker,
            kafka_conn_id=self.kafka_conn_id,
            aws_conn_id=self.aws_conn_id,
            spark_conn_id=self.spark_conn_id,
            worker_conn_id=self.worker_conn_id,
            db_conn_id=self.db_conn_id,
        )

    def after_rendering(self, context: Context) -> None:
        """Show the configurations of files and connections, too."""
        if "ti" in context:
            self.resolved_config = self._resolved()

    def _resolved(self) -> dict[str, Any] | None:
        """Connector and worker as files and connections give them, for the Rendered Templates tab; secrets are hidden.

        References to config providers stay as they are written. None: something cannot be read; the run will say what.
        """
        try:
            arguments = self.arguments()
            parts = {"connector": arguments.connector_with_database().config, "worker": arguments.worker_config()}
            use_plugin_path(parts["worker"])  # Which keys of a Java class are secrets is known once it is found.
        except ConnectError:
            return None
        names = secret_names(parts["connector"])
        secrets = secret_values(*parts.values(), secret_names=names)
        mask_in_airflow(secrets)
        return {name: shown_config(part, Redactor(secrets), names) for name, part in parts.items()}

    @contextmanager
    def failing_for_airflow(self, spec: RunSpec | None = None) -> Iterator[None]:
        """Turn errors that another attempt would meet again into failures that Airflow does not retry.

        Raises:
            AirflowFailException: instead of an error that is not retriable; the log has it in lines of its own.
        """
        try:
            yield
        except ConnectError as error:
            redact = Redactor(()) if spec is None else redactor_of(spec)
            self.log_failure(error.to_json(), redact)
            if error.retriable:
                raise
            advice = f" {FENCED_ADVICE}" if isinstance(error, FencedError) else ""
            raise AirflowFailException(f"{error.code}: {redact(str(error))}{advice}") from error

    def log_failure(self, error: Mapping[str, Any], redact: Redactor) -> None:
        """Log the error in separate lines: Airflow's log view cuts off the long first line of a traceback."""
        for line in error_lines(error):
            self.log.error("%s", redact(line))


def redactor_of(spec: RunSpec) -> Redactor:
    """Hides the secrets of a run's input, here and in everything that Airflow shows of this task."""
    secrets, references = secrets_of(spec), ResolvedReferences(spec.references)
    mask_in_airflow([*secrets, *references.shapes()])
    return Redactor(secrets, references)
