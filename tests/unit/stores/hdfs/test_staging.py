"""How bytes travel to HDFS: whole where they can, a bounded number of growing files, every failure told once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

from airflow_connect.api.staging import StagedFile
from airflow_connect.errors import AuditError, UnavailableError
from airflow_connect.stores.byte_gate import ByteGate
from airflow_connect.stores.hdfs.settings import HdfsSettings
from airflow_connect.stores.hdfs.staging import HdfsStager
from airflow_connect.stores.store import FileIdentity
from tests.support.waiting import wait_until

PIECE = 1000


@dataclass
class MemoryFiles:
    """What `HdfsFiles` does, in memory; a test may spoil it."""

    files: dict[str, bytes] = field(default_factory=dict)
    growing: set[int] = field(default_factory=set)
    most_growing: int = 0
    whole: int = 0
    deleted: list[str] = field(default_factory=list)
    fail: Callable[[str, str], None] = lambda operation, path: None
    shorter: int = 0
    lock: Any = field(default_factory=threading.Lock)

    def place(self, path: str) -> str:
        return f"hdfs://nn{path}"

    def write(self, path: str, chunks: Callable[[], Iterable[bytes]], *, overwrite: bool = True) -> None:
        self.fail("write", path)
        self.whole += 1
        self.files[path] = b"".join(chunks())

    def open(self, path: str) -> SimpleNamespace:
        self.fail("open", path)
        writer = SimpleNamespace(data=bytearray(), path=path)
        with self.lock:
            self.growing.add(id(writer))
            self.most_growing = max(self.most_growing, len(self.growing))
        self.files[path] = b""
        return writer

    def append(self, writer: SimpleNamespace, path: str, chunk: bytes) -> None:
        self.fail("append", path)
        writer.data += chunk

    def finish(self, writer: SimpleNamespace, path: str) -> None:
        self.fail("finish", path)
        with self.lock:
            self.growing.discard(id(writer))
        self.files[path] = bytes(writer.data)

    def status(self, path: str) -> SimpleNamespace | None:
        if path not in self.files:
            return None
        return SimpleNamespace(length=len(self.files[path]) - self.shorter, modification_time=1)

    def delete(self, path: str) -> bool:
        self.deleted.append(path)
        return self.files.pop(path, None) is not None

    def remove_empty_directory(self, path: str) -> bool:
        return False

    def close(self) -> None:
        """Nothing is open."""


def identity(number: int = 0) -> FileIdentity:
    return FileIdentity(f"topics/t/f{number}", "t", 0, number, root="topics/")


def stager(files: MemoryFiles, **changes: Any) -> HdfsStager:
    return HdfsStager(HdfsSettings("hdfs://nn:1", piece_bytes=PIECE, **changes), files)  # type: ignore[arg-type]


def away(operation: str, wanted: str) -> Callable[[str, str], None]:
    def fail(now: str, path: str) -> None:
        if now == operation and wanted in path:
            raise UnavailableError(f"{now} failed.")

    return fail


def test_small_file_is_written_whole_only_when_it_is_closed() -> None:
    files = MemoryFiles()
    tasks = stager(files)
    opened = [tasks.open(identity(n)) for n in range(3000)]
    for file in opened:
        file.write(b"x" * (PIECE - 1))
    assert files.files == {}
    staged = [file.close(1, 1).result(60) for file in opened]
    tasks.close()

    assert (files.whole, files.most_growing) == (3000, 0)
    assert {len(data) for data in files.files.values()} == {PIECE - 1}
    assert len({s.token["path"] for s in staged}) == 3000


def test_only_so_many_files_grow_at_once_and_the_others_wait_on_disk() -> None:
    files = MemoryFiles()
    tasks = stager(files, max_streams=3)
    opened = [tasks.open(identity(n)) for n in range(20)]
    for turn in range(5):
        for file in opened:
            file.write(bytes([turn]) * PIECE)
            assert file.buffered_bytes <= PIECE
    futures = [file.close(1, 1) for file in opened]
    staged = [future.result(60) for future in futures]
    tasks.close()

    wanted = b"".join(bytes([turn]) * PIECE for turn in range(5))
    assert files.most_growing == 3
    assert all(files.files[f"/{s.token['path']}"] == wanted for s in staged)
    assert files.growing == set()


def test_stream_of_a_closed_file_is_free_for_the_next() -> None:
    files = MemoryFiles()
    tasks = stager(files, max_streams=1)
    for number in range(4):
        file = tasks.open(identity(number))
        file.write(b"x" * 3 * PIECE)
        file.write(b"x" * 3 * PIECE)
        file.close(1, 1).result(60)
    tasks.close()

    assert (files.most_growing, files.whole) == (1, 0)


@pytest.mark.parametrize("operation", ["open", "append", "finish"])
def test_failure_of_a_growing_file_is_raised_and_frees_its_stream(operation: str) -> None:
    files = MemoryFiles(fail=away(operation, "/f0."))
    tasks = stager(files, max_streams=1)
    file = tasks.open(identity(0))

    def grow() -> None:
        for _ in range(3):
            file.write(b"x" * PIECE)
        file.close(1, 1).result(60)

    with pytest.raises(UnavailableError):
        grow()
    file.abort()
    wait_until(lambda: tasks.slots._value == 1, "the stream is free")
    other = tasks.open(identity(1))
    other.write(b"y" * 2 * PIECE)
    other.close(1, 1).result(60)
    tasks.close()

    assert [path for path in files.files if "/f0." in path] == []


def test_failure_of_a_whole_file_is_raised_and_its_rest_is_deleted() -> None:
    files = MemoryFiles(fail=away("write", "/f0."))
    tasks = stager(files)
    file = tasks.open(identity(0))
    file.write(b"x")
    with pytest.raises(UnavailableError):
        file.close(1, 1).result(60)
    file.abort()
    tasks.close()

    assert len(files.deleted) == 1


def test_file_that_holds_other_bytes_than_were_written_is_an_audit_error() -> None:
    tasks = stager(MemoryFiles(shorter=1))
    file = tasks.open(identity())
    file.write(b"abc")
    with pytest.raises(AuditError, match="written as 3 bytes, but holds 2"):
        file.close(1, 1).result(60)
    tasks.close()


def test_file_that_was_deleted_meanwhile_is_said_to_be_gone() -> None:
    files = MemoryFiles()
    files.status = lambda path: None  # type: ignore[method-assign]
    tasks = stager(files)
    with pytest.raises(UnavailableError) as caught:
        tasks.open(identity()).close(1, 1).result(60)
    tasks.close()

    assert caught.value.code == "hdfs.staged_file_gone"


def test_aborted_file_that_was_never_sent_asks_nothing_of_hdfs() -> None:
    files = MemoryFiles()
    tasks = stager(files)
    file = tasks.open(identity())
    file.write(b"x")
    file.abort()
    file.abort()
    tasks.close()

    assert (files.files, files.deleted) == ({}, [])


@pytest.mark.parametrize("is_spilled", [False, True], ids=["in memory", "on disk"])
def test_files_that_are_written_at_once_stay_within_the_bound_for_memory(is_spilled: bool) -> None:
    """What comes from disk is in memory too while it is sent: a hundred such files once took all there was."""
    writing, may_end = threading.Semaphore(0), threading.Event()

    def hold(operation: str, path: str) -> None:
        writing.release()
        assert may_end.wait(60)

    tasks = stager(MemoryFiles(fail=hold), write_buffer_bytes=4 * PIECE)
    opened = [tasks.open(identity(n)) for n in range(20)]
    for file in opened:
        file.write(b"x" * (PIECE - 1))
        if is_spilled:
            file.spill()
    futures: list[Future[StagedFile]] = []
    closer = threading.Thread(target=lambda: futures.extend([file.close(1, 1) for file in opened]))
    closer.start()
    # The client copies what it is given: bytes that come from memory are there twice.
    at_once = 4 if is_spilled else 2
    for _ in range(at_once):
        assert writing.acquire(timeout=60)
    wait_until(lambda: bool(tasks.gate._changed._waiters) or not closer.is_alive(), "the task is held back")  # type: ignore[attr-defined]
    was_held_back, more = closer.is_alive(), writing.acquire(blocking=False)
    may_end.set()
    closer.join(60)
    staged = [future.result(60) for future in futures]
    tasks.close()

    assert (was_held_back, more) == (True, False)
    assert len(staged) == 20


def test_gate_holds_back_until_there_is_room() -> None:
    gate = ByteGate(10)
    gate.enter(100)
    entered = threading.Event()
    threading.Thread(target=lambda: (gate.enter(5), entered.set())).start()
    assert not entered.wait(0.1)
    gate.leave(100)

    assert entered.wait(30)
