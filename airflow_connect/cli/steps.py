"""Steps of a command on stderr: a spinner during a step, then a check mark, a fact and the elapsed time."""

from __future__ import annotations

import time
from types import TracebackType

from airflow_connect.cli.blocks import line
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.reporting.texts import format_seconds

TITLE_COLUMNS = 30
FACT_COLUMNS = 48
_TIME_COLUMNS = 8
_MARK_COLUMNS = 2


class Step:
    """One step. Leaving the block without an error marks it done.

    Attributes:
        fact: its result, shown after the title; set it inside the block.
    """

    def __init__(self, terminal: Terminal, title: str) -> None:
        """Shows nothing before the block is entered."""
        self._terminal = terminal
        self._title = title
        self._began = 0.0
        self.fact = ""

    def __enter__(self) -> Step:
        """Show the title."""
        self._began = time.monotonic()
        if self._terminal.is_live:
            from airflow_connect.cli.drawing import ElapsedColumn, waiting_line

            waiting = self._terminal.drawn.enter_context(waiting_line(self._terminal.console(), ElapsedColumn()))
            waiting.add_task(f"{self._title:{TITLE_COLUMNS}}", total=None)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show the result."""
        self._terminal.drawn.close()
        mark = ("✓", "green") if error is None else ("✗", "red")
        took = format_seconds(time.monotonic() - self._began)
        room = self._terminal.columns - _MARK_COLUMNS - TITLE_COLUMNS - _TIME_COLUMNS
        fact = f"{self.fact:{min(FACT_COLUMNS, room)}}"
        self._terminal.note(line(mark, f" {self._title:{TITLE_COLUMNS}}{fact} ", (f"{took:>7}", "dim"), breaks=False))
