"""With `file`: rotated files whose names do not tell it, and files of other programs with such names."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest

from airflow_connect.connectors.file_stream.source.discover.rotation import earlier_names, is_of_family, numbered_scheme
from airflow_connect.errors import OffsetError
from tests.unit.connectors.file_stream.source.source_runs import file_source

LONG = "".join(f"line {number}\n" for number in range(300))
"""More than the beginning that identifies a file."""
NUMBERED = ["app.1.log", "app-1.log", "app-20261125.log", "app.2026-11-25.0.log", "app_20261125.log", "app20261125.log"]
COLUMNAR = pytest.mark.parametrize("columnar", ["false", "true"])


class Log:
    """app.log on a clock that rises with each write."""

    def __init__(self, folder: Path, text: str, **config: str) -> None:
        self.folder, self.file, self._now_s = folder, folder / "app.log", 1_700_000_000
        self.write("app.log", text)
        self.source = file_source(self.file, **config)
        self.run()

    def write(self, name: str, text: str | bytes) -> Path:
        file = self.folder / name
        with file.open("ab") as out:
            out.write(text if isinstance(text, bytes) else text.encode())
        self._now_s += 1
        os.utime(file, (self._now_s, self._now_s))
        return file

    def rotate(self, name: str, text: str) -> None:
        self.file.rename(self.folder / name)
        self.write("app.log", text)

    def run(self) -> list[str]:
        self.source.notes.clear()
        self.source.run()
        return self.source.take()

    def told(self, words: str) -> bool:
        return any(words in note for note in self.source.notes)


@COLUMNAR
@pytest.mark.parametrize("text", ["", "one\n", LONG], ids=["empty", "short", "long"])
@pytest.mark.parametrize("name", [*NUMBERED, "app.log.1", "app.log-20261125"])
def test_log_that_is_written_to_and_rotated_to_a_numbered_name_is_read_on(
    name: str, text: str, columnar: str, tmp_path: Path
) -> None:
    log = Log(tmp_path, text, columnar=columnar)
    log.write("app-errors.log", "another program\n")
    log.write("app.log", "rest\n")
    log.rotate(name, "new\n")
    assert log.run() == ["rest", "new"]
    assert log.told(f"{tmp_path}/{name}") or (not text and name.startswith("app.log"))
    log.write("app-errors.log", "another program\n")
    assert log.run() == []


@COLUMNAR
@pytest.mark.parametrize("packed", [False, True])
def test_files_that_were_rotated_after_the_known_one_are_read_and_named(
    packed: bool, columnar: str, tmp_path: Path
) -> None:
    log = Log(tmp_path, "1\n", columnar=columnar)
    log.write("app.2026-11-23.0.log", "before the first run, and touched by nobody\n")
    os.utime(tmp_path / "app.2026-11-23.0.log", (1, 1))
    log.write("app.log", "2\n")
    for index in (0, 1, 2):
        log.rotate(f"app.2026-11-25.{index}.log", f"{index + 3}\n")
    if packed:
        middle = tmp_path / "app.2026-11-25.1.log"
        with gzip.open(f"{middle}.gz", "wb") as out:
            out.write(middle.read_bytes())
        shutil.copystat(middle, f"{middle}.gz")
        middle.unlink()
    assert log.run() == ["2", "3", "4", "5"]
    assert log.told("2 files are read as rotated from")
    log.rotate("app.2026-11-26.0.log", "6\n")
    assert log.run() == ["6"]
    log.write("app.2026-11-26.1.log", "")
    log.rotate("app.2026-11-26.2.log", "7\n")
    log.rotate("app.2026-11-26.3.log", "8\n")
    assert log.run() == ["7", "8"]
    assert log.run() == []


@COLUMNAR
def test_numbered_files_that_are_counted_on_keep_their_offsets(columnar: str, tmp_path: Path) -> None:
    log = Log(tmp_path, "1\n", columnar=columnar)
    read = []
    for number in range(2, 8):
        for index in range(number, 0, -1):
            if (tmp_path / f"app.{index}.log").exists():
                (tmp_path / f"app.{index}.log").rename(tmp_path / f"app.{index + 1}.log")
        log.rotate("app.1.log", f"{number}\n")
        read += log.run() if number % 3 else []
    assert read + log.run() == [str(number) for number in range(2, 8)]


@COLUMNAR
@pytest.mark.parametrize("how", ["copytruncate", "gzip"])
@pytest.mark.parametrize("name", ["app.1.log", "app-old.log", "app.log.old"])
def test_copy_of_a_log_of_which_enough_was_read_has_its_offset(
    name: str, how: str, columnar: str, tmp_path: Path
) -> None:
    log = Log(tmp_path, LONG, columnar=columnar)
    log.write("app.log", "rest\n")
    data = log.file.read_bytes()
    log.write(f"{name}.gz" if how == "gzip" else name, gzip.compress(data) if how == "gzip" else data)
    if how == "gzip":
        log.file.unlink()
    else:
        os.truncate(log.file, 0)
    log.write("app.log", "new\n")
    assert log.run() == ["rest", "new"]
    assert log.run() == []


@pytest.mark.parametrize("name", ["app-errors.log", "app-old.log", "app.log.old", "application.log"])
def test_file_of_another_program_is_not_read_when_the_log_is_emptied(name: str, tmp_path: Path) -> None:
    log = Log(tmp_path, "banner\n")
    log.write(name, "banner\nforeign\n")
    os.truncate(log.file, 0)
    log.write("app.log", "new\n")
    assert log.run() == ["new"]
    assert log.told("the rest of the old file, after byte 7, was not found under another name")


@pytest.mark.parametrize("text", ["", "one\n", LONG], ids=["empty", "short", "long"])
@pytest.mark.parametrize("name", NUMBERED)
def test_numbered_file_that_may_be_a_rotated_one_fails_the_run_until_it_is_said(
    name: str, text: str, tmp_path: Path
) -> None:
    log = Log(tmp_path, text)
    log.write("app.log", "rest\n")
    log.write(name, "later or foreign\n")
    log.write("new", "new\n").rename(log.file)  # the old one is gone: it was rotated twice, and deleted
    with pytest.raises(OffsetError, match=f"Beside it are .*{name}, written since, and never read.") as error:
        log.run()
    assert error.value.code == "file.rotated_or_foreign" and "Set file.rotated" in error.value.suggestion
    log.source.config["file.rotated"] = r"app\.log"
    assert log.run() == ["new"]


def test_rotated_files_that_an_expression_selects_are_read_in_order(tmp_path: Path) -> None:
    log = Log(tmp_path, "1\n", file_rotated=r"app-(old|older)\.log")
    log.write("app.log", "2\n")
    for name in ("app-older.log", "app-old.log"):
        log.rotate(name, "3\n")
    log.write("app.5.log", "foreign\n")
    assert sorted(log.run()) == ["2", "3", "3"]


def test_files_before_the_first_run_are_not_read_if_an_expression_selects_them_later(tmp_path: Path) -> None:
    folder = tmp_path
    (folder / "app.1.log").write_text("long ago\n")
    os.utime(folder / "app.1.log", (1, 1))
    log = Log(folder, "one\n")
    log.source.config["file.rotated"] = r"app\.\d+\.log"
    log.rotate("app.2.log", "two\n")
    assert log.run() == ["two"]
    assert log.told(f"1 rotated file was there before the first run: {folder}/app.1.log.")


def test_log_of_another_worker_is_not_read_while_the_log_is_the_same(tmp_path: Path) -> None:
    log = Log(tmp_path, LONG)
    log.write("app-2.log", "worker 2\n")
    log.write("app.log", "two\n")
    assert (log.run(), log.source.notes) == (["two"], [])


def test_short_log_that_may_be_a_new_one_with_the_old_inode_fails_the_run(tmp_path: Path) -> None:
    log = Log(tmp_path, "banner\n")
    log.write("app-2.log", "later or foreign\n")
    log.write("app.log", "two\n")
    with pytest.raises(OffsetError, match="that file is not found, or not with certainty"):
        log.run()
    log.source.config["file.rotated"] = r"app\.log"
    assert log.run() == ["two"]


def test_log_with_suffixes_and_the_log_of_another_worker(tmp_path: Path) -> None:
    log = Log(tmp_path, "one\n")
    log.rotate("app.log.1", "two\n")
    log.write("app-2.log", "worker 2\n")
    os.truncate(log.file, 0)
    log.write("app.log", "three\n")
    assert log.run() == ["three"]


@pytest.mark.parametrize(
    ("name", "is_family", "scheme"),
    [
        ("d/app.log", False, ""),
        ("d/app.1.log", True, "d/app#.log"),
        ("d/app-2026-11-25T10:00.log.gz", True, "d/app#.log"),
        ("d/app20261125.log", True, "d/app#.log"),
        ("d/app-errors.log", True, ""),
        ("d/app-errors-20261125.log", True, ""),
        ("d/app.log.old", True, ""),
        ("d/app.1.txt", False, ""),
        ("e/app.1.log", False, ""),
    ],
)
def test_names_that_begin_and_end_as_the_log_does(name: str, is_family: bool, scheme: str) -> None:
    assert (is_of_family(name, "d/app.log"), numbered_scheme(name, "d/app.log")) == (is_family, scheme)


def test_every_name_before_a_number_inside_is_an_earlier_name() -> None:
    assert "app.log" in earlier_names("app.2026-11-25.0.log") and "app.log" in earlier_names("app.2026-11-25.0.log.gz")
