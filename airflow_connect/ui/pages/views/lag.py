"""Lag over time: only what runs have measured, and what Kafka says now."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup

from airflow_connect.documents.run_lag import HOUR_MS, KEPT_HOURS, LagOfHour
from airflow_connect.runtime.reporting.texts import format_count, plural
from airflow_connect.ui.overview.model import Connector, Run
from airflow_connect.ui.pages.charts import Bar, timeline
from airflow_connect.ui.pages.rendering import at

HOURS_OF_A_POINT = 3
"""Points of the small chart: more would be closer to each other than a pixel and a half."""


def week(connector: Connector, now_ms: int, *, is_large: bool = False) -> Markup:
    """The last seven days; empty if no run of a sink has told its lag."""
    return _drawn(connector.lag_of_hours, connector.lag, now_ms // HOUR_MS, is_large)


def told(connector: Connector, now_ms: int) -> str:
    """The chart in words."""
    return _told(_of_week(connector.lag_of_hours, now_ms // HOUR_MS), connector.lag)


@lru_cache(maxsize=4096)
def _drawn(every: tuple[LagOfHour, ...], lag: int | None, now: int, is_large: bool) -> Markup:
    """Drawn once in an hour, unless the lag changes: a list has hundreds of these. `now`: the hour."""
    hours = _of_week(every, now)
    if not hours:
        return Markup("")
    size = 1 if is_large else HOURS_OF_A_POINT
    grouped: dict[int, int] = {}
    for hour, most in hours:
        grouped[hour // size] = max(most, grouped.get(hour // size, 0))
    end = now + 1.0
    points = [(min((place + 0.5) * size, end), float(most)) for place, most in grouped.items()]
    if lag is not None:
        points.append((end, float(lag)))
    return timeline(points, (end - KEPT_HOURS, end), _told(hours, lag), is_large=is_large)


def _of_week(every: tuple[LagOfHour, ...], now: int) -> list[LagOfHour]:
    return [(hour, most) for hour, most in every if now - hour < KEPT_HOURS]


def _told(hours: list[LagOfHour], lag: int | None) -> str:
    if not hours:
        return ""
    worst, most = max(hours, key=lambda known: (known[1], known[0]))
    now = "" if lag is None else f", now {format_count(lag)}"
    return (
        f"To copy, as runs found it in {plural(len(hours), 'hour')} of the last 7 days: at most {format_count(most)},"
        f" in the hour of {at(worst * HOUR_MS)}{now}"
    )


def lag_bar(run: Run, href: str) -> Bar:
    """What a run has found and left, as a bar that leads to the run."""
    if run.lag is None:
        return Bar(0, f"{at(run.started_ms)}: its lag was not recorded", "quiet", href)
    found, left = format_count(run.lag.before), format_count(run.lag.after)
    kind = "warn" if run.lag.after else "ok"
    return Bar(run.lag.before, f"{at(run.lag.at_ms)}: {found} to copy when it began, {left} of these left", kind, href)
