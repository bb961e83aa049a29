"""What a task gets from the driver, as keys of its configuration: tables, the upper bound of the run, a snapshot."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.source import SourcePartition
from airflow_connect.connectors.jdbc.source.offsets.positions import (
    QUERY_PARTITION,
    TABLE,
    known_partitions,
    partition_of,
)
from airflow_connect.connectors.jdbc.source.offsets.ranges import TableRange
from airflow_connect.databases.identifiers import TableId
from airflow_connect.errors import ConnectError, DataError, OffsetError

SEVERAL = "airflow_connect.jdbc.several"
"""Whether the run reads several tables, so that a task leaves out one that it cannot read."""
TABLES, END, SNAPSHOT = "tables", "airflow_connect.jdbc.end_us", "airflow_connect.jdbc.snapshot"
STATE = "airflow_connect.jdbc.state"


_OF_A_TABLE = frozenset(
    {
        "database.column", "database.nullable", "database.name", "database.permission", "database.missing_object",
        "database.failed", "database.value", "database.set_back", "database.recreated", "offset.refused",
    }
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One table, or the query.

    Attributes:
        table: None for the query.
        partition: the source partition under which its offsets are written.
        part: the range of the table that is read; None: all of it.
    """

    table: TableId | None
    partition: SourcePartition
    part: TableRange | None = None

    @property
    def name(self) -> str:
        """The table's full name, for messages."""
        return "the query" if self.table is None else f"the table {self.table.full_name}"

    @property
    def partitions(self) -> list[SourcePartition]:
        """Every source partition that may hold its offset."""
        if self.part is not None:
            return [self.partition]
        return [QUERY_PARTITION] if self.table is None else known_partitions(self.table)


def task_config(
    config: Mapping[str, str],
    items: Sequence[Item],
    end_us: int,
    snapshot: str = "",
    *,
    several: bool = False,
    state: str = "",
) -> dict[str, str]:
    """The configuration of a task.

    Args:
        config: of the connector.
        items: that the task reads.
        end_us: upper bound of the run.
        snapshot: as `Snapshot.to_json` wrote it, or "".
        several: whether the run has several tables.
        state: what the server of the driver has, as `state_of` wrote it.
    """
    tables = [
        [*item.table, item.partition[TABLE], *([item.part.to_json()] if item.part is not None else [])]
        for item in items
        if item.table is not None
    ]
    return {
        **config,
        TABLES: json.dumps(tables),
        END: str(end_us),
        SNAPSHOT: snapshot,
        SEVERAL: str(several).lower(),
        STATE: state,
    }


def items_of(config: Mapping[str, str]) -> list[Item]:
    """The tables of a task, or its query."""
    tables = json.loads(config[TABLES])
    if not tables:
        return [Item(None, QUERY_PARTITION)]
    return [_item(*parts) for parts in tables]


def _item(catalog: str, schema: str, table: str, name: str, part: Sequence[Any] | None = None) -> Item:
    found = None if part is None else TableRange.from_json(part)
    return Item(TableId(catalog, schema, table), partition_of(name) if found is None else found.partition, found)


def is_of_a_table(error: ConnectError) -> bool:
    """Whether an error is about one table only, and stays until somebody corrects its cause."""
    return not error.retriable and (error.code in _OF_A_TABLE or isinstance(error, DataError | OffsetError))


def grouped(items: Sequence[Item], groups: int) -> list[Sequence[Item]]:
    """Consecutive groups whose sizes differ by one at most, none empty (ConnectorUtils.groupPartitions)."""
    count = min(groups, len(items))
    if not count:
        return []
    size, larger = divmod(len(items), count)
    parts, start = [], 0
    for index in range(count):
        end = start + size + (1 if index < larger else 0)
        parts.append(items[start:end])
        start = end
    return parts
