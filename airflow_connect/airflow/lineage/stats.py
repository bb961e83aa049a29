"""Metrics of a run in Airflow's stats (StatsD, DogStatsD, OpenTelemetry), by the names of Kafka Connect's metrics.

The Airflow task sends them when the run has ended, from its report. Each has the tag `connector`. Times are in
milliseconds, as Airflow's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from airflow.sdk.observability import stats

if TYPE_CHECKING:
    from airflow_connect.documents.run import RunReport

COUNTER, TIMER = "counter", "timer"


class Metric(NamedTuple):
    """A metric that this package sends.

    Attributes:
        kind: `COUNTER` or `TIMER`.
        meaning: for the table in the documentation.
        tag: a tag in addition to `connector`, or "".
    """

    kind: str
    meaning: str
    tag: str = ""


METRICS = {
    "connect.sink.record_read": Metric(COUNTER, "records of a sink's run: written, filtered and dead-lettered"),
    "connect.sink.record_send": Metric(COUNTER, "records that a sink has written"),
    "connect.source.record_write": Metric(COUNTER, "records that a source has written to Kafka"),
    "connect.error.total_records_skipped": Metric(COUNTER, "records that errors.tolerance=all has skipped"),
    "connect.error.deadletterqueue_produce_requests": Metric(COUNTER, "records written to the dead letter queue"),
    "connect.offset_commit": Metric(COUNTER, "runs that have committed"),
    "connect.files_published": Metric(COUNTER, "files that became visible"),
    "connect.bytes_published": Metric(COUNTER, "their bytes; of a source, bytes of keys and values"),
    "connect.recovered": Metric(COUNTER, "earlier runs that this run has finished"),
    "connect.run.failed": Metric(COUNTER, "runs that failed", "code"),
    "connect.run.duration": Metric(TIMER, "from the start of the run to its end"),
    "connect.run.phase_duration": Metric(TIMER, "of each phase of the run", "phase"),
}


def send(report: RunReport) -> None:
    """Send what a report says. A backend that is not there is Airflow's concern: it logs and goes on."""
    for name, value, tag in _values(report):
        metric = METRICS[name]
        tags = {"connector": report.connector, **({metric.tag: tag} if metric.tag else {})}
        if metric.kind is COUNTER:
            stats.incr(name, int(value), tags=tags)
        else:
            stats.timing(name, value, tags=tags)


def _values(report: RunReport) -> Iterator[tuple[str, float, str]]:
    """Metric, value, and the value of its own tag; counters that did not move are left out."""
    yield "connect.run.duration", float(report.ended_ms - report.started_ms), ""
    for phase, duration_ms in report.phases_ms.items():
        yield "connect.run.phase_duration", float(duration_ms), phase
    if report.error is not None:
        yield "connect.run.failed", 1, str(report.error.get("code", ""))
        return
    counters = {
        "connect.files_published": report.files,
        "connect.bytes_published": report.size_bytes,
        "connect.recovered": int(bool(report.recovered_run_id)),
        "connect.offset_commit": int(report.status == "done"),
        "connect.error.deadletterqueue_produce_requests": report.dead_lettered,
    }
    if report.source is None:
        read = report.records + report.filtered + report.dead_lettered
        counters |= {"connect.sink.record_read": read, "connect.sink.record_send": report.records}
    else:
        counters |= {
            "connect.source.record_write": report.records,
            "connect.error.total_records_skipped": report.source.failed,
        }
    for name, count in counters.items():
        if count:
            yield name, count, ""
