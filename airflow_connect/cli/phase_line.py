"""The line for the current phase of a run: a spinner, its name, a bar if there is something to count, and figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, ProgressColumn, TaskID
from rich.progress import Task as ProgressTask
from rich.progress_bar import ProgressBar
from rich.table import Column
from rich.text import Text

from airflow_connect.cli.drawing import waiting_line
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, format_seconds

LABEL_COLUMNS = 8
BAR_COLUMNS, SHORTEST_BAR = 32, 8
_FACT_COLUMNS = 68
"""The longest text next to the bar."""
_UNITS = {"copy": "records", "publish": "files"}


class PhaseLine:
    """Redrawn several times a second. A phase with a count leaves a line when it ends; other phases do not."""

    def __init__(self, console: Console) -> None:
        """`console`: where to draw."""
        facts = _FactsColumn(table_column=Column(no_wrap=True, overflow="crop"))
        self._line = waiting_line(console, _PhaseBarColumn(console), facts)
        self._task: TaskID | None = None

    def start(self) -> None:
        """Start drawing."""
        self._line.start()

    def stop(self) -> None:
        """Remove an unfinished line."""
        self.end(is_done=False)
        self._line.stop()

    def begin(self, phase: str, total: int) -> None:
        """Switch to another phase; `total`: what there is to count, 0 if unknown."""
        self.end(is_done=True)
        self._task = self._line.add_task(f"{phase:{LABEL_COLUMNS}}", total=total or None, phase=phase, bytes=0)

    def show(self, event: Mapping[str, Any]) -> None:
        """Apply the numbers of a `progress` event."""
        if self._task is not None:
            total, size = int(event.get("total") or 0), event.get("bytes") or 0
            self._line.update(self._task, completed=int(event["done"]), total=total or None, bytes=size)

    def end(self, *, is_done: bool) -> None:
        """End the phase, if there is one; if it is done and has a count, its line stays."""
        if self._task is None:
            return
        number, self._task = self._task, None
        (task,) = (task for task in self._line.tasks if task.id == number)
        self._line.remove_task(number)
        self._line.refresh()
        if is_done and _has_bar(task):
            task.completed, task.fields["is_over"] = task.total or 0, True
            self._line.console.print(self._line.make_tasks_table([task]))


class _PhaseBarColumn(BarColumn):
    """A bar that leaves room for the figures next to it; no bar for a phase without a count."""

    def __init__(self, console: Console) -> None:
        super().__init__(style="dim", complete_style="green", finished_style="green")
        self._console = console

    def render(self, task: ProgressTask) -> ProgressBar:
        room = self._console.width - _FACT_COLUMNS
        bar = super().render(task)
        bar.width = min(BAR_COLUMNS, max(SHORTEST_BAR, room)) if _has_bar(task) else 0
        return bar


class _FactsColumn(ProgressColumn):
    """Share, counts, bytes, seconds."""

    def render(self, task: ProgressTask) -> Text:
        took = format_seconds(task.elapsed or 0)
        done, size = int(task.completed), task.fields["bytes"]
        facts = [format_bytes(size)] if size else []
        if not _has_bar(task):
            if task.fields["phase"] == "copy" and done:  # the end of a source is known only when it is reached
                facts.insert(0, f"{format_count(done)} records")
            return Text.assemble("  ".join(facts), "  " if facts else "", (took, "dim"))
        total, unit = int(task.total or 0), _UNITS[task.fields["phase"]]
        if task.fields.get("is_over"):
            facts = ["100%", f"{format_count(total)} {unit}", *facts]
        elif done:
            facts = [f"{done * 100 // total:3d}%", f"{format_count(done)}/{format_count(total)} {unit}", *facts]
        else:
            return Text("starting Spark" if unit == "records" else "starting", "dim").append(f"  {took}", "dim")
        return Text.assemble("  ".join(facts), "  ", (took, "dim"))


def _has_bar(task: ProgressTask) -> bool:
    return task.fields["phase"] in _UNITS and bool(task.total)
