"""What a process can do with a sink or a source: run it, plan a run, validate its configuration.

The protocols are in `sink/run.py` and `source/run.py`. Each is imported when a connector of its kind needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.errors import ConfigError, ConnectError
from airflow_connect.runtime.driver.reporting import failed, now_ms
from airflow_connect.runtime.driver.source.configuration import SourceConfiguration, is_source
from airflow_connect.runtime.driver.stopping import StopRequest, may_be_stopped, request_stop
from airflow_connect.runtime.reporting.internal_errors import name_connector
from airflow_connect.runtime.reporting.redaction import redactor_of_run
from airflow_connect.runtime.spec import Observer, RunSpec, ignore_events

if TYPE_CHECKING:
    from airflow_connect.documents.run import Plan, RunReport
    from airflow_connect.runtime.driver.run_in_progress import Engine
    from airflow_connect.runtime.driver.sink.run import SinkRun
    from airflow_connect.runtime.driver.source.run import SourceRun


def run_connector(
    spec: RunSpec,
    observer: Observer = ignore_events,
    engine: Engine | None = None,
    stop: StopRequest | None = None,
) -> RunReport:
    """Do one bounded run of a connector. A failed run does not raise: the report has its error.

    Args:
        spec: what to run.
        observer: receives events during the run; the last one is `end`.
        engine: a shared engine; None: the run starts its own Spark engine if there is something to copy.
        stop: lets another thread end this run.
    """
    started_ms = now_ms()
    name = str(spec.connector.get("name") or "")
    observer({"event": "start", "connector": name, "run_id": spec.run_id})
    run: SinkRun | SourceRun | None = None
    try:
        with may_be_stopped(stop):
            run = _run_of(spec, observer, engine)
            report = run.execute()
    except ConnectError as error:
        # If it was stopped, its Spark job was cancelled, for example: the reason is that it had to stop.
        reason = (stop.error if stop is not None and not stop.is_finishing else None) or error
        references = ResolvedReferences(spec.references) if run is None else run.references
        redactor_of_run(spec, references).hide_in_error(reason)
        report = failed(name, spec.run_id, started_ms, reason, run.phases_ms if run else {})
    except Exception as defect:
        name_connector(defect, name)
        raise
    observer({"event": "end", "report": report.to_json()})
    if run is not None:
        run.stop_own_engine()  # After the event `end`, because stopping Spark takes a second.
    return report


def _run_of(spec: RunSpec, observer: Observer, engine: Engine | None) -> SinkRun | SourceRun:
    if not is_source(spec):
        from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
        from airflow_connect.runtime.driver.sink.run import SinkRun

        return SinkRun(SinkConfiguration.from_spec(spec), observer, engine)
    from airflow_connect.runtime.driver.source.run import SourceRun

    if spec.bounds:
        raise _no_ranges(spec)
    return SourceRun(SourceConfiguration.from_spec(spec), observer, engine)


def _no_ranges(spec: RunSpec) -> ConfigError:
    return ConfigError(
        f"Connector {spec.connector.get('name')} is a source, and only runs of sinks can be bound to ranges.",
        suggestion="Limit a source with run.max.records, or set its offsets.",
        config_path="connector.class",
    )


def plan_bounded(spec: RunSpec) -> Plan:
    """As `plan_connector`, for a plan whose ranges shall bound a run.

    Raises:
        ConfigError: the connector is a source, whose plan has no ranges.
        ConnectError: the error that a run would fail with.
    """
    if is_source(spec):
        raise _no_ranges(spec)
    return plan_connector(spec)


def plan_connector(spec: RunSpec) -> Plan:
    """What a run would copy now. Writes nothing: no fence, no group, no topic.

    Raises:
        ConnectError: the error that a run would fail with.
    """
    if is_source(spec):
        return _plan_source(spec)
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
    from airflow_connect.runtime.driver.sink.kafka_session import SinkSession
    from airflow_connect.runtime.driver.sink.run import SinkRun

    configuration = SinkConfiguration.from_spec(spec)
    with configuration.references.hiding_errors(), configuration.sink, SinkSession(configuration) as kafka:
        view = kafka.peek()
        return SinkRun(configuration, ignore_events, None).plan_from(kafka, view, peek=True)[0]


def _plan_source(spec: RunSpec) -> Plan:
    from airflow_connect.runtime.driver.source.kafka_session import SourceSession
    from airflow_connect.runtime.driver.source.run import SourceRun

    configuration = SourceConfiguration.from_spec(spec)
    with configuration.references.hiding_errors(), SourceSession(configuration) as kafka:
        offsets = kafka.read_offsets()
        for partition, offset in kafka.changes_in_file(offsets):
            offsets.record(partition, offset)
        return SourceRun(configuration, ignore_events, None).plan_from(offsets, only_plans=True)[0]


def validate_connector(spec: RunSpec) -> list[dict[str, Any]]:
    """Every finding about the configuration, offline: `{"key", "message", "level"}`; level `error` or `ignored`."""
    if is_source(spec):
        return SourceConfiguration.findings(spec)
    from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration

    return SinkConfiguration.findings(spec)


__all__ = ["plan_bounded", "plan_connector", "request_stop", "run_connector", "validate_connector"]
