"""Formats numbers, sizes, durations and tables as text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from airflow_connect.counting import format_count, plural

MAX_PLAN_ROWS = 20
_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")
_SPELLED_OUT = {
    code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"
    # Control characters except tabs and line ends, separators of lines, characters that change the direction of text,
    # and lone surrogates, which stand for bytes in names of files that are not UTF-8.
    for code in (
        *range(9), *range(11, 32), *range(0x7F, 0xA0), *range(0x2028, 0x202F), *range(0x2066, 0x206A),
        *range(0xD800, 0xE000),
    )
}  # fmt: skip
_ONE_LINE = {**_SPELLED_OUT, ord("\n"): "\\n"}


def format_bytes(size: float) -> str:
    """`1.2 GB`; units are powers of 1000."""
    for unit in _BYTE_UNITS:
        if abs(size) < 999.5 or unit == _BYTE_UNITS[-1]:
            return f"{size:.0f} {unit}" if unit == "B" or size >= 99.5 else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError("the last unit takes every size")


def format_seconds(seconds: float) -> str:
    """`0.15 s`, `12.3 s`, `4 min 05 s`, `2 h 10 min`."""
    if seconds < 59.95:
        return f"{seconds:.2f} s" if seconds < 1 else f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


@dataclass(frozen=True, slots=True)
class Table:
    """A table without borders.

    Attributes:
        header: names of the columns.
        rows: cells, all of them text.
        align: `<` or `>` for each column; numbers are right-aligned.
        indent: blanks before each line.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    align: str
    indent: int = 0

    def markdown(self, most_rows: int) -> list[str]:
        """The table as Markdown, with `most_rows` rows at most and a last row of dots if there are more."""
        sides = ["---:" if side == ">" else ":---" for side in self.align]
        more = [["..."] * len(self.header)] if len(self.rows) > most_rows else []
        return [f"| {' | '.join(row)} |" for row in [self.header, sides, *self.rows[:most_rows], *more]]

    def lines(self) -> list[str]:
        """The table as text, headings first."""
        every = [self.header, *self.rows]
        widths = [max(len(row[column]) for row in every) for column in range(len(self.header))]
        shape = list(zip(self.align, widths, strict=True))
        texts = ["  ".join(f"{c:{side}{width}}" for c, (side, width) in zip(row, shape, strict=True)) for row in every]
        return [" " * self.indent + text.rstrip() for text in texts]


def spelled_out(text: str) -> str:
    """The text with control characters escaped, but for tabs and line ends: a terminal would obey them."""
    return text if text.isprintable() else text.translate(_SPELLED_OUT)


def one_line(text: str) -> str:
    """As `spelled_out`, and line ends are escaped, too: the rest of a name would look like a line of the log."""
    return text if text.isprintable() else text.translate(_ONE_LINE)


__all__ = [
    "MAX_PLAN_ROWS",
    "Table",
    "format_bytes",
    "format_count",
    "format_seconds",
    "one_line",
    "plural",
    "spelled_out",
]
