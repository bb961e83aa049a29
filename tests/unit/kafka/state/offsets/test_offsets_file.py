"""Which counts, the offsets topic or the file of a standalone worker."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.kafka.state.offsets import java_offsets_file
from airflow_connect.kafka.state.offsets.offsets_file import OffsetsFile
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets

KEY = b'["c",{"p":0}]'
OTHER = (b'["other",{"p":0}]', b'{"n":9}')


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "offsets")


def topic(**numbers: int) -> SourceOffsets:
    """Offsets of connector c: `topic(p0=4)`."""
    offsets = SourceOffsets("c")
    for name, number in numbers.items():
        offsets.take(f'["c",{{"p":{name[1:]}}}]'.encode(), f'{{"n":{number}}}'.encode())
    return offsets


def by_worker(path: str, *entries: tuple[bytes, bytes]) -> None:
    """What a worker leaves: its changes beside all that it found."""
    java_offsets_file.write(path, {**java_offsets_file.read(path), **dict(entries)})


def test_file_counts_for_a_connector_without_offsets_in_the_topic(path: str):
    by_worker(path, (KEY, b'{"n":4}'), OTHER)
    assert OffsetsFile(path, "c").changes(topic()) == [({"p": 0}, {"n": 4})]
    assert OffsetsFile(path, "c").changes(topic(p0=2)) == []


def test_file_that_nobody_wrote_says_nothing(path: str):
    assert OffsetsFile(path, "c").changes(topic()) == []
    assert OffsetsFile(path, "c").changes(topic(p0=2)) == []


def test_copy_is_not_ahead_of_a_topic_that_moved_on(path: str):
    by_worker(path, OTHER)
    OffsetsFile(path, "c").copy(topic(p0=4))
    assert OffsetsFile(path, "c").changes(topic(p0=7)) == []
    assert java_offsets_file.read(path)[KEY] == b'{"n":4}'
    assert java_offsets_file.read(path)[OTHER[0]] == OTHER[1]


def test_worker_that_went_on_from_the_copy_counts_until_the_next_copy(path: str):
    OffsetsFile(path, "c").copy(topic(p0=4))
    by_worker(path, (KEY, b'{"n":5}'), OTHER)
    assert OffsetsFile(path, "c").changes(topic(p0=4)) == [({"p": 0}, {"n": 5})]
    OffsetsFile(path, "c").copy(topic(p0=5))
    assert OffsetsFile(path, "c").changes(topic(p0=5)) == []


def test_offsets_of_other_connectors_do_not_make_a_file_newer(path: str):
    OffsetsFile(path, "c").copy(topic(p0=4))
    OffsetsFile(path, "other").copy(SourceOffsets("other"))
    by_worker(path, OTHER)
    assert OffsetsFile(path, "c").changes(topic(p0=4)) == []


def test_offset_that_a_worker_deleted_is_deleted_in_the_topic(path: str):
    OffsetsFile(path, "c").copy(topic(p0=4, p1=2))
    left = {key: value for key, value in java_offsets_file.read(path).items() if key != KEY}
    java_offsets_file.write(path, left)
    changes = OffsetsFile(path, "c").changes(topic(p0=4, p1=2))
    assert changes == [({"p": 1}, {"n": 2}), ({"p": 0}, None)]


def test_offsets_deleted_in_the_topic_are_deleted_in_the_copy(path: str):
    OffsetsFile(path, "c").copy(topic(p0=4, p1=2))
    OffsetsFile(path, "c").copy(topic(p1=2))
    assert KEY not in java_offsets_file.read(path)


def test_copy_that_changes_nothing_leaves_the_file_alone(path: str):
    OffsetsFile(path, "c").copy(topic(p0=4))
    before = Path(path).stat().st_ino
    OffsetsFile(path, "c").copy(topic(p0=4))
    assert Path(path).stat().st_ino == before


def test_file_that_is_something_else_is_refused(path: str):
    Path(path).write_text("position=3\n")
    with pytest.raises(ConfigError, match="is not an offsets file"):
        OffsetsFile(path, "c").changes(topic())
    with pytest.raises(ConfigError, match="is not an offsets file"):
        OffsetsFile(path, "c").copy(topic(p0=1))
