"""A chain of files gives back the records in the order of their offsets, from any position on."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.restore.backup import Backup, FileNames
from airflow_connect.connectors.restore.plan import chains_left
from airflow_connect.connectors.restore.progress import Progress
from airflow_connect.connectors.restore.read import chain as chain_module
from airflow_connect.connectors.restore.read.chain import ChainReader, FileReader, Piece
from airflow_connect.connectors.restore.read.opening import Store
from airflow_connect.connectors.restore.read.records import holes
from airflow_connect.errors import DataError
from airflow_connect.stores.local.file_system import LocalFileSystem
from tests.support.copies.backups import FORMATS, record, write_file
from tests.support.session.searching import examples

TP = TopicPartition("t", 0)


def pieces(root: Path, form: str = "parquet", progress: Progress | None = None) -> Iterator[Piece]:
    files = LocalFileSystem()
    grammar = FileNames(str(root), "+", f".{form}")
    backup = Backup.of(files.walk(f"{root}/", recursive=True), grammar, lambda _: True)
    committed = {} if progress is None else {TP: progress}
    for chain in chains_left(backup, committed, identity_is_content=False):
        yield from ChainReader(chain, FileReader(Store(files, str(root)), form, chain.topic_partition)).pieces()


def offsets(found: Iterator[Piece]) -> list[int]:
    return [offset for piece in found for offset in piece.records.offsets.tolist()]


@st.composite
def laid_out(draw: st.DrawFn) -> list[tuple[str, list[dict[str, Any]]]]:
    """Records of a partition with gaps, as files in directories between which they alternate."""
    open_files: dict[str, list[dict[str, Any]]] = {}
    closed, offset = [], draw(st.integers(0, 5))
    for _ in range(draw(st.integers(1, 40))):
        directory = draw(st.sampled_from(["h=1", "h=2", "h=3"]))
        open_files.setdefault(directory, []).append(record(offset, b"%d" % offset))
        offset += draw(st.sampled_from([1, 1, 1, 2, 9]))
        if len(open_files[directory]) >= draw(st.integers(1, 9)):
            closed.append((directory, open_files.pop(directory)))
    return [*closed, *open_files.items()]


@settings(max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(layout=laid_out(), data=st.data())
def test_interleaved_files_are_merged_and_every_stop_resumes_exactly(layout: Any, data: st.DataObject) -> None:
    form = data.draw(st.sampled_from(list(FORMATS)))
    has_end = data.draw(st.booleans())
    every = sorted(one["offset"] for _, records in layout for one in records)
    with tempfile.TemporaryDirectory() as folder:
        for directory, records in layout:
            write_file(Path(folder), records, directory, form, end=has_end)
        found = list(pieces(Path(folder), form))
        assert [o for piece in found for o in piece.records.offsets.tolist()] == every
        assert holes(every[0], np.array(every))[0] == every[-1] - every[0] + 1 - len(every)
        values = [v for piece in found for v in piece.records.columns["value"].to_pylist()]
        assert values == [b"%d" % offset for offset in every]
        stop = data.draw(st.sampled_from(found)).progress
        rest = offsets(pieces(Path(folder), form, stop))
        assert rest == [offset for offset in every if offset >= stop.position]


def test_files_in_one_row_are_not_sorted_or_copied(tmp_path: Path) -> None:
    for start in (0, 10, 20):
        write_file(tmp_path, [record(start + n) for n in range(10)])
    found = list(pieces(tmp_path))
    assert [len(piece.records) for piece in found] == [10, 10, 10]
    assert found[-1].progress.position == found[-1].progress.first_open == 30


def test_record_in_two_files_is_an_error_that_names_both(tmp_path: Path) -> None:
    write_file(tmp_path, [record(n) for n in range(10)])
    write_file(tmp_path, [record(n) for n in range(5, 15)])
    with pytest.raises(DataError, match=r"t-0@5 is in more than one file .*0000000000\+.*0000000005\+") as caught:
        offsets(pieces(tmp_path))
    assert caught.value.code == "restore.overlap"


def test_two_files_that_begin_with_the_same_record_are_refused_before_anything_is_read(tmp_path: Path) -> None:
    write_file(tmp_path, [record(n) for n in range(10)], "a")
    write_file(tmp_path, [record(0)], "b")
    with pytest.raises(DataError, match=r"begin with t-0@0: t/a/.* and t/b/"):
        next(pieces(tmp_path))


def test_too_many_files_at_a_time_are_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chain_module, "MOST_OPEN", 2)
    for n in range(3):
        write_file(tmp_path, [record(n), record(100 + n)], f"d={n}")
    with pytest.raises(DataError, match="More than 2 files of t-0 interleave") as caught:
        offsets(pieces(tmp_path))
    assert caught.value.code == "restore.interleaved"


@pytest.mark.parametrize("form", FORMATS)
def test_cut_file_is_an_error_with_its_name_and_version(tmp_path: Path, form: str) -> None:
    path = write_file(tmp_path, [record(n) for n in range(1000)], form=form)
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(DataError, match=rf"{re.escape(str(path))} \(\d+ bytes, .*\) cannot be read") as caught:
        offsets(pieces(tmp_path, form))
    assert caught.value.code == "restore.damaged"


@pytest.mark.parametrize("form", FORMATS)
def test_empty_file_is_an_error(tmp_path: Path, form: str) -> None:
    write_file(tmp_path, [record(0)], form=form).write_bytes(b"")
    with pytest.raises(DataError, match="cannot be read"):
        offsets(pieces(tmp_path, form))


@pytest.mark.parametrize(
    ("records", "name", "message"),
    [
        ([record(3), record(4)], "t+0+0000000000.parquet", "its first record has offset 3"),
        ([record(0), record(4)], "t+0+0000000000+0000000009.parquet", "its last record has offset 4"),
        ([record(0, partition=1)], "t+0+0000000000.parquet", "another partition than 0"),
        ([record(0, topic="u")], "t+0+0000000000.parquet", "another topic than t"),
        ([record(0), record(0)], "t+0+0000000000.parquet", "offset 0 comes after 0"),
    ],
    ids=["start", "end", "partition", "topic", "order"],
)
def test_file_whose_name_says_something_else_is_an_error(tmp_path: Path, records: Any, name: str, message: str) -> None:
    path = write_file(tmp_path, records)
    (tmp_path / "t" / "p").mkdir(parents=True, exist_ok=True)
    path.rename(tmp_path / "t" / "p" / name)
    with pytest.raises(DataError, match=message):
        offsets(pieces(tmp_path))


def test_changed_file_is_an_error_with_both_states(tmp_path: Path) -> None:
    path = write_file(tmp_path, [record(0)])
    write_file(tmp_path, [record(1), record(2)])
    found = pieces(tmp_path)
    next(found)
    second = next(one for one in path.parent.iterdir() if one != path)
    size = second.stat().st_size
    second.write_bytes(second.read_bytes() + b"x")
    with pytest.raises(DataError, match=rf"was {size} bytes, modified .* is {size + 1} bytes, modified") as caught:
        next(found)
    assert caught.value.code == "restore.changed_meanwhile"


def test_file_of_other_columns_is_refused_with_their_names(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = write_file(tmp_path, [record(0)])
    pq.write_table(pa.table({"id": [1], "name": ["a"]}), path)
    with pytest.raises(DataError, match="does not hold whole records: its fields are id, name") as caught:
        offsets(pieces(tmp_path))
    assert caught.value.code == "restore.no_backup"
