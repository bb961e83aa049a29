"""The outcome of a run in Airflow's terms: the exception for a failure, and the XCom."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_connect import errors
from airflow_connect.documents.run import RunReport
from airflow_connect.documents.source_run import SourceRunReport
from airflow_connect.errors import ConnectError, TaskFailedError

MOST_OFFSETS = 20
"""Maximum number of source partitions whose offsets go into XCom."""
KILLED = "The task was killed, and so was its run. What it had not committed is left to the next run."
LAKE = "iceberg://"
"""Scheme of the assets that are tables of a lake."""
_ADDED = frozenset({"records", "files", "dead_lettered"})
FENCED_ADVICE = (
    "Two runs of one connector overlapped: two DAG runs at once (a backfill, max_active_runs above 1), two mapped "
    "tasks or two DAGs with the same connector name, or a retry while the first try was still running. The newer run "
    "continues after what this one had committed; nothing is lost or duplicated."
)


def run_failure(report: RunReport, redact: Callable[[str], str] = str) -> Exception:
    """The exception for a failed run: a ConnectError when a retry may help, else AirflowFailException.

    Args:
        report: of the run.
        redact: hides secrets. Airflow masks them in logs, but gives the exception to callbacks as it is.
    """
    assert report.error is not None
    hidden = {name: redact(str(report.error.get(name) or "")) for name in ("message", "suggestion")}
    error = error_of({**report.error, **hidden})
    if isinstance(error, errors.FencedError):
        return AirflowFailException(f"{error.code}: {error} {FENCED_ADVICE}")
    if report.error.get("retriable", True):
        return error
    where = f" ({error.config_path})" if error.config_path else ""
    return AirflowFailException(f"{error.code}{where}: {error}")


def driver_failure(exit_code: int, log_tail: str) -> TaskFailedError:
    """The exception for a driver that ended without a report: a crash, or the out-of-memory killer."""
    how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
    return TaskFailedError(
        f"The driver process {how} before it could report. The end of its log:\n{log_tail or '(nothing)'}\n",
        code="driver.died",
        suggestion="What it had not committed is left to the next attempt.",
    )


def killed_message(outcome: RunReport | int) -> str:
    """What a task that was killed says of its run."""
    if isinstance(outcome, RunReport) and outcome.error is None:
        return (
            f"The task was killed when run {outcome.run_id} had just been committed with {outcome.records} "
            "records. Nothing is lost or duplicated; the next run resumes after them."
        )
    return KILLED


def summary_of(report: RunReport) -> dict[str, Any]:
    """The XCom: a small summary of a run for other tasks, of JSON types only."""
    return {
        "connector": report.connector,
        "run_id": report.run_id,
        "status": report.status,
        "records": report.records,
        "bytes": report.size_bytes,
        "filtered": report.filtered,
        **(_of_sink(report) if report.source is None else _of_source(report.source)),
        "seconds": round((report.ended_ms - report.started_ms) / 1000, 3),
        "delivery_guarantee": report.delivery_guarantee,
    }


def asset_extra(report: RunReport, uri: str = "") -> dict[str, Any]:
    """The content of an asset event: counts, with those of a run that was finished first; where the next one begins.

    Args:
        report: of the run.
        uri: of the asset. The event of a lake's table also has the snapshots that the run has added to that table.
    """
    summary = summary_of(report)
    counts = ("files", "dead_lettered") if report.source is None else ("topics", "partitions")
    extra = {name: summary[name] for name in ("records", *counts, "offsets", "run_id")}
    if uri.startswith(LAKE):
        extra["snapshots"] = [one.to_extra() for one in report.tables if one.uri == uri]
    # The attempt that had copied them has ended without an event.
    return {name: value + report.recovered.get(name, 0) if name in _ADDED else value for name, value in extra.items()}


def _of_sink(report: RunReport) -> dict[str, Any]:
    return {
        "files": report.files,
        "dead_lettered": report.dead_lettered,
        "left": report.left,
        "late": report.late,
        "complete": len(report.complete),
        "offsets": dict(report.committed),
        "recovered_run_id": report.recovered_run_id,
        "recovered_records": report.recovered.get("records", 0),
        "recovered_files": report.recovered.get("files", 0),
    }


def _of_source(source: SourceRunReport) -> dict[str, Any]:
    """Offsets in the form of Kafka Connect's REST API; only the first ones, because a source may have very many."""
    shown = source.offsets[:MOST_OFFSETS]
    return {
        "topics": dict(source.topics),
        "failed": source.failed,
        "transactions": source.transactions,
        "partitions": source.partitions,
        "offsets": [{"partition": dict(move.partition), "offset": move.after} for move in shown],
    }


def error_of(error: dict[str, Any]) -> ConnectError:
    """The error of a report as an exception; an unknown type becomes the nearest known one."""
    kind = getattr(errors, str(error.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, ConnectError)):
        kind = TaskFailedError if error.get("retriable", True) else ConnectError
    return kind(
        error["message"],
        code=error["code"],
        suggestion=error.get("suggestion", ""),
        config_path=error.get("configPath", ""),
    )
