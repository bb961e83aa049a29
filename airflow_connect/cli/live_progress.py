"""Progress of a run on a terminal: finished phases stay as lines, the current one is redrawn several times a second."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.cli.blocks import line
from airflow_connect.cli.terminal import Terminal
from airflow_connect.documents.run import Plan
from airflow_connect.runtime.reporting.presentation import EventLines, plan_parts

if TYPE_CHECKING:
    from airflow_connect.cli.phase_line import PhaseLine


class LiveProgress:
    """An observer that draws. Use it as a context manager; leaving it removes the unfinished line."""

    def __init__(self, terminal: Terminal) -> None:
        """Draw on the terminal's stderr."""
        from airflow_connect.cli.phase_line import PhaseLine

        self._terminal = terminal
        self._phase: PhaseLine = PhaseLine(terminal.console())

    def __enter__(self) -> LiveProgress:
        """Start drawing."""
        self._phase.start()
        self._terminal.drawn.callback(self._phase.stop)
        return self

    def __exit__(self, *_: object) -> None:
        """Stop drawing."""
        self._terminal.drawn.close()

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event of `runtime.spec.Observer`."""
        kind = event["event"]
        if kind == "start":
            self._terminal.note(line((event["connector"], "bold"), "  ", (f"run {event['run_id']}", "dim")))
        elif kind == "phase":
            self._phase.begin(event["phase"], event.get("total", 0))
        elif kind == "progress":
            self._phase.show(event)
        elif kind == "plan":
            self._show_plan(Plan.from_json(event["plan"]))
        elif kind == "warning":
            self._terminal.note(line((f"⚠ {event['message']}", "yellow"), indent=2, hang=2))
        elif kind == "end":
            self._phase.end(is_done=event["report"]["error"] is None)

    def _show_plan(self, plan: Plan) -> None:
        if not plan.is_empty:  # repeated at the end of the run
            for block in plan_parts(plan, indent=2):
                self._terminal.note(line(block, indent=2) if isinstance(block, str) else block)
        for note in plan.notes:
            self._terminal.note(line((note, "yellow"), indent=2))


class PlainProgress:
    """The same on a stream that is not a terminal: a line per phase, progress every ten seconds."""

    def __init__(self, terminal: Terminal) -> None:
        """Write to the terminal's stderr."""
        self._lines = EventLines(terminal.note)

    def __enter__(self) -> PlainProgress:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to remove."""

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event; the command's result reports the end."""
        if event["event"] != "end":
            self._lines(event)


def progress_of(terminal: Terminal) -> LiveProgress | PlainProgress:
    """The progress that fits the terminal."""
    return LiveProgress(terminal) if terminal.is_live else PlainProgress(terminal)
