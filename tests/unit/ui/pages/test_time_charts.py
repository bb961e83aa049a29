"""Charts over time: axes, bars that do not lie on each other, what the marks say, and which runs they show."""

from __future__ import annotations

import re

import pytest

from airflow_connect.documents.run_lag import HOUR_MS, RunLag
from airflow_connect.ui.overview.model import Connector, Run, State, TaskTimes, run_of
from airflow_connect.ui.pages.time_charts import DAY, HOUR, MINUTE, Axis, Mark, Unit, bars, line
from airflow_connect.ui.pages.views.history import past_of

NOW_MS = 1_795_000_000_000 // HOUR_MS * HOUR_MS  # 2026-11-18, a full hour


def run(number: int, ago_ms: int, **more: object) -> Run:
    started_ms = NOW_MS - ago_ms
    counts = {"records": 100, "phases_ms": {"plan": 200, "copy": 1500, "commit": 100}, **more}
    return Run(f"r{number}", str(counts.pop("status", "done")), started_ms, started_ms + 2000, **counts)  # type: ignore[arg-type]


def connector(*runs: Run, **more: object) -> Connector:
    newest_first = tuple(sorted(runs, key=lambda each: -each.started_ms))
    return Connector("orders", "sink", None, State.CURRENT, runs=newest_first, **more)  # type: ignore[arg-type]


def titles(chart: str) -> list[str]:
    return re.findall("<title>(.*?)</title>", chart)


def labels(chart: str) -> list[str]:
    return re.findall("<text[^>]*>(.*?)</text>", chart)


def href(of: Run) -> str:
    return f"/run?run={of.run_id}"


