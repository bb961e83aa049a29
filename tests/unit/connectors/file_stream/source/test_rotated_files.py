"""Rotation between two runs: every line on the disk is copied once, the last one of a rotated file included."""

from __future__ import annotations

import gzip
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.connectors.file_stream.source import connector
from airflow_connect.connectors.file_stream.source.discover.listing import Listing, list_files
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source

LATER_S = 2_000_000_000


def rotate(log: Path, keep: int = 9) -> None:
    """As logrotate does it; the next line creates the new file."""
    log.with_name(f"{log.name}.{keep}").unlink(missing_ok=True)
    for number in range(keep - 1, 0, -1):
        if (older := log.with_name(f"{log.name}.{number}")).exists():
            older.rename(log.with_name(f"{log.name}.{number + 1}"))
    log.rename(log.with_name(f"{log.name}.1"))


def append(log: Path, text: str) -> None:
    with log.open("a") as out:
        out.write(text)


def after_a_run(log: Path, text: str, **config: str) -> FileSource:
    log.write_text(text)
    source = file_source(log, **config)
    source.run()
    source.take()
    source.notes.clear()
    return source


def told(source: FileSource, words: str) -> bool:
    return any(words in note for note in source.notes)


@pytest.mark.parametrize("columnar", ["false", "true"])
def test_files_that_were_rotated_since_the_last_run_are_read_even_if_the_known_one_is_gone(
    columnar: str, tmp_path: Path
) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "l1\nl2\n", columnar=columnar)
    append(log, "l3\n")
    for number in (4, 6, 8):
        rotate(log, keep=2)
        append(log, f"l{number}\nl{number + 1}\n")
    source.run(tasks=3)
    assert source.take() == ["l4", "l5", "l6", "l7", "l8", "l9"]
    assert told(source, "the rest of the old file, after byte 6, was not found under another name")
    source.run()
    assert source.take() == []


def test_file_that_was_empty_in_the_first_run_and_rotated_then_is_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "")
    append(log, "a\nb\n")
    rotate(log)
    append(log, "c\n")
    source.run()
    assert source.take() == ["a", "b", "c"]


def test_file_of_which_nothing_could_be_copied_yet_and_that_was_rotated_then_is_read(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "be")
    append(log, "gun\n")
    rotate(log)
    append(log, "next\n")
    source.run()
    assert source.take() == ["begun", "next"]


def test_rotated_files_of_equal_times_are_read_in_the_order_of_their_numbers(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "l1\n")
    append(log, "l2\n")
    for number in range(3, 14):
        rotate(log, keep=20)
        append(log, f"l{number}\n")
    for file in tmp_path.iterdir():
        os.utime(file, (1000, 1000))
    source.run(tasks=3)
    assert source.take() == [f"l{number}" for number in range(2, 14)]


def test_rotated_files_of_the_first_run_are_never_read_and_named(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, "long ago\n")
    rotate(log)
    log.with_name("app.log.2.gz").write_bytes(gzip.compress(b"longer ago\n"))
    source = after_a_run(log, "")
    append(log, "now\n")
    log.with_name("app.log.3.gz").write_bytes(log.with_name("app.log.2.gz").read_bytes())
    log.with_name("app.log.2.gz").write_bytes(gzip.compress(log.with_name("app.log.1").read_bytes()))
    log.rename(log.with_name("app.log.1"))
    append(log, "later\n")
    source.run()
    assert source.take() == ["now", "later"]


