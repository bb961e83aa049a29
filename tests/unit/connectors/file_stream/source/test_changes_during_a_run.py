"""Files that are truncated, replaced or rotated while a run lists, plans or reads them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.api.source import SourceTask
from airflow_connect.connectors.file_stream.source.offsets import reconciliation
from airflow_connect.errors import UnavailableError
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source

LINE = "x" * 1000
LINES = [f"{number} {LINE}" for number in range(6000)]
"""More than a task reads at once."""


def truncated(log: Path) -> None:
    os.truncate(log, 0)


def written_again(log: Path) -> None:
    os.truncate(log, 0)
    with log.open("a") as out:
        out.write("".join(f"new {line}\n" for line in LINES))


def polled(source: FileSource, task: SourceTask) -> int:
    """Commit what a task returns next."""
    count = 0
    for records, partition, offset in source._polled(task):  # type: ignore[arg-type]
        source.records += records
        source.committed.put(partition, offset)
        count += len(records)
    return count


def poll_all(source: FileSource, task: SourceTask) -> None:
    while polled(source, task):
        pass


@pytest.mark.parametrize("change", [truncated, written_again], ids=lambda change: change.__name__)
@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize("with_copy", [False, True], ids=["emptied", "copytruncate"])
def test_log_that_is_truncated_while_a_task_reads_it_fails_the_run_and_the_next_one_finds_the_rest(
    with_copy: bool, columnar: str, change: Callable[[Path], None], tmp_path: Path
) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in LINES))
    source = file_source(log, columnar=columnar, batch_size="1999")
    source.reconcile()
    (config,) = source.task_configs()
    task = source.open_task(config)
    assert 0 < polled(source, task) < len(LINES)
    if with_copy:
        (tmp_path / "app.log.1").write_bytes(log.read_bytes())
    change(log)
    with pytest.raises(UnavailableError, match=r"A file changed while this run used it: .*app.log ") as error:
        poll_all(source, task)
    task.stop()
    assert (error.value.code, error.value.retriable) == ("file.changed_meanwhile", True)
    assert "Either a program has rotated it" in error.value.message and "is lost" in error.value.message
    before = len(source.values)
    assert source.values == LINES[:before]
    source.run()
    rest = LINES[before:] if with_copy else []
    new = [f"new {line}" for line in LINES] if change is written_again else []
    assert source.values[before:] == [*rest, *new]
    assert with_copy or any("the rest of the old file, after byte" in note for note in source.notes)


def test_log_that_is_rotated_while_a_task_reads_it_is_read_to_its_end(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("".join(f"{line}\n" for line in LINES))
    source = file_source(log, batch_size="1999")
    source.reconcile()
    (config,) = source.task_configs()
    task = source.open_task(config)
    polled(source, task)
    log.rename(tmp_path / "app.log.1")
    log.write_text("next\n")
    poll_all(source, task)
    task.stop()
    assert source.take() == LINES
    source.run()
    assert source.take() == ["next"]


@pytest.mark.parametrize("rotates", [True, False])
def test_log_that_is_rotated_after_the_run_has_listed_it_fails_the_run_and_keeps_its_offset(
    rotates: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "app.log"
    log.write_text("one\n")
    source = file_source(log)
    source.run()
    known = dict(source.committed.values)
    committed_states = reconciliation.committed_states

    def change(offsets: reconciliation.Offsets) -> object:
        """The run has listed the files."""
        if rotates:
            log.rename(tmp_path / "app.log.1")
            log.write_text("")
        else:
            (tmp_path / "app.log.1").write_bytes(log.read_bytes())
            os.truncate(log, 0)
        return committed_states(offsets)

    with monkeypatch.context() as patch:
        patch.setattr(reconciliation, "committed_states", change)
        with pytest.raises(UnavailableError, match=r"A file changed while this run used it: .*app.log"):
            source.run()
    assert source.committed.values == known
    source.run()
    assert source.take() == ["one"]
