"""A run on a terminal: finished phases stay as lines, the present one is drawn again several times a second."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from typing import Any

from airflow_connect.api.run import Plan
from airflow_connect.cli.terminal import Terminal
from airflow_connect.runtime.presentation import (
    EventLines,
    format_bytes,
    format_count,
    format_seconds,
    plan_table,
)

REDRAW_S = 0.1
BAR_COLUMNS = 32
LABEL_COLUMNS = 9
_SPINNER = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WITH_BAR = {"copy": "record", "publish": "file"}


class LiveProgress:
    """An observer that draws. Use as a context manager; leaving it takes the unfinished line away."""

    def __init__(self, terminal: Terminal) -> None:
        """Draw on the terminal's stderr."""
        self._terminal = terminal
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._ticker = threading.Thread(target=self._tick, name="progress-line", daemon=True)
        self._phase = ""
        self._began = 0.0
        self._progress: Mapping[str, Any] = {}
        self._frame = 0

    def __enter__(self) -> LiveProgress:
        """Start drawing."""
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._over.set()
        self._ticker.join()
        with self._lock:
            self._clear()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event of `runtime.spec.Observer`."""
        kind = event["event"]
        with self._lock:
            if kind == "start":
                name = self._style(event["connector"], "bold")
                self._line(f"{name}  {self._style('run ' + event['run_id'], 'dim')}")
            elif kind == "phase":
                self._finish_phase()
                self._phase, self._began = event["phase"], time.monotonic()
                self._progress = {"done": 0, "total": event.get("total", 0)}
            elif kind == "progress":
                self._progress = event
            elif kind == "plan":
                self._show_plan(Plan.from_json(event["plan"]))
            elif kind == "warning":
                self._line("  " + self._style(f"⚠ {event['message']}", "yellow"))
            elif kind == "end":
                if event["report"]["error"] is None:
                    self._finish_phase()
                self._phase = ""

    def _show_plan(self, plan: Plan) -> None:
        if not plan.is_empty:  # the end of the run says it again
            header, *rows = plan_table(plan)
            for line in [self._style(header, "dim"), *rows]:
                self._line("  " + line)
        for note in plan.notes:
            self._line("  " + self._style(note, "yellow"))

    def _tick(self) -> None:
        while not self._over.wait(REDRAW_S):
            with self._lock:
                if self._phase:
                    self._frame += 1
                    spin = self._style(_SPINNER[self._frame % len(_SPINNER)], "cyan")
                    self._clear()
                    self._terminal.draw(f"{spin} {self._phase:{LABEL_COLUMNS}}{self._details()}")

    def _details(self) -> str:
        seconds = time.monotonic() - self._began
        done, total = int(self._progress.get("done", 0)), int(self._progress.get("total", 0))
        if self._phase == "copy" and done and not total:  # a source's end is known when it is reached
            size = format_bytes(self._progress.get("bytes") or 0)
            return f"{format_count(done)} records  {size}  " + self._style(format_seconds(seconds), "dim")
        if self._phase not in _WITH_BAR or not total:
            return self._style(format_seconds(seconds), "dim")
        if not done:
            waiting = "starting Spark" if self._phase == "copy" else "starting"
            return self._bar(0) + self._style(f"  {waiting} … {format_seconds(seconds)}", "dim")
        unit = _WITH_BAR[self._phase]
        facts = [f"{done * 100 // total:3d}%", f"{format_count(done)}/{format_count(total)} {unit}s"]
        if self._progress.get("bytes"):
            facts.append(format_bytes(self._progress["bytes"]))
        facts.append(format_seconds(seconds))
        return self._bar(done / total) + "  " + "  ".join(facts)

    def _finish_phase(self) -> None:
        """Leave a line about a phase that copied or published; the short ones pass without a trace."""
        if self._phase in _WITH_BAR and self._progress.get("total"):
            total = int(self._progress["total"])
            unit = _WITH_BAR[self._phase]
            took = self._style(format_seconds(time.monotonic() - self._began), "dim")
            size = format_bytes(self._progress["bytes"]) + "  " if self._progress.get("bytes") else ""
            check = self._style("✓", "green")
            label = f"{self._phase:{LABEL_COLUMNS}}"
            self._line(f"{check} {label}{self._bar(1)}  100%  {format_count(total)} {unit}s  {size}{took}")
        self._phase = ""

    def _bar(self, share: float) -> str:
        width = min(BAR_COLUMNS, self._terminal.columns - 68) if self._terminal.columns < 100 else BAR_COLUMNS
        width = max(width, 8)
        filled = round(min(share, 1.0) * width)
        return self._style("━" * filled, "green") + self._style("━" * (width - filled), "dim")

    def _line(self, text: str) -> None:
        self._clear()
        self._terminal.note(text)

    def _clear(self) -> None:
        self._terminal.draw("\r\033[K")

    def _style(self, text: str, *styles: str) -> str:
        return self._terminal.style(text, *styles, stream=self._terminal.err)


class PlainProgress:
    """The same on a stream that is no terminal: a line per phase, progress every ten seconds."""

    def __init__(self, terminal: Terminal) -> None:
        """Write to the terminal's stderr."""
        self._lines = EventLines(terminal.note)

    def __enter__(self) -> PlainProgress:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing to take away."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event; the end is told by the command's result."""
        if event["event"] != "end":
            self._lines(event)


def progress_of(terminal: Terminal) -> LiveProgress | PlainProgress:
    """The progress that fits the terminal."""
    return LiveProgress(terminal) if terminal.is_live else PlainProgress(terminal)


__all__ = ["LiveProgress", "PlainProgress", "progress_of"]
