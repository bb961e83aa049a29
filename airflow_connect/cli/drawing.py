"""Prints blocks on a real terminal, with rich. Loaded only if a stream is a terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TextIO

from rich.cells import cell_len
from rich.console import Console, ConsoleDimensions, JustifyMethod, RenderableType
from rich.padding import Padding
from rich.progress import Progress, ProgressColumn, SpinnerColumn, TextColumn
from rich.progress import Task as ProgressTask
from rich.table import Table as Grid
from rich.text import Text

from airflow_connect.cli.blocks import Block, Line
from airflow_connect.runtime.reporting.texts import Table, format_seconds

REDRAWS_PER_SECOND = 10
_GAP = 2
_NARROWEST = 16
"""Minimum width of text in a line, however narrow the terminal is."""


class TerminalConsole(Console):
    """rich's console for one stream, independent of standard input, output and error."""

    def __init__(self, stream: TextIO) -> None:
        """`stream`: a terminal."""
        super().__init__(file=stream, force_terminal=True, highlight=False, markup=False, emoji=False)

    @property  # type: ignore[misc] # rich's can also be set
    def size(self) -> ConsoleDimensions:
        """Current width and height of this terminal; rich would query standard streams, which are redirected."""
        try:
            columns, lines = os.get_terminal_size(self.file.fileno())
        except (OSError, ValueError):  # a stream without a descriptor
            columns, lines = 0, 0
        return ConsoleDimensions(columns, lines) if columns and lines else super().size

    def show_cursor(self, show: bool = True) -> bool:
        """Do not hide the cursor: a program that is killed while it draws a line could not show it again."""
        return False


def draw(console: Console, block: Block, clean: Callable[[str], str]) -> None:
    """Print a block; `clean` is applied to every text in it before the layout."""
    if isinstance(block, Table):
        _draw_table(console, block, clean)
    elif isinstance(block, Line):
        _draw_line(console, block, clean)
    else:
        console.print(Text(clean(block)))


def _draw_line(console: Console, line: Line, clean: Callable[[str], str]) -> None:
    parts = [clean(part) if isinstance(part, str) else (clean(part[0]), part[1]) for part in line.parts]
    text = Text.assemble(*parts)
    if not line.breaks:
        console.print(Text(" " * line.indent) + text, soft_wrap=True)
        return
    indent = line.indent
    for broken in text.wrap(console, max(_NARROWEST, console.width - indent - line.hang)):
        broken.rstrip()
        console.print(Text(" " * indent) + broken, soft_wrap=True)
        indent = line.indent + line.hang


def _draw_table(console: Console, table: Table, clean: Callable[[str], str]) -> None:
    header = [clean(name) for name in table.header]
    rows = [[clean(cell) for cell in row] for row in table.rows]
    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    widest = widths.index(max(widths))
    too_wide = table.indent + sum(widths) + _GAP * (len(widths) - 1) - console.width
    if too_wide > 0 and widths[widest] - too_wide < _NARROWEST:
        drawn = _cards(header, rows)
    else:
        drawn = _grid()
        for number, side in enumerate(table.align):
            # Only the widest column is wrapped: wrapped numbers and times would be hard to read.
            justify: JustifyMethod = "right" if side == ">" else "left"
            drawn.add_column(justify=justify, no_wrap=number != widest, overflow="fold")
        drawn.add_row(*(Text(name, "dim") for name in header))
        for row in rows:
            drawn.add_row(*map(Text, row))
    console.print(Padding(drawn, (0, 0, 0, table.indent), expand=False))


def _cards(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Grid:
    """One line per cell, for tables that are far too wide."""
    cards = _grid()
    cards.add_column(style="dim", no_wrap=True)
    cards.add_column(overflow="fold")
    for number, row in enumerate(rows):
        if number:
            cards.add_row()
        for name, cell in zip(header, row, strict=True):
            cards.add_row(Text(name), Text(cell))
    return cards


def _grid() -> Grid:
    return Grid.grid(padding=(0, _GAP, 0, 0))


class ElapsedColumn(ProgressColumn):
    """Elapsed time of a task."""

    def render(self, task: ProgressTask) -> Text:
        """`12.3 s`."""
        return Text(format_seconds(task.elapsed or 0), "dim")


class MarkColumn(SpinnerColumn):
    """A spinner, then a check mark when the task's field `is_over` is true; a full count does not mean it is done."""

    def __init__(self, console: Console) -> None:
        """`console`: where it is drawn."""
        is_utf = console.encoding.startswith("utf")
        super().__init__("dots" if is_utf else "line", style="cyan")
        self._mark = Text("✓" if is_utf else "+", "green")

    def render(self, task: ProgressTask) -> RenderableType:
        """The mark of a task."""
        return self._mark if task.fields.get("is_over") else super().render(task)


def waiting_line(console: Console, *columns: ProgressColumn) -> Progress:
    """A line with a spinner and a description, redrawn until a step ends and then removed."""
    return Progress(
        MarkColumn(console),
        TextColumn("{task.description}", markup=False),
        *columns,
        console=console,
        transient=True,
        refresh_per_second=REDRAWS_PER_SECOND,
        # Both are already redirected, and the logs of a verbose command are handled separately.
        redirect_stdout=False,
        redirect_stderr=False,
    )
