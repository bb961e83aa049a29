"""Tables of a lake that a connector fills: the newest snapshot that its runs have added to each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from airflow_connect.documents.run_tables import TableCommit
    from airflow_connect.ui.overview.model import Run


@dataclass(frozen=True, slots=True)
class TableRow:
    """A branch of a table.

    Attributes:
        newest: the newest snapshot.
        run: that has copied it; if the history does not have it any more, the one that has reported it.
        snapshots: how many the runs of the history have added.
    """

    newest: TableCommit
    run: Run
    snapshots: int


def table_rows(runs: Iterable[Run]) -> list[TableRow]:
    """The tables by name; `runs`: the newest first."""
    newest: dict[tuple[str, str, str], tuple[TableCommit, Run]] = {}
    every: dict[tuple[str, str, str], set[str]] = {}
    for run in runs:
        # In a report, the snapshot of the run itself comes after that of a run that it has finished.
        for one in reversed(run.tables):
            key = (one.table, one.branch, one.catalog)
            known, _ = newest.setdefault(key, (one, run))
            if known.snapshot_id == one.snapshot_id and run.run_id == one.run_id:
                newest[key] = (one, run)  # That of a run that another one has finished is in both reports.
            every.setdefault(key, set()).add(one.snapshot_id)
    return [TableRow(*newest[key], len(every[key])) for key in sorted(newest)]


def in_table(path: str, tables: Iterable[TableCommit]) -> str:
    """A file as it is shown: the path inside of the table that it is in, or the whole one."""
    for one in tables:
        folder = f"{one.location.rstrip('/')}/"
        if one.location and path.startswith(folder):
            return f"{one.table}: {path.removeprefix(folder)}"
    return path
