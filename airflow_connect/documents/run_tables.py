"""What a run has committed to tables of a lake: their snapshots, for reports, pages, asset events and lineage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.counting import format_count, plural

MOST_TABLES, MOST_OFFSETS = 250, 2_000
"""Maximum of tables, and of partitions of topics over all tables, in one report: it is kept in the history."""


@dataclass(frozen=True, slots=True)
class TableCommit(JsonDocument):
    """One snapshot of a table that a run has added.

    Attributes:
        catalog: the catalog's name in the configuration.
        table: namespace and name, with dots.
        branch: the branch that the snapshot was added to.
        snapshot_id: as text. It has up to 63 bits, and JavaScript, so Airflow's UI, rounds numbers above 53.
        run_id: the run that has copied it; another one than the report's if that run was finished by it.
        rows, files, size_bytes: of the snapshot, without what was in the table before.
        partitions: partitions of the table that got rows; 0: it has none.
        offsets: topic-partition (`topic-partition`) to the first and the last offset plus one of the records that the
            snapshot holds. Others between them may be in another table, or filtered. {}: left out (`MOST_OFFSETS`).
        location: the URL of the table's folder, or "".
    """

    catalog: str
    table: str
    branch: str
    snapshot_id: str
    run_id: str
    rows: int = 0
    files: int = 0
    size_bytes: int = 0
    partitions: int = 0
    offsets: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    location: str = ""

    @property
    def uri(self) -> str:
        """`iceberg://catalog/namespace.table`, as the asset of the table is called."""
        return f"iceberg://{self.catalog}/{self.table}"

    def to_extra(self) -> dict[str, Any]:
        """What the event of the table's asset says of the snapshot."""
        return {
            "snapshot_id": self.snapshot_id,
            "branch": self.branch,
            "run_id": self.run_id,
            "records": self.rows,
            "files": self.files,
            "bytes": self.size_bytes,
            "offsets": {place: list(span) for place, span in self.offsets.items()},
        }


def distinct(commits: Iterable[TableCommit]) -> tuple[TableCommit, ...]:
    """Each snapshot once, in the order in which they came first."""
    return tuple({(one.catalog, one.table, one.branch, one.snapshot_id): one for one in commits}.values())


def kept_in_report(commits: Sequence[TableCommit]) -> tuple[TableCommit, ...]:
    """What a report keeps of the snapshots of one run."""
    kept, spans = [], 0
    for one in commits[:MOST_TABLES]:
        spans += len(one.offsets)
        kept.append(replace(one, offsets={}) if spans > MOST_OFFSETS else one)
    return tuple(kept)


def notes_on_left_out(commits: Sequence[TableCommit]) -> tuple[str, ...]:
    """What the report leaves out of them."""
    kept, notes = kept_in_report(commits), []
    if len(commits) > len(kept):
        notes.append(f"{plural(len(commits), 'table')} got a snapshot; the report has the first {len(kept)}.")
    without = sum(bool(whole.offsets) and not one.offsets for whole, one in zip(commits, kept, strict=False))
    if without:
        notes.append(
            f"The report does not have the offsets in the snapshots of {plural(without, 'table')}, because there are"
            f" more than {format_count(MOST_OFFSETS)} in all."
        )
    return tuple(notes)
