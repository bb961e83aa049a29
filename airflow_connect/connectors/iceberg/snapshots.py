"""Manifests and snapshots of a table: what a commit adds, written by Iceberg's specification through pyiceberg.

pyiceberg's own transaction is not used (version 0.12): it deletes its manifests after a failed commit even if the
request had landed, and writes every file under the table's current partition spec.
"""

from __future__ import annotations

import base64
import uuid
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.iceberg.data_files import run_folder
from airflow_connect.connectors.iceberg.history import head_of
from airflow_connect.connectors.iceberg.partitions import partition_type, partition_values

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile, ManifestFile
    from pyiceberg.partitioning import PartitionSpec
    from pyiceberg.schema import Schema
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot
    from pyiceberg.types import StructType

    from airflow_connect.api.staging import StagedFile

_VERSION: Any = 2


def data_file(staged: StagedFile, table: Table) -> DataFile:
    """The entry of a staged file."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat

    token, found = staged.token, staged.token["statistics"]
    spec = table.specs()[token["spec"]]
    made = DataFile.from_args(
        content=DataFileContent.DATA,
        file_path=token["path"],
        file_format=FileFormat.PARQUET,
        partition=partition_values(token["partition"], spec, table.schemas()[token["schema"]]),
        record_count=found["record_count"],
        file_size_in_bytes=staged.size_bytes,
        column_sizes=_numbers(found["column_sizes"]),
        value_counts=_numbers(found["value_counts"]),
        null_value_counts=_numbers(found["null_value_counts"]),
        nan_value_counts=_numbers(found["nan_value_counts"]),
        lower_bounds=_bounds(found["lower_bounds"]),
        upper_bounds=_bounds(found["upper_bounds"]),
        split_offsets=found["split_offsets"],
        sort_order_id=token.get("sort_order"),
        equality_ids=None,
        key_metadata=None,
    )
    made.spec_id = token["spec"]  # `from_args` drops it.
    return made


def _numbers(given: Mapping[str, int]) -> dict[int, int]:
    return {int(key): value for key, value in given.items()}


def _bounds(given: Mapping[str, str]) -> dict[int, bytes]:
    return {int(key): base64.b64decode(value) for key, value in given.items()}


def write_manifests(table: Table, staged: Sequence[StagedFile], snapshot_id: int, run_id: str) -> list[dict[str, Any]]:
    """Write one manifest for each partition spec of the files; returns what a commit needs of each, as JSON."""
    from pyiceberg.manifest import ManifestEntry, ManifestEntryStatus, write_manifest

    made = []
    for spec_id in sorted({file.token["spec"] for file in staged}):
        own = [data_file(file, table) for file in staged if file.token["spec"] == spec_id]
        path = table.location_provider().new_metadata_location(f"{run_folder(run_id)}/{spec_id}-{uuid.uuid4()}.avro")
        output, spec = table.io.new_output(path), _with_type(table.specs()[spec_id], table)
        with write_manifest(_VERSION, spec, table.schema(), output, snapshot_id, "deflate") as writer:
            for file in own:
                writer.add(
                    ManifestEntry.from_args(
                        status=ManifestEntryStatus.ADDED,
                        snapshot_id=snapshot_id,
                        sequence_number=None,
                        file_sequence_number=None,
                        data_file=file,
                    )
                )
        written = writer.to_manifest_file()
        made.append(
            {
                "path": path,
                "length": written.manifest_length,
                "spec": spec_id,
                "files": len(own),
                "rows": sum(file.record_count for file in own),
                "partitions": [_summary_as_json(one) for one in written.partitions or ()],
            }
        )
    return made


def _with_type(spec: PartitionSpec, table: Table) -> PartitionSpec:
    """A spec whose partitions have the type of the specification."""
    from pyiceberg.partitioning import PartitionSpec

    earlier = sorted(table.schemas().values(), key=lambda schema: schema.schema_id, reverse=True)
    found: StructType = partition_type(spec, (table.schema(), *earlier))

    class Typed(PartitionSpec):
        """Writers of manifests ask it for the type."""

        def partition_type(self, schema: Schema) -> StructType:
            return found

    numbered: dict[str, Any] = {"spec_id": spec.spec_id}
    return Typed(*spec.fields, **numbered)


def _summary_as_json(summary: Any) -> list[Any]:
    bounds = (summary.lower_bound, summary.upper_bound)
    encoded = [None if one is None else base64.b64encode(one).decode() for one in bounds]
    return [summary.contains_null, summary.contains_nan, *encoded]


def _summary_of_json(found: Sequence[Any]) -> Any:
    from pyiceberg.manifest import PartitionFieldSummary

    has_null, has_nan, *bounds = found
    lower, upper = (None if one is None else base64.b64decode(one) for one in bounds)
    return PartitionFieldSummary(has_null, has_nan, lower, upper)


def manifest_files(manifests: Sequence[Mapping[str, Any]], snapshot_id: int) -> list[ManifestFile]:
    """Manifests that were written, maybe by another process, as entries of a list."""
    from pyiceberg.manifest import ManifestContent, ManifestFile

    return [
        ManifestFile.from_args(
            manifest_path=one["path"],
            manifest_length=one["length"],
            partition_spec_id=one["spec"],
            content=ManifestContent.DATA,
            sequence_number=-1,  # The list's own: pyiceberg fills it in.
            min_sequence_number=-1,
            added_snapshot_id=snapshot_id,
            added_files_count=one["files"],
            existing_files_count=0,
            deleted_files_count=0,
            added_rows_count=one["rows"],
            existing_rows_count=0,
            deleted_rows_count=0,
            partitions=[_summary_of_json(found) for found in one["partitions"]],
            key_metadata=None,
        )
        for one in manifests
    ]


def summary_of(table: Table, staged: Sequence[StagedFile]) -> dict[str, str]:
    """The counts of a snapshot's summary."""
    from pyiceberg.table.snapshots import SnapshotSummaryCollector

    collector = SnapshotSummaryCollector()
    for file in staged:
        collector.metrics.add_file(data_file(file, table))
    summary = {str(key): str(value) for key, value in collector.build().items()}
    # Counted here: the collector writes each partition as text, and Python has no dates after the year 9999.
    partitions = {(file.token["spec"], *file.token["partition"]) for file in staged if file.token["partition"]}
    return summary | ({"changed-partition-count": str(len(partitions))} if partitions else {})


