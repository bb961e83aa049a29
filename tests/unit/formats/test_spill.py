"""Spill buffers: what goes in comes out, in order, wherever it was held; disk space is given back."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.errors import UnavailableError, is_retriable
from airflow_connect.formats.spill import BLOCK_BYTES, SpillArea, SpillBuffer, local_directory, shared_area
from tests.support.processes.proc import descriptors_in


@pytest.fixture
def area(tmp_path: Path) -> SpillArea:
    return SpillArea(str(tmp_path))


def used_bytes(area: SpillArea) -> int:
    """Bytes of all blocks that belong to a buffer."""
    return (area._blocks - len(area._free)) * BLOCK_BYTES


def test_spill_of_appended_bytes_keeps_order_and_empties_memory(area: SpillArea) -> None:
    buffer = SpillBuffer(area)
    expected = b""
    for round_number in range(5):
        part = bytes([round_number]) * (BLOCK_BYTES // 2 + 7)
        buffer.append(part)
        expected += part
        if round_number % 2 == 0:
            buffer.spill()
            assert buffer.buffered_bytes == 0
    assert len(buffer) == len(expected)
    assert buffer.read_all() == expected
    assert b"".join(buffer.iter_chunks(1000)) == expected
    assert {len(c) for c in list(buffer.iter_chunks(1000))[:-1]} == {1000}


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 3 * BLOCK_BYTES), st.booleans()), max_size=6),
    st.integers(5_000, 2 * BLOCK_BYTES),
)
def test_spill_buffer_random_sequence_equals_plain_bytes(steps: list[tuple[int, bool]], size: int) -> None:
    area = SpillArea()
    one, other = SpillBuffer(area), SpillBuffer(area)
    expected = bytearray()
    for number, (length, spill) in enumerate(steps):
        part = bytes((number + i) % 251 for i in range(min(length, 300))) * (length // 300)
        one.append(part)
        other.append(b"other" * number)
        expected += part
        if spill:
            one.spill()
            other.spill()
    assert one.read_all() == bytes(expected)
    assert b"".join(one.iter_chunks(size)) == bytes(expected)
    one.close()
    other.close()
    assert used_bytes(area) == 0
    area.close()


def test_area_closed_buffers_reuse_blocks_and_shrink_the_file(area: SpillArea) -> None:
    first, second = SpillBuffer(area), SpillBuffer(area)
    for buffer in (first, second):
        buffer.append(b"x" * BLOCK_BYTES)
        buffer.spill()
    assert used_bytes(area) == 2 * BLOCK_BYTES
    first.close()
    assert used_bytes(area) == BLOCK_BYTES
    third = SpillBuffer(area)
    third.append(b"y" * BLOCK_BYTES)
    third.spill()
    assert used_bytes(area) == 2 * BLOCK_BYTES
    assert second.read_all() == b"x" * BLOCK_BYTES
    second.close()
    third.close()
    third.close()
    assert used_bytes(area) == 0


def test_area_many_spilled_buffers_need_one_descriptor_and_no_name(area: SpillArea, tmp_path: Path) -> None:
    assert descriptors_in(tmp_path) == 0
    buffers = [SpillBuffer(area) for _ in range(300)]
    for number, buffer in enumerate(buffers):
        buffer.append(str(number).encode() * 100)
        buffer.spill()
    assert descriptors_in(tmp_path) == 1
    assert list(tmp_path.iterdir()) == []
    assert [b.read_all() for b in buffers] == [str(n).encode() * 100 for n in range(300)]
    area.close()
    assert descriptors_in(tmp_path) == 0


def test_area_dropped_buffer_leaves_its_blocks_to_others(area: SpillArea) -> None:
    dropped = SpillBuffer(area)
    dropped.append(b"x" * 3 * BLOCK_BYTES)
    dropped.spill()
    del dropped
    for _ in range(3):
        area.release([area.allocate(), area.allocate(), area.allocate()])
    assert used_bytes(area) == 0


def test_spill_buffer_cleared_can_be_filled_again(area: SpillArea) -> None:
    buffer = SpillBuffer(area)
    buffer.append(b"first part")
    buffer.spill()
    buffer.clear()
    assert (len(buffer), buffer.read_all()) == (0, b"")
    buffer.append(bytearray(b"second"))
    buffer.append(memoryview(b" part"))
    assert buffer.read_all() == b"second part"


def test_spill_disk_full_raises_with_directory_and_keeps_bytes(
    area: SpillArea, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_space(*_: object) -> int:
        raise OSError(28, "No space left on device")

    buffer = SpillBuffer(area)
    buffer.append(b"precious")
    monkeypatch.setattr(os, "pwrite", no_space)
    with pytest.raises(UnavailableError, match="No space left on device") as raised:
        buffer.spill()
    assert str(tmp_path) in raised.value.message
    assert "spark.local.dir" in raised.value.suggestion
    assert is_retriable(raised.value)
    assert buffer.read_all() == b"precious"
    monkeypatch.undo()
    buffer.spill()
    assert buffer.read_all() == b"precious"


def test_spill_directory_missing_raises_with_directory() -> None:
    buffer = SpillBuffer(SpillArea("/nowhere/at/all"))
    buffer.append(b"x")
    with pytest.raises(UnavailableError, match="/nowhere/at/all"):
        buffer.spill()


def test_local_directory_prefers_sparks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_LOCAL_DIRS", f"/nowhere,{tmp_path}")
    assert local_directory() == str(tmp_path)
    monkeypatch.setenv("SPARK_LOCAL_DIRS", "")
    monkeypatch.setattr("tempfile.gettempdir", lambda: "/tmpdir")
    assert local_directory() == "/tmpdir"


def test_area_used_by_two_threads_keeps_their_bytes_apart(area: SpillArea) -> None:
    buffers = [SpillBuffer(area) for _ in range(2)]

    def fill(number: int) -> None:
        for _ in range(50):
            buffers[number].append(bytes([number]) * 10_000)
            buffers[number].spill()

    threads = [threading.Thread(target=fill, args=(n,)) for n in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [b.read_all() for b in buffers] == [b"\0" * 500_000, b"\1" * 500_000]


def test_shared_area_is_one_per_process() -> None:
    assert shared_area() is shared_area()
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(write_end, str(id(shared_area())).encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert int(os.read(read_end, 100)) != id(shared_area())
    os.close(read_end)
    os.close(write_end)
