"""What Kafka Connect's own file source does with a file, and what must come out here.

The cases are those that were observed with Kafka Connect 4.3.1: file contents over several runs, as steps.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.unit.connectors.file_stream.source.source_runs import file_source


class Case(NamedTuple):
    """`steps`: what is appended before each run, and the lines that the run must bring."""

    name: str
    steps: tuple[tuple[bytes, tuple[str, ...]], ...]
    position: int
    config: dict[str, str] = {}  # noqa: RUF012 (nobody changes it)


CASES = (
    Case("utf8-first-run-counts-bytes", (("é1\n日本2\n😀3\nab\n".encode(), ("é1", "日本2", "😀3", "ab")),), 21),
    Case(
        "utf8-goes-on-behind-the-last-line-without-repeating",
        (
            ("é1\n日本2\n😀3\nab\n".encode(), ("é1", "日本2", "😀3", "ab")),
            (b"new4\n", ("new4",)),
            (b"later5\n", ("later5",)),
        ),
        33,
    ),
    Case("a-line-waits-for-its-end", ((b"one\ntwo", ("one",)), (b" more\nthree\n", ("two more", "three"))), 19),
    Case(
        "the-last-line-by-choice",
        ((b"one\ntwo", ("one", "two")), (b"\nthree\n", ("", "three"))),
        14,
        {"last_line": "read"},
    ),
    Case("all-terminators", ((b"a\r\nb\r\n\r\nc\rd\r\n", ("a", "b", "", "c", "d")),), 13),
    Case("a-lone-return-at-the-end-waits", ((b"d\r\ne\r", ("d",)), (b"f\n", ("e", "f"))), 7),
    Case("a-return-at-the-end-that-a-feed-follows", ((b"e\r", ()), (b"\nf\n", ("e", "f"))), 5),
    Case(
        "a-return-read-as-the-last-line-and-its-feed-later",
        ((b"e\r", ("e",)), (b"\nf\n", ("f",))),
        5,
        {"last_line": "read"},
    ),
    Case("batches-of-one-do-not-stall", ((b"a\rb\rc\n", ("a", "b", "c")),), 6, {"batch_size": "1"}),
    Case(
        "batches-of-two-do-not-stall",
        ((b"1\n2\n3\n4\n5\n", tuple("12345")), (b"6\n7\n8\n", tuple("678")), (b"9\n", ("9",))),
        18,
        {"batch_size": "2"},
    ),
    Case("empty-lines", ((b"\n\n", ("", "")),), 2),
    Case("invalid-utf8-is-replaced", ((b"a\xff\xfeb\n", ("a��b",)),), 5),
    Case("a-long-line", ((b"x" * 5000 + b"\n", ("x" * 5000,)),), 5001),
    Case("only-line-feeds-by-choice", ((b"a\rb\r\nc\n", ("a\rb\r", "c")),), 7, {"line_terminator": "lf"}),
    Case("nothing-new", ((b"a\n", ("a",)), (b"", ())), 2),
)


@pytest.mark.parametrize("columnar", ["false", "true"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_file_that_grows_from_run_to_run(case: Case, columnar: str, tmp_path: Path) -> None:
    file = tmp_path / "u.txt"
    source = file_source(file, columnar=columnar, **case.config)
    for appended, lines in case.steps:
        with file.open("ab") as out:
            out.write(appended)
        source.run()
        assert tuple(source.take()) == lines
    (offset,) = (value for _, value in source.committed.committed())
    assert offset["position"] == case.position


def rename(file: Path) -> None:
    file.rename(file.with_name("app.log.1"))
    file.write_bytes(b"new1\nnew2\n")


def copy_and_truncate(file: Path) -> None:
    file.with_name("app.log.1").write_bytes(file.read_bytes())
    with file.open("r+b") as same:
        same.truncate(0)
        same.write(b"new1\nnew2\n")


def compress(file: Path) -> None:
    import gzip

    file.with_name("app.log.1.gz").write_bytes(gzip.compress(file.read_bytes()))
    file.unlink()
    file.write_bytes(b"new1\nnew2\n")


@pytest.mark.parametrize("rotate", [rename, copy_and_truncate, compress], ids=lambda rotate: rotate.__name__)
@pytest.mark.parametrize("pattern", ["app.log", "app.log*"])
def test_rest_of_a_rotated_file_comes_before_the_new_one(
    rotate: Callable[[Path], None], pattern: str, tmp_path: Path
) -> None:
    file = tmp_path / "app.log"
    file.write_bytes(b"old1\nold2\n")
    source = file_source(tmp_path / pattern)
    source.run()
    assert source.take() == ["old1", "old2"]

    with file.open("ab") as out:
        out.write(b"old3\n")
    rotate(file)
    source.run(tasks=3)
    assert source.take() == ["old3", "new1", "new2"]
    source.run()
    assert source.take() == []


def test_two_rotations_between_two_runs(tmp_path: Path) -> None:
    import os

    file = tmp_path / "app.log"
    file.write_bytes(b"a1\na2\n")
    source = file_source(file)
    source.run()
    with file.open("ab") as out:
        out.write(b"a3\n")
    file.rename(tmp_path / "app.log.2")
    (tmp_path / "app.log.1").write_bytes(b"b1\n")
    file.write_bytes(b"c1\n")
    for age, name in enumerate(("app.log", "app.log.1", "app.log.2")):
        os.utime(tmp_path / name, (1_700_000_000 - age, 1_700_000_000 - age))
    source.take()

    source.run(tasks=4)

    assert source.take() == ["a3", "b1", "c1"]
    source.run()
    assert source.take() == []


def test_files_beside_that_were_there_before_are_not_read(tmp_path: Path) -> None:
    import os

    file = tmp_path / "app.log"
    (tmp_path / "app.log.1").write_bytes(b"before\n")
    os.utime(tmp_path / "app.log.1", (1, 1))
    file.write_bytes(b"now\n")
    source = file_source(file)
    source.run()
    assert source.take() == ["now"]


def test_chain_of_rotations_moves_every_offset(tmp_path: Path) -> None:
    names = ["app.log", "app.log.1", "app.log.2"]
    for name in names:
        (tmp_path / name).write_text(f"{name} first\n")
    source = file_source(f"{tmp_path}/app.log*")
    source.run(tasks=2)
    assert sorted(source.take()) == [f"{name} first" for name in names]
    for name in names:
        with (tmp_path / name).open("a") as out:
            out.write(f"{name} second\n")
    for number in (3, 2, 1):
        (tmp_path / (f"app.log.{number - 1}" if number > 1 else "app.log")).rename(tmp_path / f"app.log.{number}")
    (tmp_path / "app.log").write_text("fresh\n")

    source.run(tasks=2)

    assert sorted(source.take()) == [*(f"{name} second" for name in names), "fresh"]
    source.run()
    assert source.take() == []


@pytest.mark.parametrize("now", [b"abc\n", b"another file\nof more lines\nthan before\n"], ids=["shorter", "longer"])
def test_truncated_or_replaced_file_is_read_from_its_beginning_with_a_note(now: bytes, tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    file.write_bytes(b"line1\nline2\nline3\n")
    source = file_source(file)
    source.run()
    source.take()
    file.write_bytes(now)

    source.run()

    assert source.take() == now.decode().splitlines()
    (note,) = dict.fromkeys(source.notes)
    assert f"{file}" in note and "It is read from its beginning" in note


def test_truncated_file_that_has_grown_beyond_the_position_is_noticed(tmp_path: Path) -> None:
    file = tmp_path / "t.txt"
    head = b"banner of the program\n"
    file.write_bytes(head + b"line1\n")
    source = file_source(file)
    source.run()
    source.take()
    file.write_bytes(head + b"other\nlines\n")
    source.run()
    assert source.take() == ["banner of the program", "other", "lines"]


def test_new_file_that_begins_as_the_old_one_did_is_told_apart_by_its_inode(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    file.write_bytes(b"banner\n")
    source = file_source(file)
    source.run()
    with file.open("ab") as out:
        out.write(b"old\n")
    file.rename(tmp_path / "app.log.1")
    file.write_bytes(b"banner\nnew\n")
    source.take()
    source.run()
    assert source.take() == ["old", "banner", "new"]


def test_missing_file_is_no_error_and_found_when_it_comes(tmp_path: Path) -> None:
    source = file_source(tmp_path / "later.txt")
    source.run()
    assert source.take() == [] and not source.committed.values
    (tmp_path / "later.txt").write_bytes(b"here\n")
    source.run()
    assert source.take() == ["here"]


def test_file_that_comes_back_is_not_read_twice_unless_its_offset_was_deleted(tmp_path: Path) -> None:
    file = tmp_path / "a.log"
    for setting, again in (("keep", []), ("delete", ["a"])):
        file.write_bytes(b"a\n")
        source = file_source(f"{tmp_path}/*.log", offsets_of_missing_files=setting)
        source.run()
        source.take()
        file.unlink()
        source.run()
        file.write_bytes(b"a\n")
        source.run()
        assert source.take() == again
