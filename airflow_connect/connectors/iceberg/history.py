"""Tables that earlier runs have committed to, and whether they still have what was committed.

A table that is dropped, rolled back to an earlier snapshot, or restored with its catalog lacks rows whose offsets are
committed to Kafka. No run copies them again by itself, so the next one says so, once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.chain import Chain, snapshot_id
from airflow_connect.connectors.iceberg.tables import MAIN

if TYPE_CHECKING:
    from collections.abc import Callable

    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

    from airflow_connect.api.staging import StagedFile

VERSION = 1
_AGAIN = "To copy its records again, set the offsets of the connector back."


def tables_of(kept: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """The tables in the document of the connector; none in one of another class."""
    return dict(kept["tables"]) if kept.get("v") == VERSION and "tables" in kept else {}


def document(tables: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """The document that is kept."""
    return {"v": VERSION, "tables": dict(tables)} if tables else {}


def after(
    kept: Mapping[str, Any], files: Iterable[StagedFile], run_id: str, branch_of: Callable[[str], str]
) -> dict[str, Any]:
    """The document once the files of a run are committed."""
    tables = tables_of(kept)
    for file in files:
        name = file.token["table"]
        tables[name] = {"uuid": file.token["uuid"], "branch": branch_of(name), "run": run_id}
    return document(tables)


def changed(
    kept: Mapping[str, Any], connector: str, load: Callable[[str], Table | None]
) -> tuple[dict[str, Any] | None, list[str]]:
    """Look at the tables of earlier runs.

    Returns:
        The document without what is told now (None: it has not changed), and sentences for the report.
    """
    tables, notes = tables_of(kept), []
    for name, known in list(tables.items()):
        table = load(name)
        note = _difference(name, known, table, connector)
        if note:
            notes.append(note)
            del tables[name]
    return (document(tables) if notes else None), notes


def _difference(name: str, known: Mapping[str, str], table: Table | None, connector: str) -> str:
    if table is None:
        return f"Table {name} was dropped since run {known['run']} committed to it. {_AGAIN}"
    if str(table.metadata.table_uuid) != known["uuid"]:
        return (
            f"Table {name} was dropped and created again since run {known['run']} committed to it: the rows of that"
            f" run and of earlier ones are not in it. {_AGAIN}"
        )
    chosen = snapshot_id(known["run"], known["uuid"], known["branch"])
    if table.metadata.snapshot_by_id(chosen) is not None:
        if any(one.snapshot_id == chosen for one in branch_of(table, known["branch"])):
            return ""
        return (
            f"Table {name} was rolled back: its branch {known['branch']} no longer has the snapshot {chosen} of run"
            f" {known['run']}. {_AGAIN}"
        )
    runs = Chain.of(table.properties, connector, known["branch"]).runs
    if known["run"] in runs:
        return ""
    last = runs[0] if runs else "(none)"
    return (
        f"Table {name} was set back, such as with its catalog: run {known['run']} committed to it, but its last run is"
        f" {last} now. {_AGAIN}"
    )


def head_of(table: Table, branch: str) -> Snapshot | None:
    """The newest snapshot of a branch; that of `main` if there is no such branch: its first commit follows that one.

    Source: org.apache.iceberg.util.SnapshotUtil.latestSnapshot.
    """
    return table.metadata.snapshot_by_name(branch if branch in table.metadata.refs else MAIN)


def branch_of(table: Table, branch: str) -> Iterator[Snapshot]:
    """The snapshots that a branch consists of, newest first, as far as they have not expired."""
    seen: set[int] = set()
    snapshot = head_of(table, branch)
    while snapshot is not None and snapshot.snapshot_id not in seen:
        yield snapshot
        seen.add(snapshot.snapshot_id)
        parent = snapshot.parent_snapshot_id
        snapshot = None if parent is None else table.metadata.snapshot_by_id(parent)
