"""Charts as inline SVG. Each has a title or a table beside it: colour and shape are never the only sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from markupsafe import Markup, escape

_STRIP_BAR, _STRIP_GAP, _STRIP_HEIGHT = 6, 2, 22
_WEEK_WIDTH, _DOT = 112, 3
_PLOT_WIDTH = 640
_ROW, _GAP = 16, 6
_LABEL = 190
_TEXT = '<text x="{:.0f}" y="{:.0f}" text-anchor="end">{}</text>'


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar.

    Attributes:
        value: its length.
        title: what a pointer shows, and a screen reader reads.
        kind: class of its colour: `ok`, `bad`, `warn`, `quiet`.
        href: where a click leads, or "".
    """

    value: float
    title: str
    kind: str = "ok"
    href: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a time line or of a Gantt chart: from `start` to `end`, in any unit."""

    label: str
    start: float
    end: float
    title: str
    kind: str = "ok"


def _rect(x: float, y: float, width: float, height: float, bar: Bar | Span) -> Markup:
    # Not by Markup.format, which takes a fifth of a millisecond on a busy machine: a list has thousands of these.
    where = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    shape = Markup(f'<rect {where} class="bar {escape(bar.kind)}"><title>{escape(bar.title)}</title></rect>')
    if isinstance(bar, Bar) and bar.href:
        return Markup('<a href="{}" aria-label="{}">{}</a>').format(bar.href, bar.title, shape)
    return shape


def _svg(width: float, height: float, label: str, body: Sequence[Markup], css: str) -> Markup:
    return Markup(
        '<svg class="{}" viewBox="0 0 {:.0f} {:.0f}" width="{:.0f}" height="{:.0f}" role="img" aria-label="{}">{}</svg>'
    ).format(f"chart {css}", width, height, width, height, label, Markup("").join(body))


def strip(bars: Sequence[Bar], label: str) -> Markup:
    """Small bars side by side, as high as their values: the last runs of a connector."""
    most = max((bar.value for bar in bars), default=0) or 1
    body = []
    for place, bar in enumerate(bars):
        height = max(3.0, _STRIP_HEIGHT * bar.value / most)
        body.append(_rect(place * (_STRIP_BAR + _STRIP_GAP), _STRIP_HEIGHT - height, _STRIP_BAR, height, bar))
    return _svg(max(1, len(bars)) * (_STRIP_BAR + _STRIP_GAP), _STRIP_HEIGHT, label, body, "strip")


def timeline(points: Sequence[tuple[float, float]], axis: tuple[float, float], label: str) -> Markup:
    """Measurements as dots on a time axis, joined by a line, for a cell of a table.

    Args:
        points: time and value, in the order of time.
        axis: its two ends; what is outside is not drawn.
        label: what a screen reader reads.
    """
    width, height = _WEEK_WIDTH, _STRIP_HEIGHT
    first, last = axis
    most = max((value for _, value in points), default=0) or 1
    scale, rise = (width - 2 * _DOT) / max(last - first, 1e-9), (height - 2 * _DOT) / most
    # Numbers only, so there is nothing to escape; a list has two hundred of these.
    places = [
        f"{_DOT + (at - first) * scale:.1f},{height - _DOT - value * rise:.1f}"
        for at, value in points
        if first <= at <= last
    ]
    line, dots = Markup(" ".join(places)), Markup("".join(f"M{place}h0" for place in places))
    body = Markup('<title>{}</title><polyline points="{}"></polyline><path d="{}"></path>').format(label, line, dots)
    return _svg(width, height, label, [body], "line")


def meter(value: float, most: float, title: str, kind: str = "ok") -> Markup:
    """One horizontal bar, for a cell of a table."""
    width = 120 * value / most if most > 0 else 0
    return _svg(120, 10, title, [_rect(0, 1, max(width, 1.5 if value else 0), 8, Bar(value, title, kind))], "meter")


def spans(rows: Sequence[Span], label: str, most_rows: int = 60) -> Markup:
    """Spans below each other on one time axis: phases of a run, or its tasks."""
    shown = rows[:most_rows]
    if not shown:
        return Markup("")
    first, last = min(row.start for row in shown), max(row.end for row in shown)
    scale = (_PLOT_WIDTH - _LABEL) / max(last - first, 1e-9)
    body = []
    for place, row in enumerate(shown):
        y = place * (_ROW + _GAP)
        body.append(Markup(_TEXT).format(_LABEL - 8, y + 12, row.label))
        width = max(2.0, (row.end - row.start) * scale)
        body.append(_rect(_LABEL + (row.start - first) * scale, y, min(width, _PLOT_WIDTH - _LABEL), _ROW, row))
    return _svg(_PLOT_WIDTH, len(shown) * (_ROW + _GAP), label, body, "spans")
