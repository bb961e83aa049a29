"""`ConnectorOperator`: one bounded, exactly-once run of a connector as one Airflow task."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import Asset, BaseOperator
from airflow.sdk.exceptions import AirflowException, AirflowFailException

from airflow_connect.airflow.complete_events import alias_of, emit
from airflow_connect.airflow.config_provider import PROVIDER_NAME, AirflowConfigProvider
from airflow_connect.airflow.connections import (
    DEFAULT_KAFKA_CONN_ID,
    aws_credentials,
    worker_with_kafka,
    worker_with_spark,
)
from airflow_connect.airflow.default_assets import default_assets, without_known
from airflow_connect.airflow.masking import mask_in_airflow
from airflow_connect.airflow.outcome import asset_extra, driver_failure, run_failure, summary_of
from airflow_connect.airflow.run_params import ONLY_SINKS, chosen_limits, run_params
from airflow_connect.api.config_references import ResolvedReferences
from airflow_connect.api.errors import ConfigError, ConnectError
from airflow_connect.api.run import RunReport
from airflow_connect.config_providers.resolving import resolve_references
from airflow_connect.runtime.config_files import read_connector_file, read_worker_file, unwrap_connector
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.presentation import EventLines, error_lines
from airflow_connect.runtime.redaction import Redactor, secret_values
from airflow_connect.runtime.spec import RunSpec

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

EventListener = Callable[[Mapping[str, Any]], None]


class ConnectorOperator(BaseOperator):
    """Runs a Kafka Connect connector once: from its committed offsets to the present end of its topics.

    A run needs no logical date and looks at none: what is copied follows from the offsets in Kafka. So a
    scheduled, manual, REST-triggered, asset-triggered or backfill run, a retry and a cleared task all do the
    same thing, which is to go on where the last committed run ended. Of two runs at once the newer one wins;
    the older one fails as fenced.

    Args:
        config: connector configuration as for Kafka Connect; `name` decides the consumer group. Templated.
            `${airflow:connection:field}` and `${airflow:var:name}` refer to Airflow's connections and variables; the
            worker may set up more config providers.
        config_file: path of a properties or JSON file with it, instead of `config`. Templated.
        worker: worker configuration, or the path of a file with it. Templated.
        kafka_conn_id: connection with the brokers and their security (extra in librdkafka's names). The
            default one is read only if `worker` names no `bootstrap.servers`; one that you name wins over
            `worker`. None: not used.
        aws_conn_id: connection with credentials for S3; None: boto3's default chain.
        spark_conn_id: connection of type `spark` or `spark_connect`; None: `spark.*` of the worker, else
            local.
        complete_outlet: asset that gets an event for each directory of time that is complete (`complete.directories` or
            `complete.marker` of the connector); None: no events. A DAG with `schedule=[asset]` runs when an hour or a
            day is there.
        add_assets: whether the topics and directories that the configuration names are added to `inlets` and
            `outlets`, see `airflow.default_assets`. What you list there stays; a URI that you list under a name of your
            own is not added again.
        kwargs: as for every operator. For each asset in `outlets` an event with counts and offsets is
            emitted.

    Raises (when it runs):
        AirflowFailException: another attempt would fail in the same way (configuration, access, data,
            fenced).
        ConnectError: a server or Spark was away; `retries` apply.
    """

    template_fields: Sequence[str] = ("config", "config_file", "worker")
    template_fields_renderers: ClassVar[dict[str, str]] = {"config": "json", "worker": "json"}
    ui_color = "#dff3ee"

    listeners: ClassVar[list[EventListener]] = []
    """Hear the events of every run in this process, see `runtime.spec.Observer`."""

    def __init__(  # noqa: PLR0913 (an operator's arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        aws_conn_id: str | None = None,
        spark_conn_id: str | None = None,
        complete_outlet: Asset | None = None,
        add_assets: bool = True,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments; of files, only configurations are read here: this runs at every parse of the DAG file."""
        if complete_outlet is not None:
            kwargs["outlets"] = [*_listed(kwargs.get("outlets")), alias_of(complete_outlet)]
        if add_assets:
            inlets, outlets = default_assets(_read_now(config, config_file), _read_now(worker, None))
            known = [*_listed(kwargs.get("outlets")), complete_outlet]
            kwargs["inlets"] = [*_listed(kwargs.get("inlets")), *without_known(inlets, _listed(kwargs.get("inlets")))]
            kwargs["outlets"] = [*_listed(kwargs.get("outlets")), *without_known(outlets, known)]
        super().__init__(**kwargs)
        if (config is None) == (config_file is None):
            which = "neither" if config is None else "both"
            raise ConfigError(
                f"Task {self.task_id!r} has {which} config and config_file.",
                config_path="config",
                suggestion="Give the connector's configuration as one of them.",
            )
        self.config = config
        self.config_file = str(config_file) if isinstance(config_file, Path) else config_file
        self.worker = str(worker) if isinstance(worker, Path) else worker
        self.kafka_conn_id = kafka_conn_id
        self.aws_conn_id = aws_conn_id
        self.spark_conn_id = spark_conn_id
        self.complete_outlet = complete_outlet
        self.add_assets = add_assets
        self._driver: DriverProcess | None = None
        self._killed = False

    def render_template_fields(self, context: Context, jinja_env: jinja2.Environment | None = None) -> None:
        """Render, then register the secrets, so that the Rendered Templates tab and the log show `***`."""
        super().render_template_fields(context, jinja_env)
        mask_in_airflow(secret_values(*(part for part in (self.config, self.worker) if isinstance(part, Mapping))))

    def execute(self, context: Context) -> dict[str, Any]:
        """Do the run in a driver process; return a summary of it, which becomes the XCom."""
        try:
            spec = self._spec(context)
        except ConnectError as error:
            self._log_failure(error.to_json(), Redactor(()))
            if error.retriable:
                raise
            raise AirflowFailException(f"{error.code}: {error}") from error
        secrets = secret_values(spec.connector, spec.worker, {"aws.password": "", **_as_secrets(spec.aws)})
        references = ResolvedReferences(spec.references)
        mask_in_airflow([*secrets, *references.shapes()])
        redact = Redactor(secrets, references)
        report = self._run(spec, redact)
        self._tell_assets(context, report)
        return summary_of(report)

    def on_kill(self) -> None:
        """End the driver and all it started. Called from a signal handler; `execute` goes on afterwards."""
        self._killed = True
        if self._driver is not None:
            self._driver.kill()

    def _spec(self, context: Context) -> RunSpec:
        """Files, connections and parameters as the driver's order; references to config providers are looked up.

        Raises:
            ConfigError: something in them is wrong; nothing was started.
            UnavailableError: Airflow, or a config provider's server, did not answer.
        """
        connector = self._connector_config()
        dag_run = context["dag_run"]
        declared = {*self.dag.params, *self.params}
        limits = chosen_limits(context["params"], dag_run.conf or {}, declared)
        worker = read_worker_file(self.worker) if isinstance(self.worker, str) else dict(self.worker or {})
        worker = worker_with_kafka(worker, self.kafka_conn_id)
        worker = worker_with_spark(worker, self.spark_conn_id)
        connector = {**connector, **limits}
        airflow = {PROVIDER_NAME: AirflowConfigProvider}
        instance = context["ti"]
        spec = RunSpec(
            connector=connector,
            worker=worker,
            aws=aws_credentials(self.aws_conn_id),
            references=resolve_references(connector, worker, providers=airflow).values,
            origin={
                "dag_id": instance.dag_id,
                "dag_run_id": instance.run_id,
                "task_id": instance.task_id,
                "map_index": str(instance.map_index),
                "try_number": str(instance.try_number),
            },
        )
        return self._without_limits_of_others(spec, limits)

    def _without_limits_of_others(self, spec: RunSpec, limits: Mapping[str, Any]) -> RunSpec:
        """A DAG run's conf is for all its tasks: a limit that only sinks have is not meant for a source beside one."""
        chosen = [key for key in ONLY_SINKS if key in limits]
        if not chosen or not self._has_other_connectors():
            return spec
        from airflow_connect.runtime.driver.source_configuration import is_source

        if not is_source(spec):
            return spec
        self.log.warning("%s of this DAG run does not bound a source and is left to other tasks.", ", ".join(chosen))
        kept = {key: value for key, value in spec.connector.items() if key not in chosen}
        return replace(spec, connector=kept)

    def _has_other_connectors(self) -> bool:
        others = (task for task in self.dag.tasks if task.task_id != self.task_id)
        return any(ConnectorOperator in (type(task), getattr(task, "operator_class", None)) for task in others)

    def _connector_config(self) -> dict[str, Any]:
        if self.config_file is not None:
            return read_connector_file(self.config_file)
        if not isinstance(self.config, Mapping):
            raise ConfigError(
                f"The config of task {self.task_id!r} is a {type(self.config).__name__}, not a dictionary.",
                config_path="config",
                suggestion="Give a dictionary, or use config_file for a path.",
            )
        return unwrap_connector(self.config, f"the config of task {self.task_id!r}")

    def _run(self, spec: RunSpec, redact: Redactor) -> RunReport:
        """Start the driver, follow it to its end.

        Raises:
            AirflowException: it failed, was killed or died; see `airflow.outcome`.
        """
        lines = EventLines(lambda line: self.log.info("%s", redact(line)))
        with DriverProcess(spec, on_log=lambda line: self.log.info("driver | %s", redact(line))) as driver:
            self._driver = driver
            if self._killed:  # between the task's start and this line
                driver.kill()
            for event in driver.events():
                lines(event)
                for listener in self.listeners:
                    listener(event)
            outcome = driver.wait()
        if self._killed:
            raise AirflowException(_killed_message(outcome))
        if not isinstance(outcome, RunReport):
            raise driver_failure(outcome, redact(driver.log_tail))
        if outcome.error is not None:
            self._log_failure(outcome.error, redact)
            raise run_failure(outcome)
        return outcome

    def _log_failure(self, error: Mapping[str, Any], redact: Redactor) -> None:
        """Say in lines what Airflow's log view cuts off at the right, in the head of a traceback."""
        for line in error_lines(error):
            self.log.error("%s", redact(line))

    def _tell_assets(self, context: Context, report: RunReport) -> None:
        """Put counts and offsets into the event of each asset in `outlets`; tell of complete directories."""
        if self.complete_outlet is not None:
            told = emit(context["outlet_events"], self.complete_outlet, report)
            if told < len(report.complete):
                self.log.warning(
                    "%d directories are complete; the %d that end last got an asset event.", len(report.complete), told
                )
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = asset_extra(report)


def _listed(outlets: Any) -> Sequence[Any]:
    if outlets is None:
        return ()
    return outlets if isinstance(outlets, Sequence) else [outlets]


def _read_now(config: Mapping[str, Any] | str | Path | None, config_file: str | Path | None) -> Mapping[str, Any]:
    """What is known of a configuration before the task runs: nothing where a path or all of it is a template."""
    try:
        if isinstance(config, Mapping):
            return unwrap_connector(config, "config")
        path = config_file or config
        return read_connector_file(path) if isinstance(path, (str, Path)) and Path(path).is_file() else {}
    except (ConfigError, OSError):  # OSError: a template so long that it cannot be a path.
        return {}  # The task says what is wrong with it, where somebody reads it.


def _as_secrets(aws: Mapping[str, str]) -> dict[str, str]:
    """Credentials of a connection under names that sound as secret as they are."""
    return {f"aws.{key}": value for key, value in aws.items() if key in ("secret_access_key", "session_token")}


def _killed_message(outcome: RunReport | int) -> str:
    if isinstance(outcome, RunReport) and outcome.error is None:
        return (
            f"The task was killed when run {outcome.run_id} had just been committed with {outcome.records} "
            "records. Nothing is lost or doubled; the next run goes on behind them."
        )
    return "The task was killed: nothing was committed; the next run starts where this one did."


__all__ = ["ConnectorOperator", "run_params"]
