"""One run: where its time went, whether its counts add up, and what it wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow_connect.documents.run_detail import RunDetail, TaskRow
from airflow_connect.runtime.reporting.texts import format_count, plural
from airflow_connect.ui.overview.model import Run
from airflow_connect.ui.overview.watching import Seen
from airflow_connect.ui.pages.calls import Call, connector_of
from airflow_connect.ui.pages.charts import Span, spans
from airflow_connect.ui.pages.rendering import duration, rate, render
from airflow_connect.ui.pages.views.running import EVERY_S, Running, running_of
from airflow_connect.ui.pages.views.tables import in_table

if TYPE_CHECKING:
    from airflow_connect.ui.overview.details import FullRun

PHASES = {
    "fence": "Keep every earlier run from committing", "recover": "Publish what an earlier run had promised",
    "sweep": "Remove what failed runs left", "plan": "Decide what to copy", "copy": "Copy with Spark",
    "audit": "Compare the counts", "manifest": "Record every file: the point of no return",
    "publish": "Make the files visible", "commit": "Commit the offsets",
}  # fmt: skip
REST, WHAT_RESTS = "other", "Reading the configuration, Spark's start, and the commit, which stores this report"
MOST_NOTES = 6
"""That are shown at once; the others after a click."""
SKEW = 2.0
"""A task is called slow if it takes this many times as long as the median."""


def page(call: Call) -> str | tuple[int, str]:
    """The page."""
    seen = call.seen()
    connector = connector_of(call, seen)
    run_id = call.query.get("run", "")
    known = next((run for run in (connector.runs if connector else ()) if run.run_id == run_id), None)
    full = call.console.run(call.conn_id, call.query.get("name", ""), run_id, is_known=known is not None)
    run = (full.value.run if full.value else None) or known
    running = running_of(connector) if connector and connector.copying == run_id and run is None else None
    detail = full.value.detail if full.value else None
    is_missing = run is None and running is None and seen.value is not None and full.value is not None
    is_asked = bool(call.query.get("asked"))
    html = render(
        "run.html",
        **call.shell(f"Run {run_id}", "connectors", seen),
        name=call.query.get("name", ""),
        run_id=run_id,
        run=run,
        report=full.value.report if full.value else {},
        detail=detail,
        full=full,
        is_gone=is_missing and not is_asked,
        is_asked=is_missing and is_asked,
        running=running,
        every=EVERY_S if is_missing and is_asked else _every(full, running),
        phases=_phases(run),
        tasks=_tasks(detail),
        most_notes=MOST_NOTES,
        in_table=in_table,
        of_others=run is not None and any(table.run_id != run.run_id for table in run.tables),
        skew=skew_of(detail),
    )
    return (404, html) if is_missing and not is_asked else html


def _every(full: Seen[FullRun], running: Running | None) -> int:
    """Seconds until the script looks again; 0: never, because a run that has ended does not change."""
    if running is not None:
        return EVERY_S
    if full.value is None:
        return 5 if full.problem else 1
    return 0 if full.value.run is not None else 5


def _phases(run: Run | None) -> object:
    """The phases one after the other, as they were measured."""
    rows, now = [], 0.0
    for name, ms in (run.phases_ms if run else {}).items():
        told = f"{name}: {duration(ms)}. {PHASES.get(name, '')}"
        rows.append(Span(f"{name}  {duration(ms)}", now, now + ms, told, "busy" if name == "copy" else "ok"))
        now += ms
    rest = run.duration_ms - now if run and rows else 0
    if rest > 0:
        rows.append(
            Span(f"{REST}  {duration(rest)}", now, now + rest, f"{REST}: {duration(rest)}. {WHAT_RESTS}", "quiet")
        )
    return spans(rows, "Phases of the run")


def _tasks(detail: RunDetail | None) -> object:
    """The tasks by their own clocks."""
    rows = detail.tasks if detail else ()
    median = _median(rows)
    return spans(
        [
            Span(
                f"task {row.task} {row.host[:14]}",
                row.started_ms,
                row.ended_ms,
                f"task {row.task} on {row.host}, attempt {row.attempt + 1}: {plural(row.records, 'record')},"
                f" {duration(row.ended_ms - row.started_ms)}, {rate(_rate(row))}",
                "warn" if _is_slow(row, median) else "busy",
            )
            for row in rows
        ],
        "Tasks of the run",
    )


def skew_of(detail: RunDetail | None) -> str:
    """A sentence if one task took much longer than the others; or ""."""
    rows = detail.tasks if detail else ()
    median = _median(rows)
    slow = [row for row in rows if _is_slow(row, median)]
    if not slow:
        return ""
    worst = max(slow, key=lambda row: row.ended_ms - row.started_ms)
    longer = (worst.ended_ms - worst.started_ms) / median
    mean = sum(row.records for row in rows) / len(rows)
    more = f" It had {format_count(worst.records)} records, the mean is {format_count(round(mean))}."
    return f"Task {worst.task} took {longer:.1f} times as long as the median task.{more}"


def _is_slow(row: TaskRow, median: float) -> bool:
    return median > 0 and row.ended_ms - row.started_ms >= SKEW * median and row.ended_ms - row.started_ms > 1000


def _median(rows: tuple[TaskRow, ...]) -> float:
    from statistics import median

    return median(row.ended_ms - row.started_ms for row in rows) if len(rows) > 1 else 0.0


def _rate(row: TaskRow) -> float | None:
    took = row.ended_ms - row.started_ms
    return row.records * 1000 / took if took > 0 else None
