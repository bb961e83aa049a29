"""What a run reports: its report, warnings, its progress while it publishes."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from airflow_connect.counting import agreeing, plural
from airflow_connect.documents.run import STOPPED_BY_DEAD_LETTERS, Plan, RunReport, TaskReport
from airflow_connect.documents.run_lag import RunLag
from airflow_connect.errors import ConnectError, FencedError, UnavailableError
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.planning.limits import MAX_DEAD_LETTER_BYTES, RunLimits
from airflow_connect.runtime import crash_points
from airflow_connect.runtime.crash_points import reached
from airflow_connect.runtime.driver.stopping import StoppedError
from airflow_connect.runtime.spec import LAST_TRY


class PublishProgress:
    """Passes a growing number on at most twice a second; also has the crash point of an unfinished publish."""

    def __init__(self, show: Callable[[int], None]) -> None:
        self._show = show
        self._next = 0.0

    def __call__(self, done: int) -> None:
        """`done` files are visible."""
        reached(crash_points.PUBLISHING)
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + 0.5
            self._show(done)


def publishing(done: int, total: int) -> dict[str, Any]:
    """The progress event of the publish phase."""
    return {"event": "progress", "phase": "publish", "done": done, "total": total}


def bytes_per_record(manifest: Manifest) -> dict[str, float]:
    """Encoded bytes per written record, by topic: the cost estimate of the next run."""
    written: dict[str, int] = {}
    size: dict[str, int] = {}
    for p in manifest.partitions:
        written[p.range.topic] = written.get(p.range.topic, 0) + p.written
        size[p.range.topic] = size.get(p.range.topic, 0) + p.size_bytes
    return {topic: size[topic] / count for topic, count in written.items() if count}


def lag_after(lag: RunLag | None, manifest: Manifest | None, reports: Sequence[TaskReport] = ()) -> RunLag | None:
    """The lag of a run's plan, with what its tasks have found, once `manifest` is committed; None stays None."""
    if lag is None or manifest is None:
        return lag
    copied = sum(p.commit_offset - p.range.start for p in manifest.partitions)
    oldest_ms = min((report.oldest_ms for report in reports if report.oldest_ms), default=0)
    return replace(lag, after=max(0, lag.before - copied), oldest_ms=oldest_ms)


def no_progress_warning(reports: Sequence[TaskReport], limits: RunLimits) -> str:
    """The warning for a run that read records and commits nothing, because all are left for the next run; or "".

    If the run has a limit, the next run would read the same records, and so on forever.
    """
    partitions = [p for r in reports for p in r.partitions]
    left = sum(p.left for p in partitions)
    if not left or any(p.commit_offset > p.range.start for p in partitions):
        return ""
    which = "the only record" if left == 1 else f"all {plural(left, 'record')}"
    told = f"This run commits nothing: flush.on.end=false leaves {which} that it read for the next run"
    if limits == RunLimits():
        return f"{told}, because they do not fill a file."
    return (
        f"{told}, which will stop at the same limit and commit nothing again. Raise run.max.records, run.max.bytes or "
        "run.max.seconds until a run can fill a file, lower flush.size, or set flush.on.end=true."
    )


def stopped_by_dead_letters(plan: Plan, reports: Sequence[TaskReport]) -> str:
    """The warning for a run that ends early because of the size of its dead letters; or ""."""
    stopped = [p.range for r in reports for p in r.partitions if p.stopped_early == STOPPED_BY_DEAD_LETTERS]
    if not stopped:
        return ""
    ends = {r.topic_partition: r.end for r in plan.ranges}
    left = sum(ends[r.topic_partition] - r.end for r in stopped)
    first, bound_mib = stopped[0], MAX_DEAD_LETTER_BYTES >> 20
    return (
        f"The run ended early in {plural(len(stopped), 'partition')}: its dead letters reached {bound_mib} MiB,"
        f" the limit of one run. {plural(left, 'offset')} of its plan {agreeing(left, 'are')} left for the next run,"
        f" which continues at {first.topic_partition}@{first.end}. Check the dead letter queue and fix the producer."
    )


def failed(name: str, run_id: str, started_ms: int, error: ConnectError, phases_ms: dict[str, int]) -> RunReport:
    """The report of a run that ended with `error`."""
    return RunReport(
        connector=name,
        run_id=run_id,
        status="failed",
        started_ms=started_ms,
        ended_ms=now_ms(),
        phases_ms=dict(phases_ms),
        error=error.to_json(),
    )


def end_of(report: RunReport) -> dict[str, Any]:
    """What sensors learn of a run that found nothing to copy."""
    return {
        "run_id": report.run_id,
        "status": report.status,
        "started_ms": report.started_ms,
        "ended_ms": report.ended_ms,
        "records": report.records,
        **({"lag": report.lag.to_json()} if report.lag else {}),
    }


MOST_CHARACTERS = 4000
"""Of an error's text in the runs topic: pages show it, the log has all of it."""


def failed_end_of(
    run_id: str, started_ms: int, error: BaseException, origin: Mapping[str, str]
) -> dict[str, Any] | None:
    """What sensors and pages learn of a failed run; None: nothing.

    They learn nothing if Kafka or another server did not answer, because that would take its time here too; if a newer
    run has taken over; and if the run was stopped. `is_final` says that nobody tries again: another try would fail in
    the same way, or the Airflow task has none left.
    """
    if not isinstance(error, ConnectError) or isinstance(error, (FencedError, StoppedError, UnavailableError)):
        return None
    return {
        "run_id": run_id,
        "status": "failed",
        "started_ms": started_ms,
        "ended_ms": now_ms(),
        "error_code": error.code,
        "message": error.message[:MOST_CHARACTERS],
        "suggestion": error.suggestion[:MOST_CHARACTERS],
        "origin": dict(origin),
        "is_final": not error.retriable or not origin or origin.get(LAST_TRY) == "true",
    }


def now_ms() -> int:
    """Wall clock, milliseconds since the epoch."""
    return time.time_ns() // 1_000_000
