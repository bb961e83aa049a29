"""What a process can do with a connector: run it, plan a run, validate its configuration, set its offsets.

What differs between sinks and sources is in `kinds.py`; the protocols are in `sink/run.py` and `source/run.py`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.api.config.references import ResolvedReferences
from airflow_connect.errors import ConnectError
from airflow_connect.runtime.driver.kinds import kind_of
from airflow_connect.runtime.driver.reporting import failed, now_ms
from airflow_connect.runtime.driver.stopping import StopRequest, may_be_stopped, request_stop
from airflow_connect.runtime.reporting.internal_errors import name_connector
from airflow_connect.runtime.reporting.redaction import redactor_of_run
from airflow_connect.runtime.spec import Observer, RunSpec, ignore_events

if TYPE_CHECKING:
    from airflow_connect.documents.run import Plan, RunReport
    from airflow_connect.runtime.driver.offsets.altered import AlteredOffsets
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
            run = kind_of(spec).run(observer, engine)
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


def plan_bounded(spec: RunSpec) -> Plan:
    """As `plan_connector`, for a plan whose ranges shall bound a run.

    Raises:
        ConfigError: the connector is a source, whose plan has no ranges.
        ConnectError: the error that a run would fail with.
    """
    kind = kind_of(spec)
    kind.refuse_bounds()
    return kind.plan()


def plan_connector(spec: RunSpec) -> Plan:
    """What a run would copy now. Writes nothing: no fence, no group, no topic.

    Raises:
        ConnectError: the error that a run would fail with.
    """
    return kind_of(spec).plan()


def validate_connector(spec: RunSpec) -> list[dict[str, Any]]:
    """Every finding about the configuration, offline: `{"key", "message", "level"}`; level `error` or `ignored`."""
    return kind_of(spec).findings()


def set_offsets(spec: RunSpec, offsets: Any) -> AlteredOffsets:
    """Set offsets of a connector (KIP-875), fenced as a run is.

    The alteration takes the connector's transactional id, so a run that copies at the same time fails as fenced: it
    commits nothing, and the next run starts at the new offsets. A run that already publishes is not disturbed; the
    alteration is refused until its manifest is closed. A live Kafka Connect worker is never disturbed either.

    Args:
        spec: the connector and its worker.
        offsets: of a sink, see `planning.chosen_positions`; of a source, the list of Kafka Connect's REST API:
            `[{"partition": {...}, "offset": {...}}]`. An offset of None is deleted. Other partitions keep theirs.

    Raises:
        ConfigError: the configuration or `offsets` are wrong, or the connector refuses them.
        OffsetError: a partition does not exist, or an offset is outside its log; the message names it.
        NotStoppedError: a live Kafka Connect worker runs the connector.
        RetriableError: a run of the connector has not finished publishing.
        FencedError: a run of the connector began during the alteration. Nothing was altered, or all of it.
        UnavailableError, AccessError: Kafka.
    """
    if isinstance(offsets, Mapping) and set(offsets) == {"offsets"}:  # the whole body of the REST request
        offsets = offsets["offsets"]
    return kind_of(spec).set_offsets(offsets)


def reset_offsets(spec: RunSpec, partitions: Any = None) -> AlteredOffsets:
    """Delete offsets of a connector, so that it starts as if it had never run; fenced as `set_offsets`.

    Args:
        spec: the connector and its worker.
        partitions: which: of a sink `["topic-0", ...]`, of a source its source partitions; None: all.

    Raises:
        ConnectError: as `set_offsets`.
    """
    return kind_of(spec).reset_offsets(partitions)


__all__ = [
    "plan_bounded",
    "plan_connector",
    "request_stop",
    "reset_offsets",
    "run_connector",
    "set_offsets",
    "validate_connector",
]
