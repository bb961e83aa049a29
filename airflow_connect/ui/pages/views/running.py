"""A run that has not ended: how far it is, as its driver has told it last."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from markupsafe import Markup

from airflow_connect.documents.run_progress import RunProgress, TaskProgress
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, plural
from airflow_connect.ui.overview.model import Connector
from airflow_connect.ui.pages.charts import Span, meter, spans
from airflow_connect.ui.pages.rendering import duration, rate, span_of

EVERY_S = 2
"""How often the script looks at a run that has not ended."""
SILENT_S = 120.0
"""A driver tells something every 30 seconds at least, while its tasks do."""


@dataclass(frozen=True, slots=True)
class Running:
    """A run that has not ended.

    Attributes:
        run_id: of the run.
        told: a sentence about how far it is.
        said: what a screen reader says when it changes; seldom enough.
        bar: the share as a bar, or "".
        phases: the phases so far, the last one still growing.
        tasks: the tasks, by the driver's clock.
        silent: since when nothing was told, as text, if that is too long; or "".
        origin: who started it.
    """

    run_id: str
    told: str
    said: str
    bar: Markup | str = ""
    phases: Markup | str = ""
    tasks: Markup | str = ""
    silent: str = ""
    origin: Mapping[str, str] = field(default_factory=dict)


def running_of(connector: Connector) -> Running | None:
    """The run of a connector that copies now; None: there is none."""
    if not connector.copying:
        return None
    progress = connector.progress
    if progress is None:
        told = "The run has begun to copy. How far it is appears here after some seconds, if it takes that long."
        return Running(
            connector.copying, told, f"{connector.name} is copying", Markup(""), Markup(""), Markup(""), "", {}
        )
    now_ms = time.time_ns() // 1_000_000
    silent_s = (now_ms - progress.at_ms) / 1000
    share = progress.share
    return Running(
        progress.run_id,
        _told(progress, "written" if connector.kind == "source" else "read"),
        f"{connector.name}: {progress.phase}" + ("" if share is None else f", {int(share * 10) * 10} %"),
        "" if share is None else meter(share, 1.0, f"{share:.0%} of the phase {progress.phase}", "busy"),
        _phases(progress, max(now_ms, progress.at_ms) if silent_s < SILENT_S else progress.at_ms),
        _tasks(progress),
        span_of(silent_s) if silent_s >= SILENT_S else "",
        dict(progress.origin),
    )


def _told(progress: RunProgress, did: str) -> str:
    unit = "files" if progress.phase == "publish" else "records"
    if progress.phase not in ("copy", "publish"):
        return f"The run is in the phase {progress.phase}."
    done = format_count(progress.done)
    what = f"{done} {unit}" if not progress.total else f"{done} of {format_count(progress.total)} {unit}"
    size = sum(task.size_bytes for task in progress.tasks)
    read = f", {format_bytes(size)} {did}" if size and progress.phase == "copy" else ""
    if progress.phase == "copy" and progress.parts_total:
        read += f"; {format_count(progress.parts_done)} of {format_count(progress.parts_total)} {progress.parts_what}"
    left_s = _left_s(progress)
    left = f" About {span_of(left_s)} of copying left, at the speed so far." if left_s is not None else ""
    word = "Published" if progress.phase == "publish" else "Copied"
    return f"{word} {what}{read}.{left}"


def _left_s(progress: RunProgress) -> float | None:
    if progress.phase != "copy" or not (progress.total and progress.done and progress.tasks):
        return None
    took_s = (progress.at_ms - min(task.first_ms for task in progress.tasks)) / 1000
    return took_s * (progress.total - progress.done) / progress.done if took_s >= 1 else None


def _phases(progress: RunProgress, until_ms: int) -> Markup:
    rows, now = [], 0.0
    for name, ms in progress.phases_ms.items():
        rows.append(Span(f"{name}  {duration(ms)}", now, now + ms, f"{name}: {duration(ms)}"))
        now += ms
    so_far = max(0.0, until_ms - progress.started_ms - now)
    shown = duration(so_far)
    rows.append(Span(f"{progress.phase}  {shown}", now, now + so_far, f"{progress.phase}: {shown} so far", "busy"))
    return spans(rows, "Phases of the run so far")


def _tasks(progress: RunProgress) -> Markup:
    return spans([_task(task) for task in progress.tasks], "Tasks of the run so far")


def _task(task: TaskProgress) -> Span:
    took_ms = task.last_ms - task.first_ms
    speed = rate(task.records * 1000 / took_ms) if took_ms >= 1000 else ""
    told = f"task {task.task}, attempt {task.attempt + 1}: {plural(task.records, 'record')}, {duration(took_ms)}"
    label = f"task {task.task}  {format_count(task.records)}"
    return Span(label, task.first_ms, task.last_ms, f"{told}, {speed}" if speed else told, "busy")
