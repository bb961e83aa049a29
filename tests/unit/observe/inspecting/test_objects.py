"""Records of published files, by the ending of their names."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow as pa
import pytest
from pyarrow import orc, parquet

from airflow_connect.errors import ConfigError, DataError
from airflow_connect.observe.inspecting import objects
from airflow_connect.observe.inspecting.objects import records_of
from airflow_connect.stores.local.file_system import LocalFileSystem

ROWS = [{"n": 1, "t": "é"}, {"n": 2, "t": None}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS).encode()


def write_avro(path: Path) -> None:
    schema = {"type": "record", "name": "r", "fields": [
        {"name": "n", "type": "int"}, {"name": "t", "type": ["null", "string"]},
    ]}  # fmt: skip
    with path.open("wb") as out:
        fastavro.writer(out, schema, ROWS)


WRITERS: dict[str, Callable[[Path], object]] = {
    "x.avro": write_avro,
    "x.snappy.parquet": lambda path: parquet.write_table(pa.Table.from_pylist(ROWS), path),
    "x.orc": lambda path: orc.write_table(pa.Table.from_pylist(ROWS), path),
    "x.json": lambda path: path.write_bytes(LINES),
    "x.json.gz": lambda path: path.write_bytes(gzip.compress(LINES)),
}


@pytest.mark.parametrize("name", WRITERS)
def test_every_format_is_read(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    WRITERS[name](path)
    assert records_of(LocalFileSystem(), str(path), 10) == ROWS
    assert records_of(LocalFileSystem(), str(path), 1) == ROWS[:1]


def test_other_files_are_lines(tmp_path: Path) -> None:
    (tmp_path / "x.bin").write_bytes(b"a\nb\xff\n")
    assert records_of(LocalFileSystem(), str(tmp_path / "x.bin"), 10) == ["a", "b\ufffd"]


@pytest.mark.parametrize("name", WRITERS)
def test_a_damaged_file_is_an_error_with_its_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(b"nothing of the kind")
    with pytest.raises(DataError, match=f"{name} cannot be read as its name says"):
        records_of(LocalFileSystem(), str(tmp_path / name), 1)


def test_a_missing_and_a_huge_file_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="There is no file"):
        records_of(LocalFileSystem(), str(tmp_path / "x"), 1)
    (tmp_path / "x").write_bytes(b"12345")
    monkeypatch.setattr(objects, "MOST_BYTES", 4)
    with pytest.raises(ConfigError, match="has 5 bytes; at most 4"):
        records_of(LocalFileSystem(), str(tmp_path / "x"), 1)