def test_rotated_files_of_the_first_run_are_in_its_report(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    append(log, "long ago\n")
    rotate(log)
    log.write_text("now\n")
    source = file_source(log)
    source.run()
    assert source.take() == ["now"]
    assert told(source, f"1 rotated file was there before the first run: {log}.1. Nothing is read from there.")


@pytest.mark.parametrize("rotations", [0, 1, 3])
def test_offset_of_an_earlier_version_decides_which_rotated_files_are_later(rotations: int, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "l1\n")
    for key, offset in source.committed.values.items():
        source.committed.values[key] = {name: value for name, value in offset.items() if name != "modified"}
    old = log.with_name("app.log-20200101")
    old.write_text("long ago\n")
    os.utime(old, (1, 1))
    for number in range(2, 2 + rotations):
        rotate(log, keep=1 if rotations == 3 else 9)
        append(log, f"l{number}\n")
    source.run()
    # If the file that was read is gone, this is unknown: all are read.
    everything = ["long ago"] if rotations == 3 else []
    kept = range(3, 5) if rotations == 3 else range(2, 2 + rotations)
    assert source.take() == [*everything, *(f"l{number}" for number in kept)]


TRACES = "ERROR one\n  at x\nERROR two\n  at y\n"


@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_last_event_of_a_rotated_file_is_copied(pattern: str, columnar: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = file_source(tmp_path / pattern, multiline_pattern=r"^\s", columnar=columnar)
    append(log, TRACES)
    source.run()
    assert source.take() == ["ERROR one\n  at x"]
    rotate(log)
    append(log, "INFO three\nINFO four\n")
    source.run()
    assert source.take() == ["ERROR two\n  at y", "INFO three"]
    assert source.task_configs() == []


@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize("name", ["app.log.1", "app.log-20261125", "app-20261125.log"])
def test_last_line_without_end_of_a_rotated_file_is_copied(name: str, columnar: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = file_source(tmp_path / "app*", columnar=columnar)
    append(log, "one\ntwo")
    source.run()
    assert source.take() == ["one"]
    log.rename(tmp_path / name)
    source.run()
    assert source.take() == []  # The program may go on writing to the renamed file: there is no new one yet.
    append(log, "three\n")
    source.run()
    assert sorted(source.take()) == ["three", "two"]
    source.run()
    assert source.take() == []


def test_last_line_of_a_rotated_file_waits_while_the_program_still_writes_to_it(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = after_a_run(log, "one\ntw")
    rotate(log)
    log.touch()
    append(log.with_name("app.log.1"), "o an")
    os.utime(log.with_name("app.log.1"), (LATER_S, LATER_S))
    source.run()
    assert source.take() == []
    append(log.with_name("app.log.1"), "d more\n")
    source.run()
    assert source.take() == ["two and more"]


def test_last_line_of_a_dated_file_without_a_successor_waits(tmp_path: Path) -> None:
    file = tmp_path / "access.2026-11-25.log"
    source = file_source(f"{tmp_path}/*")
    append(tmp_path / "access.2026-11-24.log", "yesterday\n")
    append(file, "one\ntw")
    source.run()
    append(file, "o\n")
    source.run()
    assert sorted(source.take()) == ["one", "two", "yesterday"]


@pytest.mark.parametrize(
    ("text", "config"),
    [
        ("one\ntwo", {}),
        ("one\ntwo\r", {}),
        ("one\n" + "x" * 3_000_000, {"line_max_bytes": "1000"}),
        ("ERROR one\n  at x\n  at y\n", {"multiline_pattern": r"^\s"}),
        ("a \\\n", {"multiline_pattern": r"\\$", "multiline_what": "next"}),
    ],
    ids=["line", "carriage-return", "long-line", "event", "event-that-continues"],
)
def test_plan_has_no_task_if_all_that_is_left_waits(text: str, config: dict[str, str], tmp_path: Path) -> None:
    source = after_a_run(tmp_path / "a.log", text, **config)
    assert source.task_configs() == []
    assert told(source, "of 1 file waits, because more of it may be written")
    assert told(source, f"{tmp_path}/a.log. With last.line=read it is copied now.")
    append(tmp_path / "a.log", "\nend\n")
    assert len(source.task_configs()) == 1


def test_plan_has_a_task_for_a_last_line_that_is_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("one")
    source = file_source(tmp_path / "a.log", last_line="read")
    assert len(source.task_configs()) == 1
    source.run()
    assert (source.take(), source.task_configs()) == (["one"], [])


def test_utf_16_last_line_waits_and_is_read_after_rotation(tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_bytes("one\ntwo".encode("utf-16"))
    source = file_source(log, file_encoding="UTF-16")
    source.run()
    assert source.take() == ["one"] and source.task_configs() == []
    rotate(log)
    log.write_bytes("three\n".encode("utf-16"))
    source.run()
    assert source.take() == ["two", "three"]


@pytest.mark.parametrize("copied", [1.0, 0.5], ids=["whole", "half"])
def test_copy_of_a_file_that_is_not_truncated_yet_is_not_read_and_takes_the_offset_then(
    copied: float, tmp_path: Path
) -> None:
    log, copy = tmp_path / "app.log", tmp_path / "app.log.1"
    source = after_a_run(log, "".join(f"line {number}\n" for number in range(300)))
    append(log, "more\n")
    copy.write_bytes(log.read_bytes()[: int(log.stat().st_size * copied)])
    source.run()
    assert source.take() == ["more"]
    assert told(source, f"1 rotated file is a copy of what the file itself still contains: {copy}. Nothing is read")
    append(log, "last\n")
    copy.write_bytes(log.read_bytes())
    os.truncate(log, 0)
    append(log, "next\n")
    source.run()
    assert source.take() == ["last", "next"]
    source.run()
    assert source.take() == []


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_rotated_file_that_somebody_decompresses_is_not_copied_again(pattern: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    source = file_source(tmp_path / pattern)
    append(log, "one\n")
    source.run()
    log.with_name("app.log.1.gz").write_bytes(gzip.compress(b"one\ntwo\n"))
    log.write_text("three\n")
    source.run()
    assert source.take() == ["one", "two", "three"]
    log.with_name("app.log.1").write_bytes(b"one\ntwo\n")
    log.with_name("app.log.1.gz").unlink()
    source.run()
    assert source.take() == []


@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_compressed_files_that_begin_alike_and_are_counted_on_keep_their_offsets(pattern: str, tmp_path: Path) -> None:
    log = tmp_path / "app.log"
    log.write_text("")
    source = file_source(tmp_path / pattern)
    source.run()
    for text in ("banner\n", "banner\n2\n3\n"):
        append(log, text)
        rotate(log)
        log.write_text("")
    source.run()
    assert sorted(source.take()) == ["2", "3", "banner", "banner"]
    rotate(log)
    for number in (2, 3):
        rotated = log.with_name(f"app.log.{number}")
        log.with_name(f"app.log.{number}.gz").write_bytes(gzip.compress(rotated.read_bytes()))
        rotated.unlink()
    append(log, "4\n")
    source.run()
    assert source.take() == ["4"]


def test_rotated_file_with_the_time_of_another_one_is_told_apart_by_its_inode(tmp_path: Path) -> None:
    log, rotated = tmp_path / "app.log", tmp_path / "app.log.1"
    rotated.write_text("banner\n")
    log.write_text("banner\n2\n")
    for file in (log, rotated):
        os.utime(file, (LATER_S, LATER_S))
    source = file_source(f"{log}*")
    source.run()
    assert sorted(source.take()) == ["2", "banner", "banner"]
    packed = tmp_path / "app.log.2.gz"
    packed.write_bytes(gzip.compress(rotated.read_bytes()))
    log.rename(rotated)
    append(log, "3\n")
    for file in (log, rotated, packed):
        os.utime(file, (LATER_S, LATER_S))
    source.run()
    assert source.take() == ["3"]


@pytest.mark.parametrize("written", [1.0, 0.5, 0.0], ids=["whole", "half", "beginning"])
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "new"])
@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_compressed_file_beside_the_one_that_it_is_made_of_is_not_read_and_takes_the_offset_then(
    pattern: str, is_known: bool, written: float, tmp_path: Path
) -> None:
    log, packed = tmp_path / "app.log", tmp_path / "app.log.1.gz"
    log.write_text("")
    source = file_source(tmp_path / pattern)
    source.run()
    lines = [f"line {number * 7919 % 10007}" for number in range(3000)]
    append(log, "".join(f"{line}\n" for line in lines))
    rotate(log)
    append(log, "next\n")
    if is_known:
        source.run()
    # As gzip does it: it writes the new file, gives it the time of the old one, and deletes that.
    data = gzip.compress(log.with_name("app.log.1").read_bytes())
    packed.write_bytes(data[: max(20, int(len(data) * written))])
    source.run()
    assert sorted(source.take()) == sorted([*lines, "next"])
    assert told(source, f"is still there: {packed}. Nothing is read from there.")
    packed.write_bytes(data)
    log.with_name("app.log.1").unlink()
    source.run()
    assert source.take() == []


def test_compressed_file_that_is_older_than_the_one_that_begins_like_it_is_read(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("banner\n2\n")
    packed = tmp_path / "app.log.gz"
    packed.write_bytes(gzip.compress(b"banner\n"))
    os.utime(packed, (1_700_000_000, 1_700_000_000))
    source = file_source(tmp_path / "app.log*")
    source.run()
    assert sorted(source.take()) == ["2", "banner", "banner"]


@pytest.mark.parametrize(
    ("text", "rest", "copied", "config"),
    [
        ("one\ntw", "o\n", ["one", "two"], {}),
        ("E one\n  at x\n", "  at y\nE two\n", ["E one\n  at x\n  at y", "E two"], {"multiline_pattern": r"^\s"}),
    ],
    ids=["line", "event"],
)
def test_last_line_of_a_rotated_file_waits_while_the_new_file_is_empty(
    text: str, rest: str, copied: list[str], config: dict[str, str], tmp_path: Path
) -> None:
    log = tmp_path / "app.log"
    log.write_text(text)
    source = file_source(log, **config)
    source.run()
    rotate(log)
    log.touch()  # logrotate's `create`: the program has not opened it yet
    os.utime(log, (LATER_S, LATER_S))
    source.run()
    append(log.with_name("app.log.1"), rest)
    source.run()
    append(log, "E new\n" if config else "new\n")
    os.utime(log, (LATER_S, LATER_S))
    source.run()
    assert [value for value in source.take() if "new" not in value] == copied


def test_compressed_file_that_got_the_inode_of_another_known_file_is_not_taken_for_it(tmp_path: Path) -> None:
    first, second = tmp_path / "app.log.1", tmp_path / "app.log.2"
    (tmp_path / "app.log").write_text("new\n")
    first.write_text("banner\n")
    second.write_text("banner\n2\n")
    source = file_source(tmp_path / "app.log*")
    source.run()
    assert sorted(source.take()) == ["2", "banner", "banner", "new"]
    # `gzip app.log.*`: the file that is written second gets the inode that the first one left.
    (tmp_path / "app.log.1.gz").write_bytes(gzip.compress(first.read_bytes()))
    first.rename(tmp_path / "app.log.2.gz").write_bytes(gzip.compress(second.read_bytes()))
    second.unlink()
    source.run()
    assert source.take() == []


def test_file_that_is_compressed_while_ranges_of_it_are_unread_names_what_is_copied_twice(tmp_path: Path) -> None:
    file, lines = tmp_path / "app.log.1", [f"line {number:03}" for number in range(100)]
    file.write_text("".join(f"{line}\n" for line in lines))
    source = file_source(f"{tmp_path}/*.log*", split_bytes="300")
    source.reconcile()
    source._run_task(source.task_configs(10)[-1], [None])  # the others were killed
    read = source.take()
    packed = tmp_path / "app.log.1.gz"
    packed.write_bytes(gzip.compress(file.read_bytes()))
    os.utime(packed, ns=(file.stat().st_atime_ns, file.stat().st_mtime_ns))
    file.unlink()

    source.run()

    assert read and source.take() == lines
    assert [n for n in source.notes if f"so {9 * len(read)} bytes that were read after that are copied twice" in n]


@pytest.mark.parametrize("changed", ["read", "fail"])
def test_file_that_is_rotated_while_directories_are_listed_is_not_copied_twice(
    changed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory is read entry by entry: the listing has the new file, and not the old one under its new name."""
    log = tmp_path / "app.log"
    source = after_a_run(log, "l1\nl2\n", file_changed=changed)
    rotate(log)
    log.touch()
    listings = []

    def list_halfway(*arguments: Any) -> Listing:
        listings.append(list_files(*arguments))
        known = {name: file for name, file in listings[-1].files.items() if not name.endswith(".1")}
        return replace(listings[-1], files=known) if len(listings) == 1 else listings[-1]

    monkeypatch.setattr(connector, "list_files", list_halfway)
    append(log, "l3\n")
    source.run()
    assert source.take() == ["l3"]
    assert not told(source, "read from its beginning")
