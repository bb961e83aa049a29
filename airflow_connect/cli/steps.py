"""Steps of a story on stderr: a spinner while one lasts, a check mark, a fact and its time when it is done."""

from __future__ import annotations

import threading
import time
from types import TracebackType

from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.presentation import format_seconds

REDRAW_S = 0.1
TITLE_COLUMNS = 30
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


class Step:
    """One step. Leaving the block without an error marks it done.

    Attributes:
        fact: what came of it, shown behind the title; set it inside the block.
    """

    def __init__(self, terminal: Terminal, title: str) -> None:
        """Nothing is shown before the block is entered."""
        self._terminal = terminal
        self._title = title
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="step", daemon=True)
        self._began = 0.0
        self.fact = ""

    def __enter__(self) -> Step:
        """Show the title."""
        self._began = time.monotonic()
        if self._terminal.is_live:
            self._ticker.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Show how it ended."""
        self._over.set()
        if self._ticker.is_alive():
            self._ticker.join()
            self._terminal.draw("\r\033[K")
        mark = self._style("✓", "green") if error is None else self._style("✗", "red")
        took = self._style(format_seconds(time.monotonic() - self._began), "dim")
        self._terminal.note(f"{mark} {self._title:{TITLE_COLUMNS}}{self.fact:48} {took:>7}".rstrip())

    def _tick(self) -> None:
        frame = 0
        while not self._over.wait(REDRAW_S):
            frame += 1
            spin = self._style(_SPINNER[frame % len(_SPINNER)], "cyan")
            took = self._style(format_seconds(time.monotonic() - self._began), "dim")
            self._terminal.draw(f"\r\033[K{spin} {self._title:{TITLE_COLUMNS}}{took}")

    def _style(self, text: str, *styles: str) -> str:
        return self._terminal.style(text, *styles, stream=self._terminal.err)
