"""Templates, and how numbers and times look on pages."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from airflow_connect.runtime.reporting.texts import format_bytes, format_count, format_seconds, plural


def segment(text: str) -> str:
    """A name as one segment of a path."""
    return quote(text, safe="")


def at(ms: int | None) -> str:
    """`2026-11-23 18:05:10 UTC`."""
    if ms is None:
        return "?"
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):  # outside the years that Python supports
        return f"{ms} ms"


def duration(ms: float | None) -> str:
    """`4 min 05 s`."""
    return "?" if ms is None else format_seconds(max(0.0, ms / 1000))


def span_of(seconds: float) -> str:
    """A length of time in one unit: `40 s`, `5 min`, `3 h`, `12 days`."""
    for limit, size, unit in ((99, 1, "s"), (99 * 60, 60, "min"), (48 * 3600, 3600, "h")):
        if seconds < limit:
            return f"{max(0, round(seconds / size))} {unit}"
    return f"{round(seconds / 86400)} days"


def ago(ms: int | None) -> str:
    """`5 min ago`, or `in 2 min`."""
    if ms is None:
        return "?"
    seconds = time.time() - ms / 1000
    return f"{span_of(seconds)} ago" if seconds >= 0 else f"in {span_of(-seconds)}"


def rate(per_s: float | None) -> str:
    """`52,000/s`."""
    return "" if per_s is None else f"{format_count(round(per_s))}/s" if per_s >= 10 else f"{per_s:.1f}/s"


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The templates; every value is escaped, and a name that a page forgot is an error."""
    made = Environment(
        loader=PackageLoader("airflow_connect.ui.pages"),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        count=format_count, size=format_bytes, at=at, ago=ago, duration=duration, rate=rate, segment=segment,
        plural=plural, span=span_of,
    )  # fmt: skip
    return made


def render(template: str, **values: Any) -> str:
    """A page."""
    return environment().get_template(template).render(**values)
