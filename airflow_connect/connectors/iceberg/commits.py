"""What a run tells of its commits, from its manifest alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.connectors.iceberg.publisher import commit_of, spans_of
from airflow_connect.documents.run_tables import TableCommit

if TYPE_CHECKING:
    from airflow_connect.api.staging import StagedFile


def table_commit(catalog: str, table: str, files: Sequence[StagedFile]) -> TableCommit:
    """The snapshot that a run has added to a table.

    Args:
        catalog: name of the catalog.
        table: name of the table.
        files: of the run for the table, as `IcebergPublisher.prepare` has made them.
    """
    commit = commit_of(table, files)
    return TableCommit(
        catalog=catalog,
        table=table,
        branch=commit["branch"],
        snapshot_id=str(commit["snapshot"]),
        run_id=commit["run"],
        rows=sum(one["rows"] for one in commit["manifests"]),
        files=sum(one["files"] for one in commit["manifests"]),
        size_bytes=sum(file.size_bytes for file in files),
        partitions=int(commit["summary"].get("changed-partition-count", 0)),
        offsets={str(tp): span for tp, span in spans_of(files).items()},
        location=commit.get("location", ""),
    )
