"""Lag over time: only what runs have measured, and what Kafka says now."""

from __future__ import annotations

from functools import lru_cache

from markupsafe import Markup

from airflow_connect.documents.run_lag import HOUR_MS, KEPT_HOURS, LagOfHour
from airflow_connect.runtime.reporting.texts import format_count, plural
from airflow_connect.ui.overview.model import Connector
from airflow_connect.ui.pages.charts import timeline
from airflow_connect.ui.pages.rendering import at

HOURS_OF_A_POINT = 3
"""Points of the small chart: more would be closer to each other than a pixel and a half."""


def week(connector: Connector, now_ms: int) -> Markup:
    """The last seven days; empty if no run of a sink has told its lag."""
    return _drawn(connector.lag_of_hours, connector.lag, now_ms // HOUR_MS)


@lru_cache(maxsize=4096)
def _drawn(every: tuple[LagOfHour, ...], lag: int | None, now: int) -> Markup:
    """Drawn once in an hour, unless the lag changes: a list has hundreds of these. `now`: the hour."""
    hours = _of_week(every, now)
    if not hours:
        return Markup("")
    size = HOURS_OF_A_POINT
    grouped: dict[int, int] = {}
    for hour, most in hours:
        grouped[hour // size] = max(most, grouped.get(hour // size, 0))
    end = now + 1.0
    points = [(min((place + 0.5) * size, end), float(most)) for place, most in grouped.items()]
    if lag is not None:
        points.append((end, float(lag)))
    return timeline(points, (end - KEPT_HOURS, end), _told(hours, lag))


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
