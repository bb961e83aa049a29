"""What a task gets from the driver, as keys of its configuration: its tables, and the upper bound of the run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from airflow_connect.api.source import SourcePartition
from airflow_connect.connectors.jdbc_source.offsets import QUERY_PARTITION, TABLE, known_partitions, partition_of
from airflow_connect.databases.identifiers import TableId

TABLES, END = "tables", "airflow_connect.jdbc.end_us"


@dataclass(frozen=True, slots=True)
class Item:
    """One table, or the query.

    Attributes:
        table: None for the query.
        partition: the source partition under which its offsets are written.
    """

    table: TableId | None
    partition: SourcePartition

    @property
    def name(self) -> str:
        """The table's full name, for messages."""
        return "the query" if self.table is None else f"the table {self.table.full_name}"

    @property
    def partitions(self) -> list[SourcePartition]:
        """Every source partition that may hold its offset."""
        return [QUERY_PARTITION] if self.table is None else known_partitions(self.table)


def task_config(config: Mapping[str, str], items: Sequence[Item], end_us: int) -> dict[str, str]:
    """The configuration of a task."""
    tables = [[*item.table, item.partition[TABLE]] for item in items if item.table is not None]
    return {**config, TABLES: json.dumps(tables), END: str(end_us)}


def items_of(config: Mapping[str, str]) -> list[Item]:
    """The tables of a task, or its query."""
    tables = json.loads(config[TABLES])
    if not tables:
        return [Item(None, QUERY_PARTITION)]
    return [Item(TableId(*names), partition_of(name)) for *names, name in tables]


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
