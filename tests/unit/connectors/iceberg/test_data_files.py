"""Data files: where they end, how they are written, and what manifests say of them."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from airflow_connect.api.schema import Schema, Type, struct
from airflow_connect.errors import ConfigError
from tests.unit.connectors.iceberg.lakes import Lake

LONG, TEXT = Schema(Type.INT64), Schema(Type.STRING)
SCHEMA = struct(("n", LONG), ("text", TEXT))


def rows(count: int) -> list[Any]:
    """Texts that cannot be compressed to less than half."""
    source = random.Random(1)
    return [{"n": n, "text": source.randbytes(500).hex()} for n in range(count)]


def test_files_end_at_their_target_size_without_further_settings(tmp_path: Path) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_write-props_write.target-file-size-bytes": "1000000"})
    staged = lake.put(rows(6000), SCHEMA)
    sizes = [file.size_bytes for file in staged]
    assert all(1_000_000 <= size < 1_700_000 for size in sizes[:-1]) and 2 <= len(sizes) <= 4
    assert [file.records for file in staged] == [file.end - file.start for file in staged]
    assert sorted(row["n"] for row in lake.rows()) == [*range(6000)]


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "uncompressed", "lz4", "brotli"])
def test_codec_of_the_table_and_of_the_configuration(tmp_path: Path, codec: str) -> None:
    lake = Lake(tmp_path, **{"iceberg_tables_auto-create-props_write.parquet.compression-codec": codec})
    (file,) = lake.put(rows(10), SCHEMA)
    written = pq.ParquetFile(file.token["path"].removeprefix("file://")).metadata.row_group(0).column(1).compression
    assert written == {"zstd": "ZSTD", "uncompressed": "UNCOMPRESSED"}.get(codec, codec.upper())
    lake.set(**{"iceberg_table_write-props_write.parquet.compression-codec": "gzip"})
    (file,) = lake.put(rows(10), SCHEMA)
    written = pq.ParquetFile(file.token["path"].removeprefix("file://")).metadata.row_group(0).column(1).compression
    assert written == "GZIP"


@pytest.mark.parametrize(
    ("name", "value"),
    [("write.format.default", "orc"), ("write.parquet.compression-codec", "lzo"), ("write.target-file-size-bytes", "x"),
     ("write.parquet.row-group-size-bytes", "-")],
)  # fmt: skip
def test_properties_that_cannot_be_followed_are_refused_by_name(tmp_path: Path, name: str, value: str) -> None:
    lake = Lake(tmp_path, **{f"iceberg_tables_write-props_{name}": value})
    with pytest.raises(ConfigError) as caught:
        lake.put(rows(1), SCHEMA)
    assert caught.value.config_path == f"iceberg.tables.write-props.{name}"


def test_statistics_are_as_the_table_wants_them(tmp_path: Path) -> None:
    wanted: dict[str, dict[int, bytes]] = {
        "none": {}, "counts": {}, "truncate(2)": {1: bytes(8), 2: b"ab"}, "full": {1: bytes(8), 2: b"abcdef"}
    }  # fmt: skip
    for number, (mode, bounds) in enumerate(wanted.items()):
        lake = Lake(tmp_path / str(number), **{"iceberg_tables_write-props_write.metadata.metrics.default": mode})
        lake.put([{"n": 0, "text": "abcdef"}], SCHEMA)
        (task,) = lake.table().scan().plan_files()
        assert dict(task.file.lower_bounds.items()) == bounds
        assert dict(task.file.value_counts.items()) == ({} if mode == "none" else {1: 1, 2: 1})


def test_wide_tables_have_bounds_of_their_first_columns(tmp_path: Path) -> None:
    schema = struct(*((f"c{n}", LONG) for n in range(150)))
    lake = Lake(tmp_path)
    lake.put([{f"c{n}": n for n in range(150)}], schema)
    (task,) = lake.table().scan().plan_files()
    assert sorted(task.file.lower_bounds) == [*range(1, 101)]
