"""Charts over time as inline SVG: axes with values and dates, a tooltip and a link for each bar.

SVG that the server draws needs no script, prints, follows the theme, and a screen reader reads it: docs/pages.md says
how it compares with a library.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import Enum
from itertools import pairwise

from markupsafe import Markup

from airflow_connect.runtime.reporting.texts import format_bytes, format_count, format_seconds

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
_WIDTH, _HEIGHT = 640, 190
_LEFT, _RIGHT, _TOP, _BOTTOM = 94, 12, 18, 26
_NARROW, _WIDE = 6.0, 26.0
"""Widths of a bar: bars that would be narrower are added up, so that each can be pointed at."""
_TICKS_ACROSS, _TICKS_UP = 5, 4
_STEPS_MS = (
    *(n * MINUTE for n in (5, 10, 15, 30)), *(n * HOUR for n in (1, 3, 6, 12)), *(n * DAY for n in (1, 2, 7)),
)  # fmt: skip


class Unit(Enum):
    """What an axis of values measures: how a value reads, and at which steps its lines may be."""

    COUNT = "count"
    BYTES = "bytes"
    SECONDS = "seconds"
    TIMES = "times"

    def text(self, value: float) -> str:
        """A value as people read it."""
        if not value:
            return "0"
        if self is Unit.BYTES:
            return format_bytes(round(value))
        if self is Unit.SECONDS:
            if value >= 2 * DAY / 1000:
                return f"{value * 1000 / DAY:g} days"
            whole = format_seconds(value).removesuffix(" 00 s").removesuffix(" 00 min")
            return f"{value:g} s" if value < MINUTE / 1000 else whole
        if self is Unit.TIMES:
            return f"{value:g}\N{MULTIPLICATION SIGN}"
        return format_count(round(value))

    def label(self, value: float) -> str:
        """The same for an axis, where millions have no room on a phone."""
        if self is Unit.COUNT and value >= 1_000_000:
            return f"{value / 1_000_000:,g} M"
        return self.text(value)

    def step(self, most: float) -> float:
        """The smallest step that needs at most `_TICKS_UP` lines."""
        wanted = most / _TICKS_UP
        if self is Unit.SECONDS:
            known = (0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 43200, 86400)
            return next((float(step) for step in known if step >= wanted), float(86400 * -(-wanted // 86400)))
        size = 1.0
        while size * 5 < wanted:
            size *= 10
        return next(size * factor for factor in (1, 2, 5) if size * factor >= wanted)


@dataclass(frozen=True, slots=True)
class Axis:
    """The time that a chart shows, in milliseconds since the epoch."""

    first_ms: int
    last_ms: int

    def x(self, at_ms: float) -> float:
        """Where a time is."""
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * (at_ms - self.first_ms) / max(1, self.last_ms - self.first_ms)

    def ticks(self) -> list[tuple[int, str]]:
        """Times of lines and their labels in UTC: hours within days, days otherwise."""
        wanted = (self.last_ms - self.first_ms) / _TICKS_ACROSS
        step = next((step for step in _STEPS_MS if step >= wanted), _STEPS_MS[-1])
        first = -(-self.first_ms // step) * step
        return [(at, _date(at, step)) for at in range(first, self.last_ms + 1, step)]


@dataclass(frozen=True, slots=True)
class Mark:
    """What was measured at one time.

    Attributes:
        at_ms: milliseconds since the epoch.
        parts: kind (class of the colour) and value, from below; of a line only the sum counts.
        title: what a pointer shows and a screen reader reads.
        href: where a click leads, or "".
    """

    at_ms: int
    parts: tuple[tuple[str, float], ...]
    title: str
    href: str = ""

    @property
    def value(self) -> float:
        """The sum of its parts."""
        return sum(value for _, value in self.parts)


def bars(marks: Sequence[Mark], axis: Axis, unit: Unit, label: str) -> Markup:
    """A bar for each mark; those that would lie on each other are added up.

    Args:
        marks: in the order of time; what is outside of the axis is not drawn.
        axis: the time.
        unit: of the values.
        label: what a screen reader reads.
    """
    shown = _added_up([mark for mark in marks if axis.first_ms <= mark.at_ms <= axis.last_ms], axis, unit)
    scale = _Scale.of(max((mark.value for mark in shown), default=0), unit)
    places = [axis.x(mark.at_ms) for mark in shown]
    body = [_frame(axis, scale)]
    for place, (mark, x) in enumerate(zip(shown, places, strict=True)):
        before = x - places[place - 1] if place else _WIDE
        after = places[place + 1] - x if place + 1 < len(shown) else _WIDE
        body.append(_bar(mark, x, max(_NARROW - 2, min(_WIDE, before, after) - 2), scale))
    return _svg(label, body)


def line(marks: Sequence[Mark], axis: Axis, unit: Unit, label: str) -> Markup:
    """A dot for each mark, joined by a line: between two dots nothing was measured."""
    shown = [mark for mark in marks if axis.first_ms <= mark.at_ms <= axis.last_ms]
    scale = _Scale.of(max((mark.value for mark in shown), default=0), unit)
    at = [(axis.x(mark.at_ms), scale.y(mark.value)) for mark in shown]
    # Numbers only, so there is nothing to escape.
    joined = Markup('<polyline points="{}"></polyline>').format(Markup(" ".join(f"{x:.1f},{y:.1f}" for x, y in at)))
    is_dense = len(at) > 1 and (at[-1][0] - at[0][0]) / (len(at) - 1) < _NARROW
    dots = [_linked(mark, _dot(x, y, 2 if is_dense else 4)) for mark, (x, y) in zip(shown, at, strict=True)]
    return _svg(label, [_frame(axis, scale), joined, *dots])


@dataclass(frozen=True, slots=True)
class _Scale:
    top: float
    step: float
    unit: Unit

    @classmethod
    def of(cls, most: float, unit: Unit) -> _Scale:
        step = unit.step(most or 1)
        return cls(step * max(1, -(-most // step)), step, unit)

    def y(self, value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * value / self.top

    def ticks(self) -> list[float]:
        return [self.step * n for n in range(round(self.top / self.step) + 1)]


def _added_up(marks: Sequence[Mark], axis: Axis, unit: Unit) -> list[Mark]:
    """Marks whose bars would overlap, as one: the sums of their parts."""
    groups: dict[int, list[Mark]] = {}
    places = [axis.x(mark.at_ms) for mark in marks]
    if all(after - before >= _NARROW for before, after in pairwise(places)):
        return list(marks)
    for mark, x in zip(marks, places, strict=True):
        groups.setdefault(int((x - _LEFT) // (2 * _NARROW)), []).append(mark)
    return [group[0] if len(group) == 1 else _sum(group, unit) for group in groups.values()]


def _sum(group: Sequence[Mark], unit: Unit) -> Mark:
    parts: dict[str, float] = {}
    for kind, value in (part for mark in group for part in mark.parts):
        parts[kind] = parts.get(kind, 0) + value
    begin, end = _minute(group[0].at_ms), _minute(group[-1].at_ms)
    title = f"{len(group)} runs, {begin} to {end} UTC: {unit.text(sum(parts.values()))} in all"
    return Mark((group[0].at_ms + group[-1].at_ms) // 2, tuple(parts.items()), title)


def _bar(mark: Mark, x: float, width: float, scale: _Scale) -> Markup:
    if not mark.value:  # A run that has copied nothing can still be pointed at.
        return _linked(mark, _rect(x - width / 2, scale.y(0) - 3, width, 3, "quiet"))
    pieces, below = [], 0.0
    for kind, value in mark.parts:
        if value:
            top, bottom = scale.y(below + value), scale.y(below)
            pieces.append(_rect(x - width / 2, top, width, max(1.0, bottom - top), kind))
            below += value
    return _linked(mark, Markup("").join(pieces))


def _linked(mark: Mark, shape: Markup) -> Markup:
    inside = Markup("<title>{}</title>{}").format(mark.title, shape)
    if mark.href:
        return Markup('<a href="{}" aria-label="{}" data-tip>{}</a>').format(mark.href, mark.title, inside)
    return Markup("<g data-tip>{}</g>").format(inside)


def _frame(axis: Axis, scale: _Scale) -> Markup:
    """Lines and labels of both axes."""
    found = []
    for value in scale.ticks():
        y = scale.y(value)
        found.append(_rule(_LEFT, y, _WIDTH - _RIGHT, y))
        found.append(_text(_LEFT - 6, y + 4, "end", scale.unit.label(value)))
    for at_ms, shown in axis.ticks():
        x = axis.x(at_ms)
        found.append(_rule(x, _HEIGHT - _BOTTOM, x, _HEIGHT - _BOTTOM + 4))
        found.append(_text(min(max(x, _LEFT), _WIDTH - 37), _HEIGHT - 8, "middle", shown))
    return Markup('<g class="axes" aria-hidden="true">{}</g>').format(Markup("").join(found))


def _svg(label: str, body: Sequence[Markup]) -> Markup:
    return Markup('<svg class="chart over-time" viewBox="0 0 {} {}" role="group" aria-label="{}">{}</svg>').format(
        _WIDTH, _HEIGHT, label, Markup("").join(body)
    )


def _rect(x: float, y: float, width: float, height: float, kind: str) -> Markup:
    shape = '<rect x="{:.1f}" y="{:.1f}" width="{:.1f}" height="{:.1f}" class="bar {}"></rect>'
    return Markup(shape).format(x, y, width, height, kind)


def _dot(x: float, y: float, radius: int) -> Markup:
    return Markup('<circle cx="{:.1f}" cy="{:.1f}" r="{}"></circle>').format(x, y, radius)


def _rule(x1: float, y1: float, x2: float, y2: float) -> Markup:
    return Markup('<line x1="{:.1f}" y1="{:.1f}" x2="{:.1f}" y2="{:.1f}"></line>').format(x1, y1, x2, y2)


def _text(x: float, y: float, anchor: str, text: str) -> Markup:
    return Markup('<text x="{:.1f}" y="{:.1f}" text-anchor="{}">{}</text>').format(x, y, anchor, text)


def _time(at_ms: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=at_ms)


def _minute(at_ms: int) -> str:
    return _time(at_ms).strftime("%d %b %H:%M")


def _date(at_ms: int, step: int) -> str:
    found = _time(at_ms)
    is_day = step >= DAY or (step >= HOUR and found.hour == 0)
    return found.strftime("%d %b") if is_day else found.strftime("%H:%M")
