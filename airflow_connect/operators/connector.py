"""`ConnectorOperator`: one bounded, exactly-once run of a connector as one Airflow task."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from airflow.sdk import Asset, conf
from airflow.sdk.definitions.context import context_merge
from airflow.sdk.exceptions import AirflowException

from airflow_connect.airflow.connections.masking import mask_in_airflow
from airflow_connect.airflow.connections.official import DEFAULT_KAFKA_CONN_ID
from airflow_connect.airflow.connector_arguments import ConnectorArguments
from airflow_connect.airflow.lineage import stats
from airflow_connect.airflow.lineage.complete_events import alias_of, emit
from airflow_connect.airflow.lineage.default_assets import default_assets, without_known
from airflow_connect.airflow.lineage.links import ConnectorHistoryLink, DeadLettersLink, WrittenObjectsLink
from airflow_connect.airflow.lineage.openlineage import Lineage, LineageMixin
from airflow_connect.airflow.outcome import asset_extra, driver_failure, killed_message, run_failure, summary_of
from airflow_connect.airflow.run_params import ONLY_SINKS, chosen_limits, run_params
from airflow_connect.config.resolved.loading import secret_names
from airflow_connect.documents.run import RunReport
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.operators.connector_task import ConnectorTask, redactor_of
from airflow_connect.operators.service_run import ServiceRun
from airflow_connect.runtime.config_files import read_connector_file, unwrap_connector
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver_service.contract import RunNews, RunState, RunView
from airflow_connect.runtime.reporting.presentation import EventLines
from airflow_connect.runtime.reporting.redaction import Redactor, secret_values, shown_config
from airflow_connect.runtime.spec import LAST_TRY, RunSpec

if TYPE_CHECKING:
    from airflow.sdk import Context, XComArg

DEFERRABLE = ("operators", "default_deferrable")
NOT_DEFERRED = (
    "The task is deferrable, but the driver runs in its worker slot, because driver_conn_id names no driver service "
    "where it could run instead."
)
EventListener = Callable[[Mapping[str, Any]], None]


class ConnectorOperator(LineageMixin, ConnectorTask):
    """Runs a Kafka Connect connector once: from its committed offsets to the current end of its topics.

    A run does not use the logical date; the offsets in Kafka determine what is copied. So a scheduled, manual,
    REST-triggered, asset-triggered or backfill run, a retry and a cleared task all do the same: they resume where the
    last committed run ended. Of two runs at once the newer one wins; the older one fails as fenced.

    Args:
        config: connector configuration as for Kafka Connect; `name` decides the consumer group. Templated.
            `${airflow:connection:field}` and `${airflow:var:name}` refer to Airflow's connections and variables; the
            worker may configure more config providers.
        config_file: path of a properties or JSON file with it, instead of `config`; or its URL in object storage, such
            as `s3://aws_default@bucket/orders.json` with the connection before `@`. A URL is read only while the task
            runs. Templated.
        worker: worker configuration, or the path or URL of a file with it. Templated.
        kafka_conn_id: connection with the brokers and their security settings (extra in librdkafka's names). The
            default one is read only if `worker` has no `bootstrap.servers`; one that you name takes precedence over
            `worker`. None: not used. This and all other ids of connections are templated.
        aws_conn_id: connection with credentials for S3; None: boto3's default chain.
        spark_conn_id: connection of type `spark` or `spark_connect`; None: `spark.*` of the worker, or else local.
        worker_conn_id: connection of type `connect_worker` with keys that `worker` does not set; None: not used.
        db_conn_id: connection to the database of a JDBC connector, for `connection.url`, `connection.user` and
            `connection.password`, which the configuration then must not have; None: not used.
        driver_conn_id: connection of type `connect_driver`: the driver runs at that service
            (`airflow-connect driver-service`) instead of in a child process of the task. Paths and `spark.master` are
            then those of its machine.
        deferrable: wait in the triggerer while the driver runs at the service; by default Airflow's
            `[operators] default_deferrable`. Without `driver_conn_id` the driver needs the worker slot, and the task
            says so in its log.
        poll_interval: seconds between two looks of the triggerer at the service.
        plan: of a sink: what `ConnectorPlanOperator` or `ConnectHook.plan` returned. The run copies what it shows and
            no more; it fails if offsets were set back since, or if the task gets no plan because the one that makes it
            was skipped. Templated.
        complete_outlet: asset that gets an event for each complete time directory (`complete.directories` or
            `complete.marker` of the connector); None: no events. A DAG with `schedule=[asset]` runs when an hour or a
            day is complete.
        add_assets: whether the topics and directories that the configuration names are added to `inlets` and
            `outlets`, see `airflow.default_assets`. Assets that you list there stay; a URI that you list under another
            name is not added again. A mapped task gets none, because Airflow must know assets when it parses the DAG.
        kwargs: as for every operator. Each asset in `outlets` gets an event with counts and offsets. A mapped task with
            `map_index_template="{{ connector }}"` shows the names of its connectors.

    Raises (when it runs):
        AirflowFailException: another attempt would fail in the same way (configuration, access, data,
            fenced).
        ConnectError: a server or Spark was unavailable; `retries` apply.
    """

    operator_extra_links = (WrittenObjectsLink(), ConnectorHistoryLink(), DeadLettersLink())
    template_fields: Sequence[str] = (*ConnectorTask.template_fields, "spark_conn_id", "driver_conn_id", "plan")
    template_fields_renderers: ClassVar[dict[str, str]] = {**ConnectorTask.template_fields_renderers, "plan": "json"}

    listeners: ClassVar[list[EventListener]] = []
    """Called with the events of every run in this process, see `runtime.spec.Observer`."""

    def __init__(  # noqa: PLR0913 (an operator's arguments are keywords, each with a default)
        self,
        *,
        config: Mapping[str, Any] | None = None,
        config_file: str | Path | None = None,
        worker: Mapping[str, Any] | str | Path | None = None,
        kafka_conn_id: str | None = DEFAULT_KAFKA_CONN_ID,
        aws_conn_id: str | None = None,
        spark_conn_id: str | None = None,
        worker_conn_id: str | None = None,
        db_conn_id: str | None = None,
        driver_conn_id: str | None = None,
        deferrable: bool | None = None,
        poll_interval: float = 5.0,
        plan: Mapping[str, Any] | XComArg | None = None,
        complete_outlet: Asset | None = None,
        add_assets: bool = True,
        **kwargs: Any,
    ) -> None:
        """Keep the arguments. Reads configuration files only, because it runs at every parse of the DAG file."""
        if complete_outlet is not None:
            kwargs["outlets"] = [*_listed(kwargs.get("outlets")), alias_of(complete_outlet)]
        if add_assets and not getattr(self, "_BaseOperator__from_mapped", False):
            inlets, outlets = default_assets(_read_now(config, config_file), _read_now(worker, None))
            known = [*_listed(kwargs.get("outlets")), complete_outlet]
            kwargs["inlets"] = [*_listed(kwargs.get("inlets")), *without_known(inlets, _listed(kwargs.get("inlets")))]
            kwargs["outlets"] = [*_listed(kwargs.get("outlets")), *without_known(outlets, known)]
        super().__init__(
            config=config,
            config_file=config_file,
            worker=worker,
            kafka_conn_id=kafka_conn_id,
            aws_conn_id=aws_conn_id,
            worker_conn_id=worker_conn_id,
            db_conn_id=db_conn_id,
            **kwargs,
        )
        self.spark_conn_id = spark_conn_id
        self.driver_conn_id = driver_conn_id
        self.deferrable = conf.getboolean(*DEFERRABLE, fallback=False) if deferrable is None else deferrable
        self.poll_interval = poll_interval
        self.plan = plan
        self._is_bound = plan is not None
        self.complete_outlet = complete_outlet
        self.add_assets = add_assets
        self._driver: DriverProcess | None = None
        self._service_run: ServiceRun | None = None
        self._killed = False
        self._lineage: Lineage | None = None

    def execute(self, context: Context) -> dict[str, Any]:
        """Run in a driver process, here or at the driver service; return a summary, which becomes the XCom."""
        spec, redact = self.checked_spec(context)
        self._lineage = Lineage(spec.connector, spec.worker)
        if self.driver_conn_id is not None:
            return self._execute_at_service(context, spec, redact)
        if self.deferrable:
            self.log.info("%s", NOT_DEFERRED)
        report = self._run(spec, redact)
        self._lineage = Lineage(spec.connector, spec.worker, report)
        self._update_assets(context, report)
        return summary_of(report)

    def _execute_at_service(self, context: Context, spec: RunSpec, redact: Redactor) -> dict[str, Any]:
        """Start the run there; wait for it in the triggerer if deferrable, or else here."""
        assert self.driver_conn_id is not None
        with self.failing_for_airflow(spec):
            run = self._service_run = ServiceRun(self.driver_conn_id, spec.run_id, self.log.warning)
            view = run.start(spec)
            self.log.info("Run %s is %s at the driver service.", run.run_id, view.state.value)
            if run.run_id != run.attempt:
                self.log.info("An earlier attempt of this task has started it, and this one takes its outcome.")
            shown = shown_config(spec.connector, redact, secret_names(spec.connector))
            if self.deferrable and view.state is not RunState.ENDED:
                self._defer(view, shown, run.attempt)
            state = run.follow(self._tell_news())
        event = {"run_id": run.run_id, "connector": shown, "state": "ended" if state is RunState.ENDED else "lost"}
        return self.execute_complete(context, event)

    def _defer(self, view: RunView, shown: dict[str, Any], attempt: str) -> None:
        from airflow_connect.triggers.driver_run import AFTER_LEASE_S, DriverRunTrigger

        limit = self.execution_timeout
        trigger = DriverRunTrigger(
            self.driver_conn_id or "",
            view.run_id,
            shown,
            view.lease_s,
            min(self.poll_interval, view.lease_s / 3),
            None if limit is None else time.time() + limit.total_seconds(),
            attempt,
        )
        # The trigger ends the run in time. Airflow's own timeout is for a triggerer that is away: the run then ends by
        # its lease.
        later = timedelta(seconds=view.lease_s + 2 * AFTER_LEASE_S)
        timeout = None if limit is None else limit + later
        self.defer(trigger=trigger, method_name="execute_complete", timeout=timeout)

    def execute_complete(self, context: Context, event: Mapping[str, Any]) -> dict[str, Any]:
        """Take the outcome of a run at the driver service; `event` is of `DriverRunTrigger`."""
        run_id, connector = event["run_id"], event["connector"]
        context_merge(context, {"connector": str(connector.get("name") or "")})
        # What the database connection says is in the configuration of the run already.
        started = replace(self.arguments(), config=connector, config_file=None, db_conn_id=None)
        with self.failing_for_airflow():
            worker = started.worker_config()
            mask_in_airflow(secret_values(worker))
            self._lineage = Lineage(connector, worker)
            run = self._service_run or ServiceRun(self.driver_conn_id or "", run_id, self.log.warning)
            report = run.outcome(event, lambda wanted: self._committed(started, wanted))
        self._tell_news()(RunNews(RunState.ENDED, [{"event": "end", "report": report.to_json()}]))
        stats.send(report)
        if report.error is not None:
            self.log_failure(report.error, Redactor(()))  # The service has hidden the secrets.
            run.release()
            raise run_failure(report)
        self._lineage = Lineage(connector, worker, report)
        self._update_assets(context, report)
        run.release()
        return summary_of(report)

    def _committed(self, started: ConnectorArguments, run_id: str) -> RunReport | None:
        """The report of a run, from the history in Kafka; None: it has not committed.

        Raises:
            UnavailableError: the history cannot be read now.
        """
        from airflow_connect.exactly_once.kafka_journal import HISTORY
        from airflow_connect.observe.status.connector_state import recent_runs

        try:
            runs = recent_runs(started.run_spec(), HISTORY)
        except ConnectError as error:
            if error.retriable:
                raise
            # Such as a secret of the configuration itself, which is not kept while a task waits.
            self.log.warning("Whether the run has committed cannot be read from its history: %s", error)
            return None
        return next((RunReport.from_json(run) for run in runs if run["run_id"] == run_id), None)

    def _tell_news(self) -> Callable[[RunNews], None]:
        lines = EventLines(lambda line: self.log.info("%s", line))

        def tell(news: RunNews) -> None:
            for entry in news.entries:
                if entry["event"] == "log":
                    self.log.info("driver | %s", entry["line"])
                    continue
                lines(entry)
                for listener in self.listeners:
                    listener(entry)

        return tell

    def lineage(self) -> Lineage:
        """For OpenLineage: before the task runs, only what its arguments say."""
        return self._lineage or Lineage(_read_now(self.config, self.config_file), _read_now(self.worker, None))

    def on_kill(self) -> None:
        """Kill the driver and all its processes. Called from a signal handler; `execute` continues afterwards."""
        self._killed = True
        if self._service_run is not None:
            self._service_run.kill()
        if self._driver is not None:
            self._driver.kill()

    def checked_spec(self, context: Context) -> tuple[RunSpec, Redactor]:
        """The driver's input, and what hides its secrets.

        Raises:
            AirflowFailException: the arguments are wrong; nothing was started.
            UnavailableError: Airflow, or a config provider's server, did not answer.
        """
        with self.failing_for_airflow():
            spec = self._spec(context)
        # For map_index_template="{{ connector }}", which is rendered when the task ends.
        context_merge(context, {"connector": str(spec.connector.get("name") or "")})
        return spec, redactor_of(spec)

    def _spec(self, context: Context) -> RunSpec:
        """The driver's input, from files, connections and parameters; references to config providers are resolved.

        Raises:
            ConfigError: they are invalid; nothing was started.
            UnavailableError: Airflow, or a config provider's server, did not answer.
        """
        dag_run, instance = context["dag_run"], context["ti"]
        limits = chosen_limits(context["params"], dag_run.conf or {}, {*self.dag.params, *self.params})
        origin = {
            "dag_id": instance.dag_id,
            "dag_run_id": instance.run_id,
            "task_id": instance.task_id,
            "map_index": str(instance.map_index),
            "try_number": str(instance.try_number),
        }
        if instance.try_number > instance.max_tries:
            origin[LAST_TRY] = "true"
        spec = self.arguments().run_spec(limits, origin)
        if self._is_bound:
            spec = replace(spec, bounds=_bounds_of(self.plan, spec))
        return self._without_limits_of_others(spec, limits)

    def _without_limits_of_others(self, spec: RunSpec, limits: Mapping[str, Any]) -> RunSpec:
        """Drop limits that only sinks have from a source that shares its DAG with a sink: a conf is for all tasks."""
        chosen = [key for key in ONLY_SINKS if key in limits]
        if not chosen or not self._has_other_connectors():
            return spec
        from airflow_connect.runtime.driver.class_of_connector import names_source

        if not names_source(spec):
            return spec
        self.log.warning("%s of this DAG run does not bound a source and is left to other tasks.", ", ".join(chosen))
        kept = {key: value for key, value in spec.connector.items() if key not in chosen}
        return replace(spec, connector=kept)

    def _has_other_connectors(self) -> bool:
        others = (task for task in self.dag.tasks if task.task_id != self.task_id)
        return any(ConnectorOperator in (type(task), getattr(task, "operator_class", None)) for task in others)

    def _run(self, spec: RunSpec, redact: Redactor) -> RunReport:
        """Start the driver and follow its events until it ends.

        Raises:
            AirflowException: the run failed, was killed or died; see `airflow.outcome`.
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
            raise AirflowException(killed_message(outcome))
        if not isinstance(outcome, RunReport):
            raise driver_failure(outcome, redact(driver.log_tail))
        stats.send(outcome)
        if outcome.error is not None:
            self.log_failure(outcome.error, redact)
            raise run_failure(outcome, redact)
        return outcome

    def _update_assets(self, context: Context, report: RunReport) -> None:
        """Put counts and offsets into the event of each asset in `outlets`; emit events for complete directories."""
        if self.complete_outlet is not None:
            told = emit(context["outlet_events"], self.complete_outlet, report)
            if told < len(report.complete):
                self.log.warning(
                    "%d directories are complete; the %d that end last got an asset event.", len(report.complete), told
                )
        for outlet in self.outlets:
            if isinstance(outlet, Asset):
                context["outlet_events"][outlet].extra = asset_extra(report, outlet.uri)


def _bounds_of(plan: Any, spec: RunSpec) -> dict[str, Any]:
    from airflow_connect.planning.bounds import approved

    if not isinstance(plan, Mapping):  # Without it, the run would copy more than was approved.
        raise ConfigError(
            f"The task is bound to a plan, and got {'none' if plan is None else f'a {type(plan).__name__}'} instead.",
            code="airflow.plan_missing",
            config_path="plan",
            suggestion="If the task that plans was skipped or cleared, let it run first. Pass its output on as"
            " plan=task.output: a template gives a dictionary only with render_template_as_native_obj=True.",
        )
    name = spec.connector.get("name")
    if plan.get("connector") != name:
        raise ConfigError(
            f"The plan is of connector {plan.get('connector')!r}, and the task runs connector {name!r}.",
            suggestion="Plan and copy with the same configuration.",
            config_path="plan",
        )
    return approved(plan).to_json()


def _listed(outlets: Any) -> Sequence[Any]:
    if outlets is None:
        return ()
    return outlets if isinstance(outlets, Sequence) else [outlets]


def _read_now(config: Mapping[str, Any] | str | Path | None, config_file: str | Path | None) -> Mapping[str, Any]:
    """The configuration as far as it is known before the task runs; empty if a path, or all of it, is a template."""
    try:
        if isinstance(config, Mapping):
            return unwrap_connector(config, "config")
        path = config_file or config
        return read_connector_file(path) if isinstance(path, (str, Path)) and Path(path).is_file() else {}
    except (ConfigError, OSError):  # OSError: a template so long that it cannot be a path.
        return {}  # The task reports the error when it runs, in its log.


__all__ = ["ConnectorOperator", "run_params"]
