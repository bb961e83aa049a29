"""Reads that fail for a moment: the poll is repeated, and every line comes once."""

from __future__ import annotations

import gzip
import itertools
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.api.source import SourceTask
from airflow_connect.connectors.file_stream.source import open_item
from airflow_connect.connectors.file_stream.source.read import content
from airflow_connect.errors import UnavailableError
from airflow_connect.stores.local.file_system import LocalBytes, LocalFileSystem
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source

CHANCE = random.Random(1)
LINES = [f"{number} {CHANCE.randbytes(number % 211).hex()}" for number in range(10_000)]
LONGEST = 100_000
TOO_LONG = "long " + CHANCE.randbytes(200_000).hex()


def zstd(data: bytes) -> bytes:
    import pyarrow as pa

    compressed = pa.compress(data, "zstd", asbytes=True)
    assert isinstance(compressed, bytes)
    return compressed


PACKED: dict[str, Callable[[bytes], bytes]] = {"log": bytes, "log.gz": gzip.compress, "log.zst": zstd}


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file of some megabytes is read in many pieces."""
    monkeypatch.setattr(content, "BLOCK_BYTES", 1 << 12)
    for name in ("_LOCAL_BLOCK_BYTES", "_COLUMN_BLOCK_BYTES", "_PATTERN_BLOCK_BYTES"):
        monkeypatch.setattr(open_item, name, 1 << 16)


def fail_at(monkeypatch: pytest.MonkeyPatch, kind: type, method: str, *numbers: int) -> list[int]:
    """The calls with these numbers fail; returns those that have been made."""
    call, calls, failed = getattr(kind, method), itertools.count(1), []

    def sometimes(*args: object) -> object:
        at = next(calls)
        if at in numbers:
            failed.append(at)
            raise UnavailableError("The disk did not answer.")
        return call(*args)

    monkeypatch.setattr(kind, method, sometimes)
    return failed


def poll_all(source: FileSource, task: SourceTask) -> None:
    """Poll as the runtime does, which repeats a poll that fails for a temporary reason."""
    for _ in range(100_000):
        try:
            for records, partition, offset in source._polled(task):  # type: ignore[arg-type]
                source.records += records
                source.committed.put(partition, offset)
        except UnavailableError:
            continue
        if task.has_ended():
            return
    raise AssertionError("The task never ends.")


@pytest.mark.parametrize("columnar", ["false", "true"], ids=["records", "columns"])
@pytest.mark.parametrize("suffix", PACKED)
@pytest.mark.parametrize("numbers", [(2, 3, 9, 14), (6, 7, 12)], ids=str)
def test_bytes_that_cannot_be_read_for_a_moment_are_read_later(
    suffix: str, columnar: str, numbers: tuple[int, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [*LINES[:700], TOO_LONG, *LINES[700:]]
    file = tmp_path / f"app.{suffix}"
    file.write_bytes(PACKED[suffix]("".join(f"{line}\n" for line in lines).encode()))
    source = file_source(file, columnar=columnar, line_max_bytes=str(LONGEST), line_too_long="truncate")
    (config,) = source.task_configs()
    task = source.open_task(config)
    failed = fail_at(monkeypatch, LocalBytes, "read_at", *numbers)

    poll_all(source, task)
    task.stop()

    assert failed == list(numbers)
    assert source.values == [line[:LONGEST] for line in lines]
    assert len(source.notes) == 1 and source.notes[0].endswith("(line.too.long=truncate): 1.")


@pytest.mark.parametrize("columnar", ["false", "true"], ids=["records", "columns"])
def test_file_that_cannot_be_opened_for_a_moment_is_read_later(
    columnar: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in "abcd":
        (tmp_path / f"{name}.log").write_text(f"{name} 1\n{name} 2\n")
    source = file_source(tmp_path / "*.log", columnar=columnar)
    source.reconcile()
    (config,) = source.task_configs()
    task = source.open_task(config)
    failed = fail_at(monkeypatch, LocalFileSystem, "open", 1, 3, 4)

    poll_all(source, task)
    task.stop()

    assert failed == [1, 3, 4]
    assert source.values == [f"{name} {number}" for name in "abcd" for number in (1, 2)]
