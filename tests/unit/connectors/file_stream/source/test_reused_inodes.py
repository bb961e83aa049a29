"""Rotated files with the inodes of others, as ext4 gives them: which content a file has decides, not its inode."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from airflow_connect.errors import OffsetError
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source


class Folder:
    """Files with times that rise with each write."""

    def __init__(self, path: Path) -> None:
        self.path, self._now_s = path, 1_700_000_000

    def write(self, name: str, text: str | bytes, inode_of: str = "") -> None:
        """A file; `inode_of`: a file that is deleted, and whose inode the new one gets."""
        file = self.path / name
        if inode_of:
            (self.path / inode_of).rename(file)
        file.write_bytes(text if isinstance(text, bytes) else text.encode())
        self._now_s += 1
        os.utime(file, (self._now_s, self._now_s))

    def move(self, name: str, new: str) -> None:
        (self.path / name).rename(self.path / new)


PATTERNS = pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
COLUMNAR = pytest.mark.parametrize("columnar", ["false", "true"])


def after_a_run(folder: Folder, pattern: str, columnar: str, files: dict[str, str]) -> FileSource:
    """The files are known, and read."""
    folder.write("app.log", "")
    source = file_source(folder.path / pattern, columnar=columnar)
    source.run()
    for name, text in files.items():
        folder.write(name, text)
    source.run()
    source.take()
    source.notes.clear()
    return source


@PATTERNS
@COLUMNAR
def test_compressed_file_with_the_inode_of_another_is_not_taken_for_it(
    pattern: str, columnar: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    source = after_a_run(folder, pattern, columnar, {"app.log.4": "a\n", "app.log.2": "a\n", "app.log": "now\n"})
    folder.write("app.log.3.gz", gzip.compress(b"a\n"))
    folder.write("app.log.5.gz", gzip.compress(b"a\n"), inode_of="app.log.2")
    (tmp_path / "app.log.4").unlink()
    for name in ("app.log.2.gz", "app.log.4.gz"):
        folder.write(name, gzip.compress(b""))
    folder.move("app.log", "app.log.1")
    folder.write("app.log", "next\n")
    source.run()
    assert source.take() == ["next"]


@PATTERNS
@COLUMNAR
@pytest.mark.parametrize("number", [1, 2])
def test_copy_with_the_inode_of_a_file_that_begins_alike_has_the_offset_of_the_file_that_was_copied(
    number: int, pattern: str, columnar: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    source = after_a_run(folder, pattern, columnar, {"app.log.1": "a\n", "app.log": "a\n1\n2\n"})
    folder.write(f"app.log.{number + 1}.gz", gzip.compress(b"a\n"))
    folder.write(f"app.log.{number}", "a\n1\n2\n3\n", inode_of="app.log.1")
    if number == 2:
        folder.write("app.log.1", "b\n")
    folder.write("app.log", "")
    source.run()
    assert source.take() == (["3"] if number == 1 else ["3", "b"])
    source.run()
    assert source.take() == []


def test_log_with_the_inode_of_a_file_of_which_nothing_was_read_keeps_its_offset_when_it_is_rotated(
    tmp_path: Path,
) -> None:
    folder = Folder(tmp_path)
    folder.write("app.log", "1\n2\n")
    source = file_source(tmp_path / "app.log")
    source.run()
    source.take()
    inode = str((tmp_path / "app.log").stat().st_ino)
    nothing = {"position": 0, "fingerprint": "", "identity": inode, "modified": 1_600_000_000_000}
    source.committed.put({"filename": f"{tmp_path}/app.log.1"}, nothing)
    folder.write("app.log", "1\n2\n3\n")
    folder.move("app.log", "app.log.1")
    folder.write("app.log", "4\n")
    source.run()
    assert source.take() == ["3", "4"]


@COLUMNAR
@pytest.mark.parametrize("setting", ["fail", "continue", "read"])
@pytest.mark.parametrize("more", ["", "new\n"])
def test_short_file_that_repeats_the_beginning_of_the_log_is_read_as_configured(
    more: str, setting: str, columnar: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    folder.write("app.log", "banner\n")
    source = file_source(tmp_path / "app.log", columnar=columnar, file_replaced=setting)
    source.run()
    source.take()
    # copytruncate, and the program starts again; or a person copies the log.
    folder.write("app.log.1", "banner\n")
    folder.write("app.log", f"banner\n{more}")
    if setting == "fail":
        with pytest.raises(OffsetError, match=r"app.log.1 is new, and its 7 bytes are those with which") as error:
            source.run()
        assert error.value.code == "file.may_be_copy"
        assert "file.replaced=continue" in error.value.suggestion and "file.replaced=read" in error.value.suggestion
        return
    source.run()
    assert sorted(source.take()) == sorted([*more.split(), *(["banner"] if setting == "read" else [])])
    source.notes.clear()
    source.run()
    assert source.take() == []


@COLUMNAR
def test_copy_of_a_log_that_a_pattern_selects_is_read_and_told(columnar: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("app.log", "banner\n")
    source = file_source(tmp_path / "app.log*", columnar=columnar)
    source.run()
    folder.write("app.log.1", "banner\n")
    source.run()
    assert source.take() == ["banner", "banner"]
    assert any("app.log.1 is new, and its 7 bytes" in n and "are copied twice" in n for n in source.notes)


@PATTERNS
def test_next_file_with_the_number_of_a_missing_one_is_read_and_told(pattern: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    source = after_a_run(folder, pattern, "true", {"app.log.1": "banner\n", "app.log": "now\n"})
    folder.move("app.log.1", "kept")
    source.run()
    folder.write("app.log.1", "banner\n")
    source.run()
    assert source.take() == ["banner"]
    assert any("app.log.1 was missing, and is there again with another inode" in note for note in source.notes)


@PATTERNS
@COLUMNAR
def test_new_file_with_the_content_of_one_that_is_gone_is_named_with_both_readings(
    pattern: str, columnar: str, tmp_path: Path
) -> None:
    folder = Folder(tmp_path)
    source = after_a_run(folder, pattern, columnar, {"app.log": "banner\n"})
    (tmp_path / "app.log").unlink()
    folder.write("app.log.1", "banner\n")
    folder.write("app.log", "next\n")
    source.run()
    assert source.take() == ["next"]
    (note,) = [note for note in source.notes if "1 of these offsets follows a file by a short content alone" in note]
    assert "app.log.1 (7 bytes). Either it is the file that was read" in note and "or a new file" in note
    assert "They are not copied from there" in note


@PATTERNS
def test_renamed_file_is_not_in_doubt(pattern: str, tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    source = after_a_run(folder, pattern, "true", {"app.log": "banner\n"})
    folder.move("app.log", "app.log.1")
    folder.write("app.log", "next\n")
    source.run()
    assert source.take() == ["next"]
    assert not any("Either" in note for note in source.notes)
