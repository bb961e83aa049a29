"""The offsets file of a standalone worker: read as Java wrote it, written as Java reads it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_connect.errors import ConfigError, UnavailableError
from airflow_connect.kafka.state.offsets import java_offsets_file

RECORDED = Path(__file__).parents[4] / "data" / "connect_topics" / "standalone.offsets"
"""Written by java.io.ObjectOutputStream of Java 17: 20 entries and one whose value is null."""


def test_file_written_by_java_is_read():
    found = java_offsets_file.read(str(RECORDED))

    assert len(found) == 20
    assert found['["file-1",{"filename":"/tmp/é7"}]'.encode()] == b'{"position":7}'


def test_what_is_written_has_the_bytes_of_java_up_to_the_first_entry(tmp_path: Path):
    found = java_offsets_file.read(str(RECORDED))
    java_offsets_file.write(str(tmp_path / "f"), found)

    first_entry = RECORDED.read_bytes().index(b"ur\x00\x02[B")
    # The recorded map has one entry more, with a null value; the number of entries is in the last four bytes before.
    assert (tmp_path / "f").read_bytes()[: first_entry - 4] == RECORDED.read_bytes()[: first_entry - 4]
    assert java_offsets_file.read(str(tmp_path / "f")) == found
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


@given(st.dictionaries(st.binary(), st.binary(), max_size=40))
def test_what_is_written_is_read_again(offsets: dict[bytes, bytes]):
    assert java_offsets_file._Reader(java_offsets_file.encoded(offsets)).hash_map() == offsets


def test_missing_and_empty_files_hold_nothing(tmp_path: Path):
    (tmp_path / "empty").touch()
    assert java_offsets_file.read(str(tmp_path / "empty")) == {}
    assert java_offsets_file.read(str(tmp_path / "none")) == {}


@pytest.mark.parametrize("length", [1, 5, 30, 100, 700])
def test_file_that_was_cut_is_refused(tmp_path: Path, length: int):
    (tmp_path / "cut").write_bytes(RECORDED.read_bytes()[:length])
    with pytest.raises(ConfigError, match="is not an offsets file of Kafka Connect"):
        java_offsets_file.read(str(tmp_path / "cut"))


@pytest.mark.parametrize("data", [b"position=1\n", b"\xac\xed\x00\x05t\x00\x01x", b"{}"], ids=str)
def test_other_file_is_refused(tmp_path: Path, data: bytes):
    (tmp_path / "other").write_bytes(data)
    with pytest.raises(ConfigError, match="Specify the file that connect-standalone wrote") as caught:
        java_offsets_file.read(str(tmp_path / "other"))
    assert caught.value.config_path == "offset.storage.file.filename"


def test_place_that_cannot_be_used_is_named(tmp_path: Path):
    with pytest.raises(UnavailableError, match="cannot be written"):
        java_offsets_file.write(str(tmp_path / "no" / "such" / "folder"), {})
    with pytest.raises(UnavailableError, match="cannot be read"):
        java_offsets_file.read(str(tmp_path))
