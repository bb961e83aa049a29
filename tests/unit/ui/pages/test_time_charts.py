"""Charts over time: axes, bars that do not lie on each other, what the marks say, and which runs they show."""

from __future__ import annotations

import re

import pytest

from airflow_connect.documents.run_lag import HOUR_MS, RunLag
from airflow_connect.ui.overview.model import Connector, Run, State
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
        (Unit.BYTES, 1_500_000, ["0", "500 kB", "1.0 MB", "1.5 MB"]),
        (Unit.SECONDS, 0.3, ["0", "0.1 s", "0.2 s", "0.3 s"]),
        (Unit.SECONDS, 400, ["0", "2 min", "4 min", "6 min", "8 min"]),
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


def test_what_a_connector_has_done_is_told_run_by_run() -> None:
    lag = RunLag(120, 7, NOW_MS - 30 * MINUTE)
    done = run(1, 30 * MINUTE, dead_lettered=4, filtered=2, size_bytes=2048, files=3, lag=lag)
    failed = run(2, 10 * MINUTE, status="failed", records=0)
    hours = ((NOW_MS // HOUR_MS - 3, 900), (NOW_MS // HOUR_MS - 1, 120))
    past = past_of(connector(done, failed, lag=40, lag_of_hours=hours), NOW_MS, "day", href)
    shown = {figure.caption: titles(figure.chart) for figure in past.figures}
    assert list(shown) == ["Records to copy", "Records of each run", "Duration by phase", "Size of each run"]
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
    assert past.lag_rows[0][1] == 120
    assert 'href="/run?run=r1"' in past.figures[1].chart


def test_connector_without_runs_in_the_span_has_no_charts() -> None:
    assert past_of(connector(run(1, 3 * DAY)), NOW_MS, "hour", href).figures == ()