@pytest.mark.parametrize(
    ("unit", "most", "shown"),
    [
        (Unit.COUNT, 3, ["0", "1", "2", "3"]),
        (Unit.COUNT, 87_000, ["0", "50,000", "100,000"]),
        (Unit.COUNT, 2_400_000, ["0", "1 M", "2 M", "3 M"]),
        (Unit.COUNT, 9_000_000_000, ["0", "5,000 M", "10,000 M"]),
        (Unit.BYTES, 1_500_000, ["0", "500 kB", "1.0 MB", "1.5 MB"]),
        (Unit.SECONDS, 0.3, ["0", "0.1 s", "0.2 s", "0.3 s"]),
        (Unit.SECONDS, 400, ["0", "2 min", "4 min", "6 min", "8 min"]),
        (Unit.SECONDS, 3 * 86_400, ["0", "24 h", "2 days", "3 days"]),
        (Unit.SECONDS, 20 * 86_400, ["0", "5 days", "10 days", "15 days", "20 days"]),
        (Unit.TIMES, 2.4, ["0", "1\xd7", "2\xd7", "3\xd7"]),
        (Unit.COUNT, 0, ["0", "1"]),
    ],
)
def test_axis_of_values_has_round_numbers(unit: Unit, most: float, shown: list[str]) -> None:
    chart = bars([Mark(NOW_MS - HOUR // 2, (("ok", most),), "m")], Axis(NOW_MS - HOUR, NOW_MS), unit, "c")
    assert labels(chart)[: len(shown)] == shown
    assert not labels(chart)[len(shown)].endswith(("s", "B"))


def test_axis_of_time_has_hours_and_at_midnight_the_day() -> None:
    found = [shown for _, shown in Axis(NOW_MS - DAY, NOW_MS).ticks()]
    assert len(found) in (4, 5) and sum(bool(re.fullmatch(r"\d\d [A-Z][a-z]{2}", shown)) for shown in found) == 1
    assert all(re.fullmatch(r"\d\d [A-Z][a-z]{2}", shown) for _, shown in Axis(NOW_MS - 30 * DAY, NOW_MS).ticks())


def test_bars_that_would_lie_on_each_other_are_added_up() -> None:
    marks = [Mark(NOW_MS - n * MINUTE, (("ok", 10), ("warn", 1)), f"run {n}", f"/{n}") for n in range(99, -1, -1)]
    chart = bars(marks, Axis(NOW_MS - 7 * DAY, NOW_MS), Unit.COUNT, "c")
    counted = [re.match(r"(\d+) runs, .* UTC: ([\d,]+) in all", title) for title in titles(chart)]
    assert sum(int(found[1]) if found else 1 for found in counted) == 100
    assert sum(int(found[2].replace(",", "")) if found else 11 for found in counted) == 1100
    near = bars(marks[-20:], Axis(NOW_MS - HOUR, NOW_MS), Unit.COUNT, "c")
    assert titles(near)[0] == "run 19" and near.count("<a href=") == 20


def test_marks_outside_of_the_axis_are_not_drawn_and_text_is_escaped() -> None:
    marks = [Mark(NOW_MS - 2 * HOUR, (("ok", 5),), "old"), Mark(NOW_MS, (("busy", 1),), '<b>"now"')]
    for draw in (bars, line):
        assert titles(draw(marks, Axis(NOW_MS - HOUR, NOW_MS), Unit.COUNT, "c")) == ["&lt;b&gt;&#34;now&#34;"]


@pytest.mark.parametrize(
    ("oldest", "span"), [(HOUR // 2, "hour"), (5 * HOUR, "day"), (3 * DAY, "week"), (90 * DAY, "month")]
)
def test_shortest_span_with_every_run_is_shown(oldest: int, span: str) -> None:
    found = past_of(connector(run(1, oldest), run(2, MINUTE)), NOW_MS, "", href)
    assert (found.span, found.outside) == (span, 1 if oldest == 90 * DAY else 0)
    assert past_of(connector(run(1, oldest)), NOW_MS, "hour", href).outside == (0 if span == "hour" else 1)


def test_run_of_a_host_whose_clock_is_ahead_is_counted_apart() -> None:
    found = past_of(connector(run(1, 2 * HOUR), run(2, -DAY)), NOW_MS, "hour", href)
    assert (found.outside, found.ahead, found.figures) == (1, 1, ())


def test_what_a_connector_has_done_is_told_run_by_run() -> None:
    lag = RunLag(120, 7, NOW_MS - 30 * MINUTE, NOW_MS - 95 * MINUTE)
    reasons = (("VALUE_CONVERTER", "data.json_type", 3), ("TASK_PUT", "KeyError", 1))
    tasks = TaskTimes(4, 1000, 2900)
    short = TaskTimes(4, 20, 900)
    done = run(
        1, 30 * MINUTE, dead_lettered=4, filtered=2, size_bytes=2048, files=3, lag=lag, reasons=reasons, tasks=tasks
    )
    failed = run(2, 10 * MINUTE, status="failed", records=0, tasks=short)
    hours = ((NOW_MS // HOUR_MS - 3, 900), (NOW_MS // HOUR_MS - 1, 120))
    of = connector(done, failed, lag=40, lag_of_hours=hours, oldest_ms=NOW_MS - 3 * HOUR)
    past = past_of(of, NOW_MS, "day", href)
    shown = {figure.caption: titles(figure.chart) for figure in past.figures}
    assert list(shown) == [
        "Records to copy", "Age of the oldest record to copy", "Records of each run", "Duration by phase",
        "Size of each run", "Failed records of each run by reason", "Slowest task, as a multiple of the median task",
    ]  # fmt: skip
    assert [title.partition(": ")[2] for title in shown["Records of each run"]] == [
        "100 records written, 4 dead letters, 2 dropped or left, 2.0 s", "failed, 2.0 s",
    ]  # fmt: skip
    assert shown["Duration by phase"][0].endswith(
        ": 2.0 s: before the copy 0.20 s, copy 1.5 s, publish and commit 0.10 s, start and rest 0.20 s"
    )
    assert shown["Size of each run"][0].endswith(": 2.0 kB in 3 files")
    assert [title.partition(": ")[2] for title in shown["Records to copy"]] == [
        "at most 900 to copy in this hour", "120 to copy when the run began, 7 of these left", "40 to copy",
    ]  # fmt: skip
    assert [title.partition(": ")[2] for title in shown["Age of the oldest record to copy"]] == [
        "the oldest record had waited 1 h 05 min when the run began", "the oldest record waits for 3 h 00 min",
    ]  # fmt: skip
    assert [title.partition(": ")[2] for title in shown["Failed records of each run by reason"]] == [
        "failed records: 3 value converter data.json_type, 1 task put KeyError", "failed records: none",
    ]  # fmt: skip
    (skew,) = shown["Slowest task, as a multiple of the median task"]
    assert skew.endswith(": the slowest of 4 tasks took 2.9 s, 2.9 times the median (1.0 s)")
    assert past.lag_rows[0][1] == 120
    assert [row[2:] for row in past.reason_rows] == [
        ("value converter", "data.json_type", 3), ("task put", "KeyError", 1),
    ]  # fmt: skip
    assert all('href="/run?run=r1"' in figure.chart for figure in past.figures)


def test_connector_without_runs_in_the_span_has_no_charts() -> None:
    assert past_of(connector(run(1, 3 * DAY)), NOW_MS, "hour", href).figures == ()


def test_reasons_beyond_the_most_frequent_three_are_summed_up_and_those_not_kept_are_named() -> None:
    many = tuple(("TASK_PUT", f"error.{name}", count) for name, count in zip("abcde", (50, 40, 30, 2, 1), strict=True))
    old = run(1, 40 * MINUTE, dead_lettered=7)
    figure = past_of(connector(run(2, 20 * MINUTE, reasons=many), old), NOW_MS, "hour", href).figures[-1]
    assert figure.legend == (
        ("warn", "task put error.a"), ("busy", "task put error.b"), ("bad", "task put error.c"),
        ("quiet", "other reasons"),
    )  # fmt: skip
    assert titles(figure.chart)[0].endswith("failed records: 7 reason not kept")
    assert titles(figure.chart)[1].endswith("2 task put error.d, 1 task put error.e")
    (only,) = past_of(connector(old), NOW_MS, "hour", href).figures[-1].legend
    assert only == ("quiet", "reason not kept")


def test_age_ends_at_zero_if_nothing_waits_and_is_not_drawn_if_it_was_never_measured() -> None:
    measured = run(1, 30 * MINUTE, lag=RunLag(9, 0, NOW_MS - 30 * MINUTE, NOW_MS - HOUR))
    figures = {f.caption: f.chart for f in past_of(connector(measured, lag=0), NOW_MS, "hour", href).figures}
    assert titles(figures["Age of the oldest record to copy"])[-1] == "Now: no record waits"
    never = run(1, 30 * MINUTE, lag=RunLag(9, 0, NOW_MS - 30 * MINUTE))
    assert "Age" not in str([f.caption for f in past_of(connector(never, lag=3), NOW_MS, "hour", href).figures])


def test_times_of_tasks_and_reasons_are_read_from_entries_of_every_release() -> None:
    entry = {"run_id": "r", "status": "done", "started_ms": 0, "ended_ms": 9000}
    assert (run_of(entry).tasks, run_of(entry).reasons) == (None, ())
    rows = [[n, 0, "host", 1000, 1000 + took, 1, 1, "a later column"] for n, took in enumerate((400, 1000, 300))]
    found = run_of({**entry, "detail": {"tasks": rows, "reasons": [["TASK_PUT", "KeyError", 2]]}})
    assert (found.tasks, found.reasons) == (TaskTimes(3, 400, 1000), (("TASK_PUT", "KeyError", 2),))
    assert found.tasks is not None and found.tasks.skew == 2.5
    assert TaskTimes(1, 400, 400).skew is None and TaskTimes(2, 0, 5).skew is None
