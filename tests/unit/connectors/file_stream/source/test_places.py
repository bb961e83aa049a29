"""Where files are: URLs with escapes, files and directories that do not exist, several names of one file."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_connect.errors import ConfigError
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source


def told(source: FileSource, words: str) -> bool:
    return any(words in note for note in source.notes)


@pytest.mark.parametrize("name", ["my file.txt", "100%.txt", "%41.txt", "ä+b&c.txt", "plain.txt"])
def test_file_url_with_escapes_is_the_file_that_it_means(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "a dir"
    folder.mkdir()
    (folder / name).write_text("q\n")
    rotated = (folder / name).with_name(f"{name}.1")
    for source in (
        file_source((folder / name).as_uri()),
        file_source(files=(folder / name).as_uri()),
        file_source(f"{folder.as_uri()}/*.txt"),
        file_source(files=f"{folder.as_uri()}/"),
        file_source(f"file://localhost{folder.as_uri().removeprefix('file://')}/*.txt"),
    ):
        source.run()
        assert source.take() == ["q"]
        source.run()
        assert (source.take(), source.notes) == ([], [])
    # Rotated files of a URL are found, too.
    source = file_source((folder / name).as_uri())
    source.run()
    (folder / name).rename(rotated)
    with rotated.open("a") as out:
        out.write("r\n")
    (folder / name).write_text("s\n")
    source.run()
    assert source.take() == ["q", "r", "s"]


def test_wildcards_of_a_file_url_match_names_without_escapes(tmp_path: Path) -> None:
    (tmp_path / "my file.txt").write_text("q\n")
    source = file_source(f"{tmp_path.as_uri()}/my%20f*.txt")
    source.run()
    assert source.take() == ["q"]


@pytest.mark.parametrize("url", ["file://data/in.txt", "file:/data/in.txt", "file:in.txt"])
@pytest.mark.parametrize("key", ["file", "files"])
def test_file_url_without_three_slashes_is_refused(key: str, url: str) -> None:
    with pytest.raises(ConfigError, match="three slashes come before its path"):
        file_source(**{key: url}).run()


def test_file_that_does_not_exist_is_named_in_each_run(tmp_path: Path) -> None:
    source = file_source(tmp_path / "typo.log")
    for _ in range(2):
        source.run()
        assert source.notes == [f"{tmp_path}/typo.log is not read: no file has this name."]
        source.notes.clear()


def test_directory_of_a_file_that_does_not_exist_fails_the_run(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=f"the directory {tmp_path}/no/ does not exist") as error:
        file_source(tmp_path / "no" / "app.log").run()
    assert error.value.code == "file.no_directory"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("typo.csv", "no file has this name"),
        ("*.cvs", "no file matches it"),
        ("no/*.csv", "the directory {}/no/ does not exist"),
        ("no/", "the directory {}/no/ does not exist"),
    ],
)
def test_entry_of_files_that_names_nothing_is_named(pattern: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n")
    source = file_source(f"{tmp_path}/a.csv", f"{tmp_path}/{pattern}")
    source.run()
    assert source.take() == ["a"]
    assert source.notes == [f"{tmp_path}/{pattern} is not read: {why.format(tmp_path)}."]


def test_landing_folder_that_is_empty_again_is_nothing_to_tell(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("a\n")
    source = file_source(f"{tmp_path}/*.csv")
    source.run()
    (tmp_path / "a.csv").unlink()
    source.run()
    assert source.notes == []


@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize("link", [os.symlink, os.link])
def test_link_and_its_target_are_one_file(link, columnar: str, tmp_path: Path) -> None:
    target, alias = tmp_path / "app-20261125.log", tmp_path / "zz-current.log"
    target.write_text("x\n")
    link(target, alias)
    source = file_source(f"{tmp_path}/*.log", columnar=columnar)
    source.run(tasks=2)
    assert source.take() == ["x"]
    assert told(source, f"1 name is a link to a file that is read under another name: {alias} -> ")
    with target.open("a") as out:
        out.write("y\n")
    source.run(tasks=2)
    assert source.take() == ["y"]


def test_symbolic_link_that_moves_on_to_the_next_file_copies_each_line_once(tmp_path: Path) -> None:
    current = tmp_path / "current.log"
    source = file_source(f"{tmp_path}/*.log")
    for day in (24, 25, 26):
        file = tmp_path / f"app-202611{day}.log"
        file.write_text(f"{day}\n")
        current.unlink(missing_ok=True)
        current.symlink_to(file)
        source.run(tasks=2)
        assert source.take() == [str(day)]


def test_configured_link_to_a_dated_file_is_followed_through_rotations(tmp_path: Path) -> None:
    current = tmp_path / "app.log"
    source = file_source(current)
    for day in (24, 25, 26):
        file = tmp_path / f"app.log.202611{day}"
        if day > 24:
            with (tmp_path / f"app.log.202611{day - 1}").open("a") as out:
                out.write(f"last of {day - 1}\n")
        file.write_text(f"first of {day}\n")
        current.unlink(missing_ok=True)
        current.symlink_to(file)
        source.run(tasks=2)
        assert source.take() == [*([f"last of {day - 1}"] if day > 24 else []), f"first of {day}"]
    assert not told(source, "before the first run")


def test_link_that_appears_later_does_not_take_the_offset(tmp_path: Path) -> None:
    second = tmp_path / "b.log"
    second.write_text("x\n")
    source = file_source(f"{tmp_path}/*.log")
    source.run()
    os.link(second, tmp_path / "a.log")
    source.run()
    assert source.take() == ["x"]
    assert [partition["filename"] for partition, _ in source.committed.committed()] == [str(second)]


def test_same_file_under_a_path_and_a_url_is_read_once(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("x\n")
    source = file_source(files=f"{tmp_path}/a.log,{(tmp_path / 'a.log').as_uri()},{tmp_path}/./a.log")
    source.run()
    assert source.take() == ["x"] and told(source, "2 names are links")


def test_files_of_equal_content_are_two_files(tmp_path: Path) -> None:
    for name in ("a.log", "b.log"):
        (tmp_path / name).write_text("x\n")
    source = file_source(f"{tmp_path}/*.log")
    source.run()
    assert source.take() == ["x", "x"]


def test_link_to_a_directory_is_not_followed_and_named(tmp_path: Path) -> None:
    for name in ("logs/a", "logs/release-1", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "app.log").write_text(f"{name}\n")
    (tmp_path / "logs" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "logs" / "current").symlink_to("release-1")  # what it leads to is read
    for pattern in (f"{tmp_path}/logs/*/app.log", f"{tmp_path}/logs/**", f"{tmp_path}/logs/"):
        source = file_source(files=pattern)
        source.run()
        assert sorted(source.take()) == ["logs/a", "logs/release-1"]
        assert told(source, f"1 directory is a link, and not followed: {tmp_path}/logs/link.")
    source = file_source(files=f"{tmp_path}/logs/**,{tmp_path}/logs/link/")
    source.run()
    assert sorted(source.take()) == ["elsewhere", "logs/a", "logs/release-1"]
    assert source.notes == []
