"""Whether a file is a known one under a new name, another one that begins like it, or one that is there again."""

from __future__ import annotations

import gzip
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from airflow_connect.connectors.file_stream.source.discover.rotation import counted, earlier_names
from airflow_connect.connectors.file_stream.source.file_offsets import FileOffset
from airflow_connect.connectors.file_stream.source.offsets.known_content import KnownContent
from airflow_connect.errors import OffsetError
from airflow_connect.stores.file_system import FoundFile
from airflow_connect.stores.local import file_system
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source

BEFORE_S, LATER_S = 1_700_000_000, 2_000_000_000
"""Times before and after those of the files that a test writes."""
DAY_MS = 24 * 3600 * 1000


def written(file: Path, text: str, at_s: int) -> None:
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    os.utime(file, (at_s, at_s))


def with_the_old_inode(old: Path, new: Path, text: str) -> None:
    """The old file is deleted and a new one gets its inode, as often happens on ext4."""
    inode = old.stat().st_ino
    new.parent.mkdir(exist_ok=True)
    old.rename(new)
    written(new, text, LATER_S)
    assert new.stat().st_ino == inode


def with_another_inode(old: Path, new: Path, text: str) -> None:
    """The old file is archived on the same disk, so its inode is in use, and a new one arrives."""
    archive = old.parents[1] / "archive"
    archive.mkdir(exist_ok=True)
    old.rename(archive / "old")
    written(new, text, LATER_S)


def source_that_has_read(file: Path, text: str, **config: str) -> FileSource:
    written(file, text, BEFORE_S)
    source = file_source(f"{file.parent}/*", **config)
    source.run()
    assert source.take() == text.splitlines()
    source.notes.clear()
    return source


def told(source: FileSource, words: str) -> bool:
    return any(words in note for note in source.notes)


@pytest.mark.parametrize("arrives", [with_the_old_inode, with_another_inode], ids=lambda arrives: arrives.__name__)
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("status-24.txt", "status-25.txt"),
        ("status-24", "status-25"),
        ("status.24", "status.25"),
        ("status.2026-11-24", "status.2026-11-25"),
        ("orders.csv", "invoices.csv"),
    ],
)
@pytest.mark.parametrize("columnar", ["false", "true"])
def test_delivery_that_begins_like_an_archived_one_is_copied_whole(
    arrives: Callable[[Path, Path, str], None], old: str, new: str, columnar: str, tmp_path: Path
) -> None:
    source = source_that_has_read(tmp_path / "in" / old, "header\n", columnar=columnar)
    arrives(tmp_path / "in" / old, tmp_path / "in" / new, "header\nrow\n")
    source.run()
    assert source.take() == ["header", "row"]
    # Only with the old inode it may be the old file after all.
    assert told(source, f"{new} begins with the 7 bytes that were read from") == (arrives is with_the_old_inode)
    source.run()
    assert source.take() == []


def test_file_that_was_renamed_to_any_name_and_not_modified_is_not_copied_again(tmp_path: Path) -> None:
    source = source_that_has_read(tmp_path / "in" / "data.csv", "a\nb\n")
    (tmp_path / "in" / "data.csv").rename(tmp_path / "in" / "done-1.txt")
    source.run()
    assert source.take() == []
    (note,) = dict.fromkeys(source.notes)
    assert "1 file was renamed; its offset moved along" in note and "data.csv -> " in note


def test_file_that_was_moved_to_another_directory_is_not_copied_again(tmp_path: Path) -> None:
    written(tmp_path / "in" / "data.csv", "a\nb\n", BEFORE_S)
    source = file_source(f"{tmp_path}/**/*.csv")
    source.run()
    (tmp_path / "done").mkdir()
    (tmp_path / "in" / "data.csv").rename(tmp_path / "done" / "data.csv")
    source.run()
    assert source.take() == ["a", "b"] and told(source, "was renamed")


