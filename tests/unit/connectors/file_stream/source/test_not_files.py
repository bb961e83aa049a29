"""Pipes, sockets, directories and links that lead nowhere: never opened, and named in the report."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.stores.local import file_system
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """One of each kind beside a file."""
    monkeypatch.chdir(tmp_path)  # the name of a socket must be short
    Path("a.log").write_text("one\n")
    os.mkfifo("b.log")
    Path("c.log").symlink_to("nowhere")
    Path("d.log").mkdir()
    Path("e.log").symlink_to("e.log")
    Path("f.log").symlink_to("d.log")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("g.log")
        yield tmp_path


def notes(source: FileSource) -> list[str]:
    """What one run says."""
    source.notes.clear()
    source.task_configs()
    return source.notes


def test_what_is_not_a_file_is_named_and_counted(folder: Path) -> None:
    source = file_source(f"{folder}/*.log", columnar="true")
    source.run()
    assert source.take() == ["one"]
    kinds = {
        "b": "a pipe", "c": "a link that leads to no file (No such file or directory)", "d": "a directory",
        "e": "a link that leads to no file (Too many levels of symbolic links)", "f": "a directory", "g": "a socket",
    }  # fmt: skip
    names = ", ".join(f"{folder}/{name}.log ({kind})" for name, kind in kinds.items())
    (note,) = notes(source)
    assert note.startswith(f"6 names that files selects are not of a file: {names}. Nothing is read from there.")


def test_what_is_not_selected_or_excluded_is_not_named(folder: Path) -> None:
    assert notes(file_source(f"{folder}/[ab].log", files_exclude="b.log")) == []


@pytest.mark.parametrize("recursive", ["true", "false"])
def test_directories_below_a_directory_are_no_matter_of_a_note(recursive: str, folder: Path) -> None:
    (told,) = [n for n in notes(file_source(files=f"{folder}/", files_recursive=recursive)) if "not of a file" in n]
    assert told.startswith("4 names") and "directory" not in told.replace("No such file or directory", "")


def test_rotated_file_of_the_log_that_is_not_a_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("one\n")
    os.mkfifo(tmp_path / "app.log.1")
    os.mkfifo(tmp_path / "other.log")
    (note,) = notes(file_source(tmp_path / "app.log"))
    assert note.startswith(f"1 name that may be of a rotated file is not of a file: {tmp_path}/app.log.1 (a pipe).")


def denied(monkeypatch: pytest.MonkeyPatch, name: str, *, is_link: bool) -> None:
    """A directory with one file that may not be described; root may describe every real one."""

    class Denied:
        def is_dir(self, *, follow_symlinks: bool = True) -> bool:
            return False

        def is_symlink(self) -> bool:
            return is_link

        def stat(self) -> os.stat_result:
            raise PermissionError(13, "Permission denied")

    Denied.name = name  # type: ignore[attr-defined]
    monkeypatch.setattr(file_system.os, "scandir", lambda _: iter([Denied()]))


@pytest.mark.parametrize("is_link", [False, True], ids=["file", "link"])
def test_file_that_may_not_be_described_fails_the_run_and_keeps_its_offset(
    is_link: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its offset would be deleted, and all of it copied again, if it passed for a file that is missing."""
    (tmp_path / "a.log").write_text("one\n")
    source = file_source(f"{tmp_path}/*.log", offsets_of_missing_files="delete")
    source.run()
    before = dict(source.committed.values)

    with monkeypatch.context() as patch:
        denied(patch, "a.log", is_link=is_link)
        with pytest.raises(AccessError, match=r"a.log cannot be read: Permission denied"):
            source.run()

    assert source.committed.values == before
    source.run()
    assert source.take() == ["one"]


@pytest.mark.parametrize("name", ["app.log.1", "other.log"])
def test_link_beside_the_log_that_may_not_be_described_fails_the_run_if_it_may_be_a_rotated_file(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "app.log").write_text("one\n")
    denied(monkeypatch, name, is_link=True)
    source = file_source(tmp_path / "app.log")
    if name == "other.log":
        source.run()
        assert source.take() == ["one"]
    else:
        with pytest.raises(AccessError, match=r"app.log.1 cannot be read: Permission denied"):
            source.run()
