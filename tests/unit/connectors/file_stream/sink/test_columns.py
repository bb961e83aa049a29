"""Lines of batches in columns are those of the same records one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import OPTIONAL_STRING, Schema, Type
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.file_stream.sink.task import FileStreamSinkTask
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.sink_tasks import open_runner_of
from tests.support.values.columns import to_columns

TP = TopicPartition("t", 0)
TEXTS = ["a", None, "", "two\nlines", "é 😀 \u0000", "null", "x" * 5000]


def runner(directory: Path) -> SinkTaskRunner:
    config = {"name": "c", "topics": "t", "connector.class": "FileStreamSink", "file": str(directory / "out.txt")}
    return open_runner_of(FileStreamSinkTask(), RoleContext(config, run_id="run-1"), [OffsetRange("t", 0, 0, 1000)])


def records(values: Sequence[Any], schema: Schema | None = OPTIONAL_STRING, start: int = 0) -> list[SinkRecord]:
    """Every second offset is missing, as after a compaction."""
    return [
        SinkRecord(topic="t", partition=0, offset=start + 2 * number, value_schema=schema, value=value)
        for number, value in enumerate(values)
    ]


def staged(directory: Path, sink: SinkTaskRunner) -> tuple[bytes, tuple[int, int, int]]:
    """The lines, and start, end and count of the segment."""
    sink.report(TP, 1000, end=None, reason="")
    (file,) = sink.staged_files()
    sink.close()
    return (directory / str(file.token["path"])).read_bytes(), facts_of(file)


def facts_of(file: StagedFile) -> tuple[int, int, int]:
    return file.start, file.end, file.records


def put(sink: SinkTaskRunner, given: Sequence[SinkRecord]) -> bool:
    batch = to_columns(given)
    return sink.put_columns([batch], np.asarray(batch.offsets))


def test_lines_and_segment_are_the_same(tmp_path):
    for name in ("one", "columns"):
        (tmp_path / name).mkdir()
    one_by_one, columns = runner(tmp_path / "one"), runner(tmp_path / "columns")
    for record in records(TEXTS) + records(TEXTS, start=100):
        one_by_one.put(record)
    assert put(columns, records(TEXTS))
    assert put(columns, records(TEXTS, start=100))

    expected = staged(tmp_path / "one", one_by_one)
    assert staged(tmp_path / "columns", columns) == expected
    assert expected[1] == (0, 113, 14)
    assert expected[0].startswith(b"a\nnull\n\ntwo\nlines\n")


def test_slices_of_a_batch_and_batches_of_one_are_whole(tmp_path):
    sink = runner(tmp_path)
    batch = to_columns(records(["lost", "b", "c", "lost"]))
    kept = batch.filter(np.array([False, True, True, False]))
    assert sink.put_columns([kept, to_columns(records(["d"], start=10))], np.arange(11))
    assert staged(tmp_path, sink) == (b"b\nc\nd\n", (2, 11, 3))


def test_records_one_by_one_follow_those_in_columns(tmp_path):
    sink = runner(tmp_path)
    sink.put(records(["first"])[0])
    assert put(sink, records(["second", "third"], start=2))
    sink.put(records([None], start=8)[0])
    assert staged(tmp_path, sink) == (b"first\nsecond\nthird\nnull\n", (0, 9, 4))


@pytest.mark.parametrize(
    ("values", "schema"),
    [
        ([b"\x00\xff"], Schema(Type.BYTES)),
        ([1, 2], Schema(Type.INT64)),
        (["a", None], Schema(Type.STRING, optional=True, default="none")),
    ],
    ids=["bytes", "numbers", "a null value that has a default"],
)
def test_other_values_go_one_by_one(tmp_path, values, schema):
    sink = runner(tmp_path)
    assert not put(sink, records(values, schema))
    sink.report(TP, 1000, end=None, reason="")
    assert sink.staged_files() == []
    sink.close()


def test_a_batch_of_which_one_part_has_no_columns_is_not_written_at_all(tmp_path):
    sink = runner(tmp_path)
    parts = [to_columns(records(["a"])), to_columns(records([1], Schema(Type.INT64), start=2))]
    assert not sink.put_columns(parts, np.arange(3))
    sink.report(TP, 1000, end=None, reason="")
    assert sink.staged_files() == []
    sink.close()


def test_lines_are_spilled_before_they_take_too_much_memory(tmp_path, monkeypatch):
    monkeypatch.setattr("airflow_connect.connectors.file_stream.sink.task.MEMORY_BYTES", 10)
    sink = runner(tmp_path)
    assert put(sink, records(["0123456789"]))
    assert [path.read_text() for path in tmp_path.rglob("*") if path.is_file()] == ["0123456789\n"]
    assert staged(tmp_path, sink)[0] == b"0123456789\n"


def test_values_that_are_no_text_are_named_as_the_reason(tmp_path):
    sink = runner(tmp_path)
    assert not put(sink, records([1, 2], Schema(Type.INT64)))
    assert sink.refused_columns == "values that are no text"
    default = Schema(Type.STRING, optional=True, default="d")
    assert not put(sink, records(["a", None], default))
    assert sink.refused_columns == "the sink"