def new_snapshot(table: Table, commit: Mapping[str, Any]) -> Snapshot:
    """Write the list of manifests for the branch as it is now; returns the snapshot that the commit adds.

    Args:
        table: as it is now.
        commit: what `IcebergPublisher.prepare` has put into the manifest of the run.
    """
    from pyiceberg.manifest import write_manifest_list
    from pyiceberg.table.snapshots import Operation, Snapshot, Summary, update_snapshot_summaries

    head, snapshot_id = head_of(table, commit["branch"]), commit["snapshot"]
    parent, sequence = head.snapshot_id if head else None, table.metadata.next_sequence_number()
    existing = (
        [one for one in head.manifests(table.io) if one.has_added_files() or one.has_existing_files()] if head else []
    )
    path = table.location_provider().new_metadata_location(
        f"{run_folder(commit['run'])}/snap-{snapshot_id}-{uuid.uuid4()}.avro"
    )
    with write_manifest_list(_VERSION, table.io.new_output(path), snapshot_id, parent, sequence, "deflate") as writer:
        writer.add_manifests([*manifest_files(commit["manifests"], snapshot_id), *existing])
    counted = update_snapshot_summaries(
        Summary(operation=Operation.APPEND, **commit["summary"]), previous_summary=head.summary if head else None
    )
    members: dict[str, Any] = {
        "snapshot_id": snapshot_id,
        "parent_snapshot_id": parent,
        "manifest_list": path,
        "sequence_number": sequence,
        "summary": counted,
        "schema_id": commit["schema"],
    }
    return Snapshot(**members)
