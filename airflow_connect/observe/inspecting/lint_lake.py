"""Tables of a lake that get small files, or metadata that only grows. Asks no catalog."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from airflow_connect.connectors.iceberg.data_files import TARGET_BYTES
from airflow_connect.connectors.iceberg.keys import (
    CREATE_PROPERTIES,
    PARTITION_BY,
    TABLE,
    WRITE_PROPERTIES,
    IcebergKeys,
)
from airflow_connect.connectors.iceberg.old_metadata import DELETES
from airflow_connect.connectors.iceberg.partitions import parse_partitioning
from airflow_connect.connectors.iceberg.tables import IcebergConfig
from airflow_connect.runtime.reporting.texts import format_bytes, format_count, plural

SMALL_BYTES = 16 << 20
"""Readers of tables are slow with many files below that size. A file that is smaller than its target is no harm."""
MANY_FILES, FEW_FILES = 100, 10
"""Files of one run in one table: too many, and so few that their size does not matter."""
_DAY_MS = 86_400_000
_TARGET = "write.target-file-size-bytes"
_BUCKET = re.compile(r"bucket\[(\d+)\]")


class Found(NamedTuple):
    """One finding: the key, a sentence, and what helps."""

    about: str
    found: str
    to_do: str


def advice(config: IcebergConfig, partitions: int, runs: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    """What is probably not intended.

    Args:
        config: of the sink, which is valid.
        partitions: of all topics.
        runs: the newest reports. If there is one with files, their size is known, and says more than a forecast.
    """
    known = [run for run in runs if run.get("tables")]
    yield from _small_files(config, known) if known else _many_buckets(config, partitions)
    yield from _small_target(config)
    if config.creates and config.create_properties.get(DELETES, "").lower() != "true":
        yield Found(
            f"{CREATE_PROPERTIES}{DELETES}",
            "Each commit writes the whole metadata of the table into a new file. In tables that this connector creates,"
            " old ones are never deleted.",
            "Set it to true: the table keeps the last 100, or write.metadata.previous-versions-max. For a table that"
            " exists, set the property of the table.",
        )


def _small_files(config: IcebergConfig, runs: Sequence[Mapping[str, Any]]) -> Iterator[Found]:
    """The tables to which the last runs have added many small files."""
    files, sizes, snapshots = Counter[str](), Counter[str](), Counter[str]()
    for run in runs:
        for one in run["tables"]:
            if one["run_id"] == run["run_id"]:  # Not what it has finished: that is in the history by itself.
                files[one["table"]] += one["files"]
                sizes[one["table"]] += one["size_bytes"]
                snapshots[one["table"]] += 1
    days = max(1.0, (runs[0]["ended_ms"] - runs[-1]["started_ms"]) / _DAY_MS)
    for table, count in files.most_common():
        if sizes[table] / count >= SMALL_BYTES or count / snapshots[table] <= FEW_FILES:
            continue
        yield Found(
            _key_of(config, table),
            f"The last {plural(snapshots[table], 'run')} added {plural(count, 'file')} of"
            f" {format_bytes(sizes[table] / count)} on average to table {table},"
            f" {plural(round(count / days), 'file')} a day.",
            "A run writes a file for each partition of its topics and each partition of the table. Run less often, use"
            " fewer buckets or parts, and compact the table each day.",
        )


def _key_of(config: IcebergConfig, table: str) -> str:
    """The key with the partitioning of a table; "": of all tables that records name."""
    own = [f"{TABLE}{name}.{PARTITION_BY}" for name in (table, table.rpartition(".")[2]) if name]
    return next((key for key in own if key in config.raw), str(IcebergKeys.partition_by))


def _many_buckets(config: IcebergConfig, partitions: int) -> Iterator[Found]:
    for table in config.tables or ("",):
        key = _key_of(config, table)
        text = config.settings_of(table).partition_by if table else config.partition_by
        buckets = 1
        for column in parse_partitioning(text, key):
            if (number := _BUCKET.fullmatch(column.transform)) is not None:
                buckets *= int(number[1])
        files = buckets * partitions
        if buckets > 1 and files > MANY_FILES:
            of = f"table {table}" if table else "each table"
            yield Found(
                key,
                f"Each run may add {plural(files, 'file')} to {of}: {plural(partitions, 'partition')} of topics times"
                f" {plural(buckets, 'bucket')}, for each day or other part that it has records of.",
                f"Use about {_fitting(partitions)} buckets, or run less often: a file should have"
                f" {SMALL_BYTES >> 20} MiB or more.",
            )


def _fitting(partitions: int) -> str:
    return format_count(max(1, min(16, MANY_FILES // max(1, partitions))))


def _small_target(config: IcebergConfig) -> Iterator[Found]:
    given: Iterable[tuple[str, str]] = [
        *((f"{CREATE_PROPERTIES}{_TARGET}", value) for value in [config.create_properties.get(_TARGET)] if value),
        *((f"{prefix}{_TARGET}", str(config.raw[f"{prefix}{_TARGET}"])) for prefix in WRITE_PROPERTIES
          if f"{prefix}{_TARGET}" in config.raw),
    ]  # fmt: skip
    for key, value in given:
        if value.strip().isdigit() and int(value) < SMALL_BYTES:
            yield Found(
                key,
                f"Files end at {format_count(int(value))} bytes, so the table gets many small ones.",
                f"Remove it, for files of up to {TARGET_BYTES >> 20} MiB, or set it to {SMALL_BYTES} or more.",
            )
