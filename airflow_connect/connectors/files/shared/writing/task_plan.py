"""Everything that a storage sink's task needs to write records to staged files; the connector creates it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.api.offsets import TopicPartition
    from airflow_connect.api.schema import Schema
    from airflow_connect.connectors.files.shared.writing.open_file import StreamSettings
    from airflow_connect.layout.late_records import LateRecords
    from airflow_connect.layout.names.object_names import NameSettings
    from airflow_connect.layout.partitioners import Partitioner
    from airflow_connect.layout.rotation import RotationSettings

IGNORE, FAIL, WRITE = "ignore", "fail", "write"


@dataclass(frozen=True, slots=True)
class StorageLayout:
    """Which file a record lands in.

    Attributes:
        partitioner: record -> directory.
        rotation: where files end.
        names: grammar of object names.
        late: which records are late, if runs detect complete directories; else None.
    """

    partitioner: Partitioner
    rotation: RotationSettings
    names: NameSettings
    late: LateRecords | None = None


@dataclass(frozen=True, slots=True)
class StorageTaskPlan:
    """Settings of one task.

    Attributes:
        value, key, headers: how each kind of file is written; None: not stored.
        now_ms: the run's frozen clock.
        flush_on_end: whether files that are still open at the end of the run are staged (true), or dropped and their
            records left for the next run (false).
        on_null_values: `ignore`, `fail` or `write`.
        report_nulls: whether ignored null values go to the dead letter queue (`report.null.values.to.dlq`).
        remembers_schemas: whether reports contain the schema of the last file, with which the next run begins.
        schemas_before: schemas with which this run begins.
        stores_records: whether values are whole records.
        tells_schema_ids: whether tasks report the ids of schemas in these.
        check_each: whether each value is first encoded separately, to find one that cannot be encoded.
        memory_budget_bytes: maximum bytes in memory of all open files of the task, before they spill to disk.
    """

    layout: StorageLayout
    value: StreamSettings
    now_ms: int
    key: StreamSettings | None = None
    headers: StreamSettings | None = None
    flush_on_end: bool = True
    on_null_values: str = FAIL
    report_nulls: bool = True
    stores_records: bool = False
    tells_schema_ids: bool = False
    check_each: bool = False
    remembers_schemas: bool = False
    schemas_before: Mapping[TopicPartition, Schema] = field(default_factory=dict)
    memory_budget_bytes: int = field(default=128 * 1024 * 1024)
