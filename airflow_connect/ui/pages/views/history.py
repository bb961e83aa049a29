"""The history of a connector as charts over an hour, a day, a week or a month, with their table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from airflow_connect.documents.run import DONE, EMPTY
from airflow_connect.documents.run_lag import HOUR_MS
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, plural
from airflow_connect.ui.overview.model import Connector, Run
from airflow_connect.ui.pages.rendering import at, duration
from airflow_connect.ui.pages.time_charts import DAY, HOUR, Axis, Mark, Unit, bars, line

SPANS: Mapping[str, int] = {"hour": HOUR, "day": DAY, "week": 7 * DAY, "month": 30 * DAY}
LEGEND_OF_RECORDS = (("ok", "written"), ("warn", "dead letters"), ("quiet", "dropped or left"), ("bad", "failed run"))
_BEFORE, _COPY, _PUBLISH = ("fence", "recover", "sweep", "plan"), ("copy",), ("audit", "manifest", "publish", "commit")
LEGEND_OF_PHASES = (
    ("quiet", "before the copy"), ("busy", "copy"), ("ok", "publish and commit"), ("warn", "start and rest"),
)  # fmt: skip
_Href = Callable[[Run], str]


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart.

    Attributes:
        caption: what it shows, in a sentence.
        chart: the drawing.
        legend: kind and word of each colour; () if there is one only.
    """

    caption: str
    chart: Markup
    legend: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Past:
    """What a page shows.

    Attributes:
        span: the chosen key of `SPANS`.
        figures: the charts; () if nothing is in the span.
        outside: how many runs of the history lie before the span.
        lag_rows: hour and the lag that runs have found in it, the newest first.
    """

    span: str
    figures: tuple[Figure, ...]
    outside: int
    lag_rows: tuple[tuple[str, int], ...]


def past_of(connector: Connector, now_ms: int, wanted: str, href: _Href) -> Past:
    """The charts of a connector.

    Args:
        connector: with its history.
        now_ms: the end of every chart.
        wanted: a key of `SPANS`; anything else: the shortest one with every run.
        href: the page of a run.
    """
    runs = connector.runs[::-1]
    first_ms = runs[0].started_ms if runs else now_ms
    fitting = (name for name, length in SPANS.items() if now_ms - length <= first_ms)
    span = wanted if wanted in SPANS else next(fitting, "month")
    axis = Axis(now_ms - SPANS[span], now_ms)
    inside = [run for run in runs if axis.first_ms <= run.started_ms <= axis.last_ms]
    figures = [_records(inside, axis, href), _durations(inside, axis, href)] if inside else []
    if any(run.size_bytes for run in inside):
        figures.append(_sizes(inside, axis, href))
    lags = _lag_marks(connector, inside, now_ms, href)
    if len(lags) > 1:
        figures.insert(0, Figure("Records to copy", line(lags, axis, Unit.COUNT, "Records to copy over time")))
    rows = tuple((at(hour * HOUR_MS), most) for hour, most in connector.lag_of_hours[::-1])
    return Past(span, tuple(figures), len(runs) - len(inside), rows)


def _records(runs: Sequence[Run], axis: Axis, href: _Href) -> Figure:
    marks = [Mark(run.started_ms, _kinds(run), _told(run), href(run)) for run in runs]
    return Figure("Records of each run", bars(marks, axis, Unit.COUNT, "Records of each run"), LEGEND_OF_RECORDS)


def _kinds(run: Run) -> tuple[tuple[str, float], ...]:
    if run.status not in (DONE, EMPTY):
        return (("bad", float(max(run.read, 1))),)
    return (("ok", run.records), ("warn", run.dead_lettered), ("quiet", run.filtered + run.left))


def _told(run: Run) -> str:
    result = {DONE: f"{plural(run.records, 'record')} written", EMPTY: "nothing to copy"}.get(run.status, "failed")
    dead = f", {plural(run.dead_lettered, 'dead letter')}" if run.dead_lettered else ""
    dropped = f", {format_count(run.filtered + run.left)} dropped or left" if run.filtered + run.left else ""
    return f"{at(run.started_ms)}: {result}{dead}{dropped}, {duration(run.duration_ms)}"


def _durations(runs: Sequence[Run], axis: Axis, href: _Href) -> Figure:
    marks = []
    for run in runs:
        shares = [sum(run.phases_ms.get(name, 0) for name in names) for names in (_BEFORE, _COPY, _PUBLISH)]
        rest = max(0, run.duration_ms - sum(shares))
        kinds = ("quiet", "busy", "ok", "warn")
        parts = tuple((kind, ms / 1000) for kind, ms in zip(kinds, (*shares, rest), strict=True))
        words = (word for _, word in LEGEND_OF_PHASES)
        told = ", ".join(f"{word} {duration(ms)}" for word, ms in zip(words, (*shares, rest), strict=True) if ms)
        marks.append(
            Mark(run.started_ms, parts, f"{at(run.started_ms)}: {duration(run.duration_ms)}: {told}", href(run))
        )
    return Figure("Duration by phase", bars(marks, axis, Unit.SECONDS, "Duration of each run"), LEGEND_OF_PHASES)


def _sizes(runs: Sequence[Run], axis: Axis, href: _Href) -> Figure:
    marks = [
        Mark(
            run.started_ms,
            (("ok", run.size_bytes),),
            f"{at(run.started_ms)}: {format_bytes(run.size_bytes)} in {plural(run.files, 'file')}",
            href(run),
        )
        for run in runs
    ]
    return Figure("Size of each run", bars(marks, axis, Unit.BYTES, "Size of each run"))


def _lag_marks(connector: Connector, runs: Sequence[Run], now_ms: int, href: _Href) -> list[Mark]:
    """What was to copy: of each run, of each hour before them, and now."""
    measured = [
        Mark(
            run.lag.at_ms,
            (("busy", run.lag.before),),
            f"{at(run.lag.at_ms)}: {format_count(run.lag.before)} to copy when the run began,"
            f" {format_count(run.lag.after)} of these left",
            href(run),
        )
        for run in runs
        if run.lag is not None
    ]
    first_ms = measured[0].at_ms if measured else now_ms
    hours = [
        Mark(
            hour * HOUR_MS + HOUR_MS // 2,
            (("busy", most),),
            f"{at(hour * HOUR_MS)}: at most {format_count(most)} to copy in this hour",
        )
        for hour, most in connector.lag_of_hours
        if (hour + 1) * HOUR_MS <= first_ms
    ]
    if connector.lag is None:
        return [*hours, *measured]
    return [*hours, *measured, Mark(now_ms, (("busy", connector.lag),), f"Now: {format_count(connector.lag)} to copy")]
