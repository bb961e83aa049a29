"""Brings a metastore up to date: the table, its columns, its partitions. Idempotent."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from airflow_connect.errors import AccessError, PublishConflictError
from airflow_connect.hive.client import MetastoreClient, user_name
from airflow_connect.hive.columns import Column
from airflow_connect.hive.evolution import evolved
from airflow_connect.hive.tables import FILE_CLASSES, Partition, Table, is_same_location
from airflow_connect.hive.types import parse_type

PARTITIONS_AT_ONCE = 200
"""Partitions per request: the metastore creates and checks a directory for each while the client waits."""

_EXTERNAL = {"EXTERNAL": "TRUE"}
_CUT_OFF = "airflow_connect.columns"
_LEAVE = "It was not changed. "


@dataclass(frozen=True, slots=True)
class Change:
    """What was done to a table.

    Attributes:
        created: it was made.
        columns: names of columns that were added or made wider.
        partitions: how many were added.
    """

    created: bool = False
    columns: tuple[str, ...] = ()
    partitions: int = 0


class Catalog:
    """Tables of one database."""

    def __init__(self, client: MetastoreClient) -> None:
        """`client` belongs to the caller, who closes it."""
        self._client = client

    def ensure_database(self, name: str) -> None:
        """Create the database if it does not exist.

        Raises:
            UnavailableError, AccessError: as `MetastoreClient`.
        """
        if not self._client.database_exists(name):
            self._client.create_database(name)

    def properties(self, table: Table) -> dict[str, str]:
        """Properties of the table in the metastore; {} if there is no such table.

        Raises:
            UnavailableError, AccessError: as `MetastoreClient`.
        """
        existing = self._client.table(table.database, table.name)
        return dict(existing.parameters or {}) if existing is not None else {}

    def sync(self, table: Table, partitions: Sequence[Partition]) -> Change:
        """Create the table or add its new columns, then add missing partitions.

        Raises:
            PublishConflictError: another table, or a partition at another place, has the name.
            SchemaError: a column cannot follow.
            UnavailableError, AccessError: as `MetastoreClient`.
        """
        existing = self._client.table(table.database, table.name)
        created = existing is None
        if existing is None:
            self._client.create_table(_new_table(table))
            existing = self._client.table(table.database, table.name)
            if existing is None:
                raise AccessError(
                    f"The Hive table {table.full_name} was dropped while it was being created.",
                    code="hive.refused",
                    suggestion="Run again.",
                )
        _refuse_other(existing, table)
        changed = self._grow(existing, table)
        return Change(created, changed, self._add(existing, table, partitions))

    def _grow(self, existing: Any, table: Table) -> tuple[str, ...]:
        """Change columns and properties of `existing` where necessary, in the metastore and in the object.

        A metastore compares the types of a column as texts and refuses a struct with one more field as "incompatible"
        (hive.metastore.disallow.incompatible.col.type.changes, Hive's MetaStoreUtils), but only where a column was
        before. So a table with such a column is first cut off before it, and then gets all of its columns; what they
        were is kept in a property in between, for a run that dies there.
        """
        there = _columns(existing)
        kept = {name: value for name, value in (existing.parameters or {}).items() if name != _CUT_OFF}
        before = _columns_of_text(existing.parameters[_CUT_OFF]) if _CUT_OFF in (existing.parameters or {}) else there
        after = evolved(before, table.columns, table.full_name)
        known = {column.name.lower(): column.type for column in there}
        changed = tuple(c.name for c in after if known.get(c.name.lower()) != c.type)
        if changed:
            nested = [n for n, c in enumerate(there) if c.type.members and c.name in changed]
            if nested:
                existing.sd.cols = existing.sd.cols[: nested[0]]
                existing.parameters = {**kept, _CUT_OFF: _text_of_columns(before)}
                self._client.alter_table(existing, cascade=False)
            existing.sd.cols = [_field(column) for column in after]
        if changed or {**kept, **table.properties} != existing.parameters:
            existing.parameters = {**kept, **table.properties}
            self._client.alter_table(existing, cascade=bool(changed))
        return changed

    def _add(self, existing: Any, table: Table, partitions: Sequence[Partition]) -> int:
        added = 0
        distinct = list(dict.fromkeys(partitions))
        for start in range(0, len(distinct), PARTITIONS_AT_ONCE):
            batch = distinct[start : start + PARTITIONS_AT_ONCE]
            names = [partition.name(table.partition_columns) for partition in batch]
            there = self._client.partition_locations(table.database, table.name, names)
            missing = []
            for partition in batch:
                location = there.get(partition.values)
                if location is None:
                    missing.append(_new_partition(existing, table, partition))
                elif not is_same_location(location, partition.location):
                    raise PublishConflictError(
                        f"The partition {partition.name(table.partition_columns)} of the Hive table {table.full_name}"
                        f" is at {location}, but the files are in {partition.location}.",
                        code="hive.partition_conflict",
                        suggestion=f"{_LEAVE}Correct it with ALTER TABLE ... PARTITION ... SET LOCATION, or drop it,"
                        " and run again.",
                    )
            if missing:
                self._client.add_partitions(table.database, table.name, missing)
                added += len(missing)
        return added


def _refuse_other(existing: Any, table: Table) -> None:
    """Refuse a table that does not belong to these files.

    Raises:
        PublishConflictError: says what is different.
    """
    where = f"The Hive table {table.full_name} exists"
    if not is_same_location(existing.sd.location or "", table.location):
        raise PublishConflictError(
            f"{where} over {existing.sd.location or 'no directory'}, but the files are in {table.location}.",
            code="hive.table_conflict",
            suggestion=f"{_LEAVE}Choose another hive.table.name or hive.database (dots and dashes in topic names become"
            " _), or correct the table with ALTER TABLE ... SET LOCATION.",
            config_path="hive.table.name",
        )
    serde = existing.sd.serdeInfo.serializationLib if existing.sd.serdeInfo else None
    if serde != FILE_CLASSES[table.kind].serde:
        raise PublishConflictError(
            f"{where} for files read by {serde}, but format.class writes {table.kind.name} files.",
            code="hive.table_conflict",
            suggestion=f"{_LEAVE}Write into another topics.dir with another hive.table.name, or use the"
            " previous format.",
            config_path="hive.table.name",
        )
    keys = tuple(key.name for key in existing.partitionKeys or ())
    if keys != table.partition_columns:
        raise PublishConflictError(
            f"{where} with the partition columns {', '.join(keys) or '(none)'}, but the partitioner creates"
            f" {', '.join(table.partition_columns)}.",
            code="hive.table_conflict",
            suggestion=f"{_LEAVE}Write into another topics.dir with another hive.table.name, or use the"
            " previous partitioner.",
            config_path="hive.table.name",
        )


def _columns(existing: Any) -> list[Column]:
    return [Column(c.name, parse_type(c.type), c.comment or "") for c in existing.sd.cols or ()]


def _text_of_columns(columns: Sequence[Column]) -> str:
    return json.dumps([[c.name, str(c.type), c.comment] for c in columns])


def _columns_of_text(text: str) -> list[Column]:
    return [Column(name, parse_type(kind), comment) for name, kind, comment in json.loads(text)]


def _field(column: Column) -> Any:
    from pymetastore.hive_metastore.ttypes import FieldSchema

    return FieldSchema(column.name.lower(), str(column.type), column.comment or None)


def _storage(table: Table, columns: Sequence[Any], location: str) -> Any:
    from pymetastore.hive_metastore.ttypes import SerDeInfo, StorageDescriptor

    classes = FILE_CLASSES[table.kind]
    return StorageDescriptor(
        cols=list(columns),
        location=location,
        inputFormat=classes.input_format,
        outputFormat=classes.output_format,
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=classes.serde, parameters=dict(classes.parameters)),
        bucketCols=[],
        sortCols=[],
        parameters={},
    )


def _new_table(table: Table) -> Any:
    from pymetastore.hive_metastore.ttypes import FieldSchema
    from pymetastore.hive_metastore.ttypes import Table as ThriftTable

    return ThriftTable(
        tableName=table.name,
        dbName=table.database,
        owner=user_name(),
        createTime=int(time.time()),
        lastAccessTime=0,
        retention=0,
        sd=_storage(table, [_field(column) for column in table.columns], table.location),
        partitionKeys=[FieldSchema(name, "string", None) for name in table.partition_columns],
        parameters={**_EXTERNAL, **table.properties},
        tableType="EXTERNAL_TABLE",
    )


def _new_partition(existing: Any, table: Table, partition: Partition) -> Any:
    from pymetastore.hive_metastore.ttypes import Partition as ThriftPartition

    return ThriftPartition(
        values=list(partition.values),
        dbName=table.database,
        tableName=table.name,
        createTime=int(time.time()),
        lastAccessTime=0,
        sd=_storage(table, existing.sd.cols, partition.location),
        parameters={},
    )
