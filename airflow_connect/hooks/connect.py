"""`ConnectHook`: what a connector would copy, has copied and could not copy, and a run of it, from any `@task`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from airflow.sdk import BaseHook

from airflow_connect.airflow.config_provider import PROVIDER_NAME, AirflowConfigProvider
from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID, get_connection
from airflow_connect.airflow.connections.worker import CONN_TYPE, settings_of
from airflow_connect.airflow.connector_arguments import ConnectorArguments, as_path, secrets_of
from airflow_connect.airflow.outcome import driver_failure, killed_message, run_failure, summary_of
from airflow_connect.airflow.signals import on_sigterm
from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values

if TYPE_CHECKING:
    from airflow_connect.runtime.driver.process import DriverProcess
    from airflow_connect.runtime.spec import RunSpec

MOST_LETTERS = 100


class ConnectHook(BaseHook):
    """A connector of this package, and the worker that it belongs to.

    Every method reads connections and configuration files when it is called. What methods return is plain JSON, so a
    task may return it. Secrets are registered with Airflow's masker before anything can log them.

    Args:
        config: connector configuration as for Kafka Connect.
        config_file: path of a properties or JSON file with it, instead of `config`.
        worker: worker configuration, or the path of a file with it.
        worker_conn_id: connection of type `connect_worker` with keys that `worker` does not set; None: not used.
        kafka_conn_id, aws_conn_id, spark_conn_id, db_conn_id: as for `ConnectorOperator`.
    """

    conn_name_attr = "worker_conn_id"
    default_conn_name = "connect_worker_default"
    conn_type = CONN_TYPE
    hook_name = "Kafka Connect worker (airflow-connect)"

    def __init__(  # noqa: PLR0913 (a hook's arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        worker_conn_id: str | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        aws_conn_id: str | None = None,
        spark_conn_id: str | None = None,
        db_conn_id: str | None = None,
    ) -> None:
        super().__init__()
        self.worker_conn_id = worker_conn_id
        self._driver: DriverProcess | None = None
        self._is_killed = False
        self._arguments = ConnectorArguments(
            "this hook",
            config=config,
            config_file=as_path(config_file),
            worker=as_path(worker),
            kafka_conn_id=kafka_conn_id,
            aws_conn_id=aws_conn_id,
            spark_conn_id=spark_conn_id,
            worker_conn_id=worker_conn_id,
            db_conn_id=db_conn_id,
        )

    def plan(self, limits: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """What a run would copy now; writes nothing, joins no group, starts no Spark.

        Args:
            limits: `run.*` keys, such as `{"run.max.records": 1000}`.

        Returns:
            `documents.run.Plan` as JSON: `tasks` with their `ranges`, and `notes`.

        Raises:
            ConnectError: the error that a run would fail with.
        """
        from airflow_connect.runtime.driver.entry import plan_connector

        with self._spec(limits) as spec:
            return plan_connector(spec).to_json()

    def run(self, limits: Mapping[str, Any] | None = None, origin: Mapping[str, str] | None = None) -> dict[str, Any]:
        """One bounded run in a driver process, as `ConnectorOperator` does it.

        If the task is killed, the driver ends with it and commits nothing: on SIGTERM at once, in the main thread. An
        operator that calls this in another thread calls `on_kill` from its own.

        Args:
            limits: `run.*` keys.
            origin: who started the run, for its history: plain strings.

        Returns:
            The summary that `ConnectorOperator` returns.

        Raises:
            AirflowFailException: another attempt would fail in the same way.
            AirflowException: the task was killed.
            ConnectError: the configuration is wrong, or a server or Spark was unavailable.
        """
        from airflow.sdk.exceptions import AirflowException

        from airflow_connect.runtime.driver.process import DriverProcess
        from airflow_connect.runtime.reporting.presentation import EventLines

        with self._spec(limits, origin) as spec:
            redact = Redactor(secrets_of(spec), ResolvedReferences(spec.references))
            lines = EventLines(lambda line: self.log.info("%s", redact(line)))
            with (
                on_sigterm(self.on_kill),
                DriverProcess(spec, on_log=lambda line: self.log.info("driver | %s", redact(line))) as driver,
            ):
                self._driver = driver
                if self._is_killed:  # before the line above
                    driver.kill()
                for event in driver.events():
                    lines(event)
                outcome = driver.wait()
                log_tail = redact(driver.log_tail)
        if self._is_killed:
            raise AirflowException(killed_message(outcome))
        if not isinstance(outcome, RunReport):
            raise driver_failure(outcome, log_tail)
        if outcome.error is not None:
            raise run_failure(outcome, redact)
        return summary_of(outcome)

    def on_kill(self) -> None:
        """End the driver of `run` and all its processes. For the `on_kill` of an operator; `run` then raises."""
        self._is_killed = True
        if self._driver is not None:
            self._driver.kill()

    def validate(self) -> list[dict[str, Any]]:
        """Every finding about the configuration, offline: `key`, `message`, `suggestion`, `level`.

        `level` is `error`, `ignored` or `unknown`; without an entry of level `error`, a run would begin.

        Raises:
            ConfigError: a file or connection is missing or cannot be read.
        """
        from airflow_connect.runtime.driver.entry import validate_connector

        with self._spec() as spec:
            return validate_connector(spec)

    def offsets(self) -> list[dict[str, Any]]:
        """Committed offsets in the form of Kafka Connect's REST API: `[{"partition": {...}, "offset": {...}}]`.

        Raises:
            ConnectError: the configuration is wrong, or Kafka cannot be read.
        """
        from airflow_connect.observe.status.connector_state import committed_offsets

        with self._spec() as spec:
            return committed_offsets(spec)

    def lag(self) -> list[dict[str, Any]]:
        """Lag of a sink: `topic`, `partition`, `committed`, `end` and `lag` of every partition.

        Raises:
            ConnectError: the connector is a source, its configuration is wrong, or Kafka cannot be read.
        """
        from airflow_connect.observe.status.connector_state import lag_of

        with self._spec() as spec:
            return [found.to_json() for found in lag_of(spec)]

    def runs(self, limit: int = 20) -> list[dict[str, Any]]:
        """Reports of committed runs, the newest first; Kafka keeps the last 100.

        Raises:
            ConnectError: the configuration is wrong, or Kafka cannot be read.
        """
        from airflow_connect.observe.status.connector_state import recent_runs

        with self._spec() as spec:
            return recent_runs(spec, limit)

    def dead_letters(self, limit: int = 20, *, stage: str = "", error: str = "") -> dict[str, Any]:
        """The newest dead letters of this connector, without moving any offset.

        Args:
            limit: at most this many, and at most 100.
            stage: only letters of this stage, such as `VALUE_CONVERTER`.
            error: only letters whose error class or message contains this.

        Returns:
            `queue` (the topic), `matching` (how many there are) and `letters`, in the order of their offsets: where
            they came from, stage, error, and the first 40 characters of key and value.

        Raises:
            ConnectError: the connector has no queue, its configuration is wrong, or Kafka cannot be read.
        """
        from airflow_connect.kafka.reading.dead_letters import LetterFilter
        from airflow_connect.runtime.driver.dead_letters.view import describe, find_letters
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

        with self._spec() as spec:
            configuration = SinkConfiguration.from_spec(spec)
            with configuration.references.hiding_errors():
                wanted = LetterFilter(configuration.name, stage, error)
                found = find_letters(configuration, wanted, min(limit, MOST_LETTERS))
        letters = [describe(letter) for letter in found.letters]
        return {"queue": found.queue, "matching": found.matching, "letters": letters}

    def test_connection(self) -> tuple[bool, str]:
        """Try the servers of the `connect_worker` connection: the button of the connection form.

        Returns:
            Whether all of them can be used, and a sentence for each thing that was tried.
        """
        from airflow_connect.runtime.worker_check import check_worker

        secrets: list[str] = []
        try:
            worker = settings_of(get_connection(self.worker_conn_id or self.default_conn_name))
            secrets = secret_values(worker)
            references = resolve_references({}, worker, providers={PROVIDER_NAME: AirflowConfigProvider})
            tried = check_worker(worker, references)
        except ConnectError as error:
            return False, Redactor(secrets)(f"{error.message} {error.suggestion}".strip())
        told = " ".join(found.sentence for found in tried)
        return all(found.is_ok for found in tried), Redactor(secrets, references)(told)

    @contextmanager
    def _spec(
        self, limits: Mapping[str, Any] | None = None, origin: Mapping[str, str] | None = None
    ) -> Iterator[RunSpec]:
        """The input of a run; its secrets are masked in Airflow's log, and in errors that leave the block."""
        self._arguments.check()
        spec = self._arguments.run_spec(limits, origin)
        references = ResolvedReferences(spec.references)
        mask_in_airflow([*secrets_of(spec), *references.shapes()])
        with references.hiding_errors():
            yield spec