@pytest.mark.parametrize("name", ["app.log.1", "app.log-20261125", "app-20261125.log", "app.1.log"])
def test_file_that_is_written_to_and_rotated_goes_on_under_its_new_name(name: str, tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    with log.open("a") as out:
        out.write("two\n")
    log.rename(log.with_name(name))
    source.run()
    assert source.take() == ["two"]
    assert told(source, f"app.log -> {log.with_name(name)}")


@pytest.mark.parametrize("has_successor", [True, False])
def test_compressed_copy_of_a_rotated_file_is_not_copied_again(has_successor: bool, tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log.1"
    source = source_that_has_read(log, "one\n")
    packed = log.with_name("app.log.1.gz")
    packed.write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    if has_successor:
        log.write_text("three\n")
    source.run()
    assert source.take() == (["three"] if has_successor else [])
    assert source.task_configs() == []  # The compressed file is known to be read to its end.


def test_rotated_file_that_is_compressed_and_counted_on_is_not_copied_again(tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    log.rename(log.with_name("app.log.1"))
    log.write_text("two\n")
    source.run()
    assert source.take() == ["two"]
    log.with_name("app.log.2.gz").write_bytes(gzip.compress(b"one\n"))
    log.rename(log.with_name("app.log.1"))
    log.write_text("three\n")
    source.run()
    assert source.take() == ["three"]
    assert told(source, "2 files were renamed")


def test_compressed_file_whose_time_was_kept_is_not_taken_for_another_one_that_begins_alike(tmp_path: Path) -> None:
    """Both offsets have the same content. app.log.12.gz comes first in the list, and has the time of app.log.9."""
    log, oldest = tmp_path / "app.log", tmp_path / "app.log.9"
    written(oldest, "banner\n", BEFORE_S)
    written(log, "banner\n", BEFORE_S + 5)
    source = file_source(tmp_path / "app.log*")
    source.run()
    assert source.take() == ["banner", "banner"]
    for old, number, at_s in ((oldest, 12, BEFORE_S), (log, 3, LATER_S)):
        packed = tmp_path / f"app.log.{number}.gz"
        packed.write_bytes(gzip.compress(old.read_bytes()))
        os.utime(packed, (at_s, at_s))
        old.unlink()
    written(log, "new\n", LATER_S + 5)

    source.run()

    assert source.take() == ["new"]


@pytest.mark.parametrize("keeps_time", [True, False])
def test_rotated_file_that_is_compressed_and_counted_on_over_a_gap_is_recognised_or_named(
    tmp_path: Path, keeps_time: bool
) -> None:
    """app.log.1 is deleted, so nothing has the number 2 when app.log.2 becomes app.log.3.gz."""
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    second, third = log.with_name("app.log.2"), log.with_name("app.log.3.gz")
    log.rename(second)
    log.write_text("two\n")
    source.run()
    assert source.take() == ["two"]
    third.write_bytes(gzip.compress(b"one\n"))
    times = second.stat().st_mtime_ns if keeps_time else second.stat().st_mtime_ns + 5_000_000_000
    os.utime(third, ns=(times, times))
    second.unlink()
    source.run()
    assert source.take() == ([] if keeps_time else ["one"])
    assert told(source, "1 file was renamed" if keeps_time else "If it was renamed, these bytes are copied twice.")


def test_rotated_files_that_are_mirrored_with_other_inodes_are_not_copied_again(tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    shutil.copyfile(log, log.with_name("app.log.1"))
    other = log.with_name("new")
    other.write_text("two\n")
    other.rename(log)
    source.run()
    assert source.take() == ["two"]


@pytest.mark.parametrize("text", ["one\n", "one\ntwo\n"], ids=["equal", "longer"])
@pytest.mark.parametrize("setting", ["fail", "continue", "read"])
def test_other_file_under_a_known_name_that_begins_alike_is_read_as_configured(
    setting: str, text: str, tmp_path: Path
) -> None:
    file = tmp_path / "in" / "status.txt"
    source = source_that_has_read(file, "one\n", **({} if setting == "fail" else {"file_replaced": setting}))
    written(tmp_path / "new", text, LATER_S)
    (tmp_path / "new").rename(file)
    if setting == "fail":
        with pytest.raises(OffsetError, match=r"status.txt was replaced by another file, which begins with") as error:
            source.run()
        assert error.value.code == "file.replaced"
        assert "file.replaced=continue" in str(error.value.suggestion)
        return
    source.run()
    assert source.take() == (text.splitlines() if setting == "read" else text.splitlines()[1:])
    assert told(source, "is read from its beginning" if setting == "read" else "is read on after them")
    source.notes.clear()
    source.run()
    assert (source.take(), source.notes) == ([], [])


def test_copy_of_a_known_file_with_its_time_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.txt"
    source = source_that_has_read(file, "one\n")
    shutil.copy2(file, tmp_path / "copy")
    (tmp_path / "copy").rename(file)
    source.run()
    assert (source.take(), source.notes) == ([], [])


def replaced_in_the_same_millisecond(file: Path, text: str, nanoseconds: int) -> None:
    """Another file gets the name; its time differs from that of the first by nanoseconds only."""
    other = file.parent.parent / "other"
    other.write_text(text)
    other_ns = file.stat().st_mtime_ns + nanoseconds
    os.utime(other, ns=(other_ns, other_ns))
    other.rename(file)


def source_that_has_read_at(file: Path, nanoseconds: int) -> FileSource:
    source = file_source(file)
    file.parent.mkdir()
    file.write_text("one\n")
    os.utime(file, ns=(nanoseconds, nanoseconds))
    source.run()
    assert source.take() == ["one"]
    source.notes.clear()
    return source


TIME_NS = 1_700_000_000_123_456_789


@pytest.mark.parametrize("nanoseconds", [1, -789 + 1, 400_000])
def test_other_file_of_the_same_millisecond_is_not_taken_for_the_known_one(nanoseconds: int, tmp_path: Path) -> None:
    file = tmp_path / "in" / "status.txt"
    source = source_that_has_read_at(file, TIME_NS)
    replaced_in_the_same_millisecond(file, "one\ntwo\n", nanoseconds)
    with pytest.raises(OffsetError) as error:
        source.run()
    assert error.value.code == "file.replaced"


@pytest.mark.parametrize("nanoseconds", [0, -789, -456_789], ids=["all", "microseconds", "milliseconds"])
def test_other_file_with_the_same_time_is_read_on_and_both_readings_are_told(nanoseconds: int, tmp_path: Path) -> None:
    file = tmp_path / "in" / "status.txt"
    source = source_that_has_read_at(file, TIME_NS)
    replaced_in_the_same_millisecond(file, "one\ntwo\n", nanoseconds)
    source.run()
    assert source.take() == ["two"]
    assert told(source, "status.txt has another inode, but the same modification time, and begins with the 4 bytes")
    source.notes.clear()
    source.run()
    assert (source.take(), source.notes) == ([], [])


@pytest.mark.parametrize("lines", [1, 500], ids=["short", "long"])
@pytest.mark.parametrize("setting", ["fail", "continue", "read"])
def test_file_that_is_written_again_with_the_same_content_is_told(setting: str, lines: int, tmp_path: Path) -> None:
    file = tmp_path / "in" / "status.txt"
    source = source_that_has_read(file, "ok\n" * lines, file_replaced=setting)
    written(file, "ok\n" * lines, LATER_S)
    source.run()
    assert source.take() == (["ok"] * lines if setting == "read" else [])
    assert told(source, "1 file was modified since it was read, but with the same size, beginning and end")
    source.run()
    assert source.take() == []


def test_file_that_comes_back_is_told_and_goes_on(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.txt"
    source = source_that_has_read(file, "one\n")
    file.unlink()
    source.run()
    written(file, "one\ntwo\n", LATER_S)
    source.run()
    assert source.take() == ["two"]
    assert told(source, "1 missing file is there again, and what was read before is not read twice")


def test_offset_of_a_file_that_is_missing_for_long_is_deleted_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "in" / "a.txt"
    source = source_that_has_read(file, "one\n", offsets_of_missing_files_days="30")
    file.rename(tmp_path / "a.txt")
    source.run()
    now_s = time.time()
    for days, is_known in ((29, True), (31, False)):
        monkeypatch.setattr(time, "time", lambda days=days: now_s + days * DAY_MS / 1000)
        source.run()
        assert bool(source.committed.values) is is_known
        assert told(source, "that was missing for 30 days was deleted") is not is_known


def test_offsets_in_a_directory_that_is_not_there_are_kept_and_the_directory_is_named(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.txt"
    source = source_that_has_read(file, "one\n", offsets_of_missing_files="delete")
    before = dict(source.committed.values)
    file.parent.rename(tmp_path / "unmounted")
    source.run()
    assert source.committed.values == before
    assert told(source, f"the directory {file.parent}/ does not exist")
    (tmp_path / "unmounted").rename(file.parent)
    source.run()
    assert source.take() == []


def test_offsets_of_an_earlier_version_are_continued(tmp_path: Path) -> None:
    file = tmp_path / "in" / "app.log"
    source = source_that_has_read(file, "one\n")
    for key, offset in source.committed.values.items():
        source.committed.values[key] = {name: value for name, value in offset.items() if name != "modified"}
    with file.open("a") as out:
        out.write("two\n")
    file.rename(file.with_name("app.log.1"))
    written(file, "three\n", LATER_S)
    source.run()
    assert source.take() == ["two", "three"]


@pytest.mark.parametrize(
    ("name", "earlier", "number"),
    [
        ("d/app.log", [], None),
        ("d/app.log.1", ["d/app.log"], ("d/app.log", 1)),
        ("d/app.log.2.gz", ["d/app.log", "d/app.log.2"], ("d/app.log", 2)),
        ("d/app.log-20261125.gz", ["d/app.log", "d/app.log-20261125"], None),
        ("d/app-20261125.log", ["d/app.log"], None),
        ("d/app.3.log.gz", ["d/app.3.log", "d/app.log"], ("d/app.log", 3)),
        ("d/.1", [], None),
        ("d/20261125.log", [], None),
    ],
)
def test_names_tell_what_a_file_was_before_it_was_rotated(
    name: str, earlier: list[str], number: tuple[str, int] | None
) -> None:
    assert (earlier_names(name), counted(name)) == (earlier, number)


@pytest.fixture
def without_inodes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file system that tells no inodes, as HDFS."""
    found = file_system._found

    def nameless(name: str, status: os.stat_result) -> FoundFile:
        return replace(found(name, status), identity="")

    monkeypatch.setattr(file_system, "_found", nameless)


@pytest.mark.usefixtures("without_inodes")
@pytest.mark.parametrize(("old", "new"), [("status-24", "status-25"), ("status", "status-25"), ("a.csv", "b.csv")])
def test_delivery_without_inodes_that_begins_like_an_archived_one_is_copied_whole(
    old: str, new: str, tmp_path: Path
) -> None:
    source = source_that_has_read(tmp_path / "in" / old, "ok\n")
    with_another_inode(tmp_path / "in" / old, tmp_path / "in" / new, "ok\n")
    source.run()
    assert source.take() == ["ok"]


@pytest.mark.usefixtures("without_inodes")
@pytest.mark.parametrize("has_successor", [True, False])
def test_rotated_file_without_inodes_is_not_copied_again(has_successor: bool, tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    log.rename(log.with_name("app.log.1"))
    if has_successor:
        written(log, "two\n", LATER_S)
    source.run()
    assert source.take() == (["two"] if has_successor else [])
    assert told(source, "1 file was renamed")


def test_offset_moves_to_a_name_at_which_a_killed_run_was_to_read_another_file(tmp_path: Path) -> None:
    log = tmp_path / "in" / "app.log"
    source = source_that_has_read(log, "one\n")
    source.committed.put({"filename": f"{log}.1"}, {"position": 0, "fingerprint": "", "identity": "1"})
    log.rename(log.with_name("app.log.1"))
    source.run()
    assert source.take() == []


def test_archived_and_new_files_with_one_header_are_not_compared_with_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "archive").mkdir()
    header = "h" * 1200
    source = file_source(f"{tmp_path}/in/*")
    for number in range(60):
        (tmp_path / "in" / f"orders-{number}.csv").write_text(f"{header}\n{number}\n")
    source.run()
    for number in range(60):
        name = f"orders-{number}.csv"
        (tmp_path / "in" / name).rename(tmp_path / "archive" / name)
        (tmp_path / "in" / f"orders-{number + 60}.csv").write_text(f"{header}\n{number + 60}\n")
    compared = []
    holds = KnownContent.holds

    def counted_holds(self: KnownContent, file: FoundFile, known: FileOffset) -> bool:
        compared.append(file.name)
        return holds(self, file, known)

    monkeypatch.setattr(KnownContent, "holds", counted_holds)
    source.take()
    assert len(source.task_configs()) == 1
    assert len(compared) <= 60  # 60 times 60 before
    source.run()
    assert len(source.take()) == 120


def test_offsets_below_a_directory_that_is_not_there_are_kept(tmp_path: Path) -> None:
    written(tmp_path / "mount" / "a.txt", "top\n", BEFORE_S)
    written(tmp_path / "mount" / "sub" / "a.txt", "one\n", BEFORE_S)
    source = file_source(tmp_path / "mount" / "**" / "*.txt", offsets_of_missing_files="delete")
    source.run()
    assert sorted(source.take()) == ["one", "top"]
    (tmp_path / "mount").rename(tmp_path / "away")
    source.run()
    (tmp_path / "away").rename(tmp_path / "mount")
    source.run()
    assert source.take() == []


def test_missing_file_that_is_back_under_another_name_and_was_written_to_is_told(tmp_path: Path) -> None:
    file = tmp_path / "in" / "a.txt"
    source = source_that_has_read(file, "one\n")
    file.rename(tmp_path / "a.txt")
    source.run()
    (tmp_path / "a.txt").rename(file.with_name("b.txt"))
    written(file.with_name("b.txt"), "one\ntwo\n", LATER_S)
    source.run()
    assert source.take() == ["one", "two"]
    assert told(source, "If it was renamed, these bytes are copied twice")
    source.notes.clear()
    source.run()
    assert source.notes == []
