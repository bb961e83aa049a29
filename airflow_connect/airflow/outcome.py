"""How a run ended, in Airflow's terms: which exception a failure becomes, and what goes into XCom."""

from __future__ import annotations

from typing import Any

from airflow.sdk.exceptions import AirflowFailException

from airflow_connect.api import errors
from airflow_connect.api.errors import ConnectError, TaskFailedError
from airflow_connect.api.run import RunReport
from airflow_connect.api.source_documents import SourceRunReport

MOST_OFFSETS = 20
"""Source partitions whose offsets other tasks see."""
FENCED_ADVICE = (
    "Two runs of one connector overlapped: a backfill, a second DAG with the same connector name, or a retry "
    "beside a task that was thought dead. Nothing of this run was committed; the newer run copies everything."
)


def run_failure(report: RunReport) -> Exception:
    """The exception for a failed run: a ConnectError when a retry may help, else AirflowFailException."""
    assert report.error is not None
    error = _rebuilt(report.error)
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
        suggestion="Nothing half-done is visible; another attempt goes on behind the last committed run.",
    )


def summary_of(report: RunReport) -> dict[str, Any]:
    """What other tasks may want to know of a run, small and plain: the XCom."""
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


def asset_extra(report: RunReport) -> dict[str, Any]:
    """What the event of an asset carries: counts, and where the next run begins."""
    summary = summary_of(report)
    counts = ("files",) if report.source is None else ("topics", "partitions")
    return {name: summary[name] for name in ("records", *counts, "offsets", "run_id")}


def _of_sink(report: RunReport) -> dict[str, Any]:
    return {
        "files": report.files,
        "dead_lettered": report.dead_lettered,
        "left": report.left,
        "late": report.late,
        "complete": len(report.complete),
        "offsets": dict(report.committed),
        "recovered_run_id": report.recovered_run_id,
    }


def _of_source(source: SourceRunReport) -> dict[str, Any]:
    """Offsets in the form of Kafka Connect's REST API; only the first ones, as a source may have very many."""
    shown = source.offsets[:MOST_OFFSETS]
    return {
        "topics": dict(source.topics),
        "failed": source.failed,
        "transactions": source.transactions,
        "partitions": source.partitions,
        "offsets": [{"partition": dict(move.partition), "offset": move.after} for move in shown],
    }


def _rebuilt(error: dict[str, Any]) -> ConnectError:
    """The error object that a report tells of; of an unknown type it becomes its nearest kin."""
    kind = getattr(errors, str(error.get("type")), None)
    if not (isinstance(kind, type) and issubclass(kind, ConnectError)):
        kind = TaskFailedError if error.get("retriable", True) else ConnectError
    return kind(
        error["message"],
        code=error["code"],
        suggestion=error.get("suggestion", ""),
        config_path=error.get("configPath", ""),
    )
