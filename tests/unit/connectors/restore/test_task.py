"""The task: batches of columns and records, limits, temporary errors, chains that are left out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.restore import task as task_module
from airflow_connect.connectors.restore.backup import Backup, FileNames
from airflow_connect.connectors.restore.connector import LocalSourceTask
from airflow_connect.connectors.restore.plan import chains_left
from airflow_connect.connectors.restore.progress import Progress, topic_partition_of
from airflow_connect.connectors.restore.read import opening
from airflow_connect.connectors.restore.work import task_config
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.stores.local import file_system
from airflow_connect.stores.local.file_system import LocalFileSystem
from tests.support.copies.backups import FORMATS, record, write_file
from tests.unit.connectors.file_stream.source.source_runs import Committed, Context


@dataclass
class RestoreContext(Context):
    """What the task may ask, and which chains it has left out."""

    left_out: dict[str, ConnectError] = field(default_factory=dict)

    def leave_out(self, part: str, error: ConnectError) -> None:
        self.left_out[part] = error


def started(folder: Path, context: RestoreContext, **config: str) -> LocalSourceTask:
    """A task for everything that is left of a backup."""
    root, extension = f"{folder}/topics", config.get("format.class", "ParquetFormat").removesuffix("Format").lower()
    listed = LocalFileSystem().walk(f"{root}/", recursive=True)
    backup = Backup.of(listed, FileNames(root, "+", f".{extension}"), lambda _: True)
    known = {topic_partition_of(root, at): Progress.of(offset) for at, offset in context.offset_reader.committed()}
    chains = chains_left(backup, known, identity_is_content=False)  # type: ignore[arg-type]
    chains = [one._replace(progress=replace(one.progress, topic_id="id")) for one in chains]
    whole = {"store.url": f"file://{folder}", "format.class": "ParquetFormat", **config}
    task = LocalSourceTask()
    task.initialize(context)  # type: ignore[arg-type]
    task.start(task_config(whole, chains))
    return task


def in_columns(task: LocalSourceTask) -> Iterator[tuple[int, list[bytes | None], Mapping[str, Any]]]:
    while not task.has_ended():
        found = task.poll_columns()
        if found is not None:
            yield found.partition or 0, found.values.to_pylist(), found.source_offset


def values_of(task: LocalSourceTask) -> list[bytes | None]:
    return [value for _, values, _ in in_columns(task) for value in values]


def backup_of(folder: Path, files: int = 3, size: int = 10, form: str = "parquet") -> list[bytes]:
    for number in range(files):
        records = [record(n, b"%d" % n) for n in range(number * size, (number + 1) * size)]
        write_file(folder / "topics", records, form=form)
    return [b"%d" % n for n in range(files * size)]


def test_files_that_are_done_are_told_for_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task_module, "RECORDS_OF_COLUMNS", 7)
    backup_of(tmp_path, files=3, size=10)
    write_file(tmp_path / "topics", [record(0, partition=1)])
    context = RestoreContext(Committed())
    task = started(tmp_path, context)
    done = [context.done for _ in in_columns(task)]
    assert done == [0, 1, 1, 2, 2, 3, 4]


@pytest.mark.parametrize("form", FORMATS)
def test_large_files_are_read_by_ranges(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str) -> None:
    monkeypatch.setattr(opening, "WHOLE_BYTES", 0)
    expected = backup_of(tmp_path, form=form)
    task = started(tmp_path, RestoreContext(Committed()), **{"format.class": f"{form.capitalize()}Format"})
    assert values_of(task) == expected


@pytest.mark.parametrize("whole", [0, 1 << 20])
def test_read_that_fails_for_a_while_loses_and_repeats_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: int
) -> None:
    monkeypatch.setattr(opening, "WHOLE_BYTES", whole)
    expected, failures = backup_of(tmp_path), iter([True, False, False, True, True] * 9)
    read_at = file_system.LocalBytes.read_at

    def sometimes(self: Any, position: int, size: int) -> bytes:
        if next(failures, False):
            raise UnavailableError("away")
        return read_at(self, position, size)

    monkeypatch.setattr(file_system.LocalBytes, "read_at", sometimes)
    context = RestoreContext(Committed())
    task, found, errors = started(tmp_path, context), [], 0
    while not task.has_ended():
        try:
            columns = task.poll_columns()
        except UnavailableError:
            errors += 1
            continue
        if columns is not None:
            found += columns.values.to_pylist()
            context.offset_reader.put(columns.source_partition, columns.source_offset)
    assert found == expected
    assert errors > 1 and context.left_out == {}
    # The next run finds the same files, and nothing is left of them.
    assert started(tmp_path, RestoreContext(context.offset_reader)).has_ended()


def test_second_attempt_of_a_task_leaves_what_the_next_run_continues(tmp_path: Path) -> None:
    expected, context = backup_of(tmp_path), RestoreContext(Committed())
    first = started(tmp_path, context)
    found = []
    for task in (first, LocalSourceTask()):
        if task is not first:
            task.initialize(context)  # type: ignore[arg-type]
            task.start(first._typed.raw)
        while not task.has_ended() and not (task is first and len(found) == 20):
            columns = task.poll_columns()
            if columns is not None:
                found += columns.values.to_pylist()
                context.offset_reader.put(columns.source_partition, columns.source_offset)
        task.stop()
    assert found == expected
    write_file(tmp_path / "topics", [record(30, b"30")])
    assert values_of(started(tmp_path, RestoreContext(context.offset_reader))) == [b"30"]


@pytest.mark.parametrize("columnar", [True, False])
def test_limit_cuts_anywhere_and_each_offset_resumes_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, columnar: bool
) -> None:
    monkeypatch.setattr(task_module, "RECORDS_AT_ONCE", 4)
    records = [record(n, b"%d" % n) for n in range(0, 40, 2)]
    write_file(tmp_path / "topics", records[::3], "a")
    write_file(tmp_path / "topics", records[1::3], "b")
    write_file(tmp_path / "topics", records[2::3], "c")
    committed, found = Committed(), []
    for limit in (1, 3, 2, 5, 1, 100):
        context = RestoreContext(committed, records_left=limit)
        task = started(tmp_path, context)
        taken = 0
        while not task.has_ended() and taken < limit:
            context.records_left = limit - taken
            if columnar:
                columns = task.poll_columns()
                if columns is not None:
                    found += columns.values.to_pylist()
                    taken += len(columns.values)
                    committed.put(columns.source_partition, columns.source_offset)
            else:
                for one in task.poll() or ():
                    if taken < limit:
                        found.append(one.value)
                        taken += 1
                        committed.put(one.source_partition, one.source_offset)
        task.stop()
    assert found == [one["value"] for one in records]


def test_damaged_file_leaves_out_its_chain_after_what_comes_before(tmp_path: Path) -> None:
    expected = backup_of(tmp_path, files=1)
    write_file(tmp_path / "topics", [record(10), record(11)]).write_bytes(b"broken")
    write_file(tmp_path / "topics", [record(0, b"other", partition=1)])
    context = RestoreContext(Committed())
    assert sorted(values_of(started(tmp_path, context))) == sorted([*expected, b"other"])  # type: ignore[type-var]
    ((part, error),) = context.left_out.items()
    assert part == "t-0 of the backup from offset 10 on"
    assert error.code == "restore.damaged"


def test_holes_are_counted_and_the_largest_is_named(tmp_path: Path) -> None:
    write_file(tmp_path / "topics", [record(5), record(7)])
    write_file(tmp_path / "topics", [record(100)])
    context = RestoreContext(Committed())
    assert len(values_of(started(tmp_path, context))) == 3
    counted = [note for note in context.notes if note.startswith("Offsets that no file")]
    assert [int(note.rstrip(".").rpartition(" ")[2]) for note in counted] == [1, 92]
    assert "The largest hole in the offsets of t-0 of the backup is [8, 100)." in context.notes


@pytest.mark.parametrize("columnar", [True, False])
def test_restored_up_to_a_point_in_time_and_later_from_there(tmp_path: Path, columnar: bool) -> None:
    stamps = [100, 300, 200, 400, 250, 500]
    records = [record(n, b"%d" % n, timestamp=stamp) for n, stamp in enumerate(stamps)]
    write_file(tmp_path / "topics", records[::2], "a")
    write_file(tmp_path / "topics", records[1::2], "b")
    committed = Committed()
    for until, expected in (("100", []), ("300", [b"0"]), ("400", [b"1", b"2"]), ("400", []), ("", [b"3", b"4", b"5"])):
        context = RestoreContext(committed)
        task, found = started(tmp_path, context, **{"restore.until.timestamp": until}), []
        while not task.has_ended():
            if columnar:
                columns = task.poll_columns()
                if columns is not None:
                    found += columns.values.to_pylist()
                    committed.put(columns.source_partition, columns.source_offset)
            else:
                for one in task.poll() or ():
                    found.append(one.value)
                    committed.put(one.source_partition, one.source_offset)
        task.stop()
        assert found == expected, until
        assert bool(until) == any("restore.until.timestamp or later" in note for note in context.notes)


def test_small_files_are_joined_and_large_ones_end_a_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backup_of(tmp_path, files=4)
    monkeypatch.setattr(task_module, "RECORDS_OF_BATCH", 20)
    monkeypatch.setattr(task_module, "SECONDS_OF_BATCH", 1e9)
    task = started(tmp_path, RestoreContext(Committed()))
    joined = []
    for _ in range(4):
        assert task.poll_columns() is not None
        joined.append(task.continues_batch())
        if not joined[-1]:
            task.commit()
    assert joined == [True, False, True, False]


def test_offset_of_another_topic_is_not_continued(tmp_path: Path) -> None:
    expected = backup_of(tmp_path)
    context = RestoreContext(Committed())
    task = started(tmp_path, context)
    partition, offset = {"backup": f"{tmp_path}/topics", "topic": "t", "partition": 0}, Progress(20, 20, topic_id="x")
    task.stop()
    context.offset_reader.put(partition, offset.to_offset())
    again = LocalSourceTask()
    again.initialize(context)  # type: ignore[arg-type]
    again.start(task._typed.raw)  # type: ignore[arg-type]
    assert values_of(again) == expected
