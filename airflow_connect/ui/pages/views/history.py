"""The history of a connector as charts over an hour, a day, a week or a month, with their table."""

from __future__ import annotations

from collections import Counter
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
_AGE, _SKEW = "Age of the oldest record to copy", "Slowest task, as a multiple of the median task"
LEAST_TASK_MS = 1000
"""Tasks that end sooner are not compared: the start of a process decides which one is the slowest."""
_REASON_KINDS = ("warn", "busy", "bad")
"""Of the most frequent reasons; the others are summed up."""
_OTHERS, _NOT_KEPT = "other reasons", "reason not kept"
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
        ahead: how many lie after it, because the clock of their host is ahead.
        lag_rows: hour and the lag that runs have found in it, the newest first.
        reason_rows: run, its address, stage, error and number of failed records, the newest run first.
    """

    span: str
    figures: tuple[Figure, ...]
    outside: int
    ahead: int
    lag_rows: tuple[tuple[str, int], ...]
    reason_rows: tuple[tuple[str, str, str, str, int], ...]


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
    if any(run.reasons or run.dead_lettered for run in inside):
        figures.append(_reasons(inside, axis, href))
    if skews := _skew_marks(inside, href):
        figures.append(Figure(_SKEW, line(skews, axis, Unit.TIMES, _SKEW)))
    ages = _age_marks(connector, inside, now_ms, href)
    if len(ages) > 1:
        figures.insert(0, Figure(_AGE, line(ages, axis, Unit.SECONDS, _AGE)))
    lags = _lag_marks(connector, inside, now_ms, href)
    if len(lags) > 1:
        figures.insert(0, Figure("Records to copy", line(lags, axis, Unit.COUNT, "Records to copy over time")))
    rows = tuple((at(hour * HOUR_MS), most) for hour, most in connector.lag_of_hours[::-1])
    reasons = tuple(
        (at(run.started_ms), href(run), _stage(stage), error, count)
        for run in inside[::-1]
        for stage, error, count in run.reasons
    )
    ahead = sum(run.started_ms > axis.last_ms for run in runs)
    return Past(span, tuple(figures), len(runs) - len(inside) - ahead, ahead, rows, reasons)


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


def _age_marks(connector: Connector, runs: Sequence[Run], now_ms: int, href: _Href) -> list[Mark]:
    """How long the oldest record had waited: when each run began, and now."""
    marks = [
        Mark(
            run.lag.at_ms,
            (("busy", age_ms / 1000),),
            f"{at(run.lag.at_ms)}: the oldest record had waited {duration(age_ms)} when the run began",
            href(run),
        )
        for run in runs
        if run.lag is not None and (age_ms := run.lag.age_ms) is not None
    ]
    if connector.lag == 0:
        return [*marks, Mark(now_ms, (("busy", 0.0),), "Now: no record waits")]
    if connector.oldest_ms is None:
        return marks
    age_ms = max(0, now_ms - connector.oldest_ms)
    return [*marks, Mark(now_ms, (("busy", age_ms / 1000),), f"Now: the oldest record waits for {duration(age_ms)}")]


def _skew_marks(runs: Sequence[Run], href: _Href) -> list[Mark]:
    """Of each run with several tasks that was not over at once, how much longer the slowest one took."""
    return [
        Mark(
            run.started_ms,
            (("busy", skew),),
            f"{at(run.started_ms)}: the slowest of {run.tasks.number} tasks took {duration(run.tasks.slowest_ms)},"
            f" {skew:.1f} times the median ({duration(run.tasks.median_ms)})",
            href(run),
        )
        for run in runs
        if run.tasks is not None and run.tasks.slowest_ms >= LEAST_TASK_MS and (skew := run.tasks.skew) is not None
    ]


def _reasons(runs: Sequence[Run], axis: Axis, href: _Href) -> Figure:
    """Failed records of each run by reason: the most frequent ones of all runs that are shown, and the others."""
    totals = Counter[str]()
    for run in runs:
        totals.update(_reasons_of(run))
    named = [reason for reason, _ in totals.most_common() if reason != _NOT_KEPT][: len(_REASON_KINDS)]
    kinds = dict(zip(named, _REASON_KINDS, strict=False))
    legend = [(kind, reason) for reason, kind in kinds.items()]
    if others := [reason for reason in totals if reason not in kinds]:
        legend.append(("quiet", others[0] if len(others) == 1 else _OTHERS))
    marks = []
    for run in runs:
        found = _reasons_of(run)
        parts = Counter[str]()
        for reason, count in found.items():
            parts[kinds.get(reason, "quiet")] += count
        told = ", ".join(f"{format_count(count)} {reason}" for reason, count in found.most_common()) or "none"
        shown = tuple((kind, float(parts[kind])) for kind in (*_REASON_KINDS, "quiet"))
        marks.append(Mark(run.started_ms, shown, f"{at(run.started_ms)}: failed records: {told}", href(run)))
    caption = "Failed records of each run by reason"
    return Figure(caption, bars(marks, axis, Unit.COUNT, caption), tuple(legend))


def _reasons_of(run: Run) -> Counter[str]:
    found = Counter[str]()
    for stage, error, count in run.reasons:
        found[f"{_stage(stage)} {error}".strip()] += count
    if run.dead_lettered > found.total():
        found[_NOT_KEPT] = run.dead_lettered - found.total()
    return found


def _stage(stage: str) -> str:
    """`value converter` for `VALUE_CONVERTER`."""
    return stage.replace("_", " ").lower()
