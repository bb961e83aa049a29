"""What the snapshots of a table say about the records that it holds: the offsets in their summaries."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.api.json_document import JsonDocument
from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.connectors.iceberg.chain import PREFIX, Chain, snapshot_id
from airflow_connect.connectors.iceberg.history import branch_of

if TYPE_CHECKING:
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot

_RANGE = re.compile(r"(.+)-([0-9]+):([0-9]+)-([0-9]+)")


@dataclass(frozen=True, slots=True)
class RunSnapshot(JsonDocument):
    """The snapshot of a run.

    Attributes:
        snapshot_id: a number of 63 bits, as text: JavaScript's numbers have 53.
        run_id: of the run that has added it.
        committed_ms: milliseconds since the epoch.
        rows, files: that it has added.
        offsets: from the first to the last record of each partition; () if its summary does not say them.
    """

    snapshot_id: str
    run_id: str
    committed_ms: int
    rows: int
    files: int
    offsets: tuple[OffsetRange, ...]


@dataclass(frozen=True, slots=True)
class TableHistory:
    """The snapshots of one connector on a branch.

    Attributes:
        snapshots: oldest first.
        has_expired: whether there were earlier ones that the table does not have any more.
    """

    snapshots: tuple[RunSnapshot, ...]
    has_expired: bool


def history_of(table: Table, connector: str, branch: str) -> TableHistory:
    """Read the summaries of a branch's snapshots. Those of other writers are left out.

    Raises:
        StateError: the property of the table that names its runs cannot be read.
    """
    every = list(branch_of(table, branch))
    own = [one for one in every if one.summary is not None and one.summary[f"{PREFIX}connector"] == connector]
    found = tuple(_run_snapshot(one) for one in reversed(own))
    known, table_uuid = {one.run_id for one in found}, str(table.metadata.table_uuid)
    # A snapshot that is in the table, but not in the branch, was rolled back.
    has_expired = any(
        run not in known and table.metadata.snapshot_by_id(snapshot_id(run, table_uuid, branch)) is None
        for run in Chain.of(table.properties, connector, branch).runs
    )
    return TableHistory(found, has_expired or bool(every and _had_parent(every[-1])))


def _had_parent(snapshot: Snapshot) -> bool:
    """Whether a snapshot was not the first of the table. pyiceberg removes the id of a parent that it expires."""
    return snapshot.parent_snapshot_id is not None or (snapshot.sequence_number or 0) > 1


def _run_snapshot(snapshot: Snapshot) -> RunSnapshot:
    summary = snapshot.summary
    text = (summary[f"{PREFIX}offsets"] if summary is not None else None) or ""
    return RunSnapshot(
        snapshot_id=str(snapshot.snapshot_id),
        run_id=(summary[f"{PREFIX}run-id"] if summary is not None else None) or "",
        committed_ms=snapshot.timestamp_ms,
        rows=int((summary["added-records"] if summary is not None else None) or 0),
        files=int((summary["added-data-files"] if summary is not None else None) or 0),
        offsets=tuple(_range(part) for part in text.split(",") if part),
    )


def _range(text: str) -> OffsetRange:
    found = _RANGE.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is not <topic>-<partition>:<start>-<end>.")
    return OffsetRange(found[1], int(found[2]), int(found[3]), int(found[4]))


@dataclass(frozen=True, slots=True)
class Twice(JsonDocument):
    """Offsets that two snapshots say they hold."""

    offsets: OffsetRange
    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Coverage:
    """Which offsets the snapshots of a table hold.

    Attributes:
        spans: from the first to the last record of each partition, over all snapshots.
        missing: offsets between them, and up to the committed offset, that no snapshot has.
        twice: offsets that more than one has.
    """

    spans: tuple[OffsetRange, ...]
    missing: tuple[OffsetRange, ...]
    twice: tuple[Twice, ...]


def coverage_of(
    snapshots: tuple[RunSnapshot, ...], committed: Mapping[TopicPartition, int], begins: Mapping[TopicPartition, int]
) -> Coverage:
    """Put the offsets of snapshots beside each other, and beside those that Kafka has.

    Args:
        snapshots: of one connector.
        committed: offsets of the connector's group.
        begins: where the span of a partition begins, an empty one, if no snapshot has a record of it; others have none.
    """
    ranges: dict[TopicPartition, list[tuple[OffsetRange, str]]] = {}
    for snapshot in snapshots:
        for one in snapshot.offsets:
            ranges.setdefault(one.topic_partition, []).append((one, snapshot.snapshot_id))
    spans, missing, twice = [], [], []
    for tp, begin in begins.items():
        ranges.setdefault(tp, [(OffsetRange(*tp, begin, begin), "")])
    for tp, own in sorted(ranges.items()):
        own.sort(key=lambda entry: (entry[0].start, entry[0].end))
        end, holder = own[0][0].start, own[0][1]
        for one, id_of_snapshot in own:
            if one.start > end:
                missing.append(OffsetRange(*tp, end, one.start))
            elif one.start < end:
                twice.append(Twice(OffsetRange(*tp, one.start, min(end, one.end)), holder, id_of_snapshot))
            if one.end > end:
                end, holder = one.end, id_of_snapshot
        spans.append(OffsetRange(*tp, own[0][0].start, end))
        if (reached := committed.get(tp, end)) > end:
            missing.append(OffsetRange(*tp, end, reached))
    return Coverage(tuple(spans), tuple(missing), tuple(twice))
