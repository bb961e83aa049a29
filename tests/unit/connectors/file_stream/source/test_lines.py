"""Lines against Python's own splitting, for any bytes, block sizes and places to go on."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_connect.connectors.file_stream.source.read.content import open_content
from airflow_connect.connectors.file_stream.source.read.line_reader import LineReader, LineRules
from airflow_connect.connectors.file_stream.source.read.lines import LineFormat, find_line_ends, line_texts
from airflow_connect.errors import ConfigError, DataError
from airflow_connect.stores.local.file_system import LocalFileSystem
from tests.support.session.searching import examples
from tests.unit.connectors.file_stream.source.source_runs import file_source

PIECES = st.sampled_from([b"\n", b"\r", b"\r\n", b"a", b"bc", "é".encode(), "😀".encode(), b"\xff", b"\xe2\x82", b" "])
BYTES = st.lists(PIECES, max_size=40).map(b"".join)


def expected(data: bytes, *, any_terminator: bool = True, encoding: str = "utf-8") -> list[str]:
    found = re.split(rb"\r\n|\r|\n" if any_terminator else rb"\n", data)
    return [line.decode(encoding, "replace") for line in (found if found[-1] else found[:-1])]


def read(data: bytes, *, block: int = 7, form: LineFormat | None = None, rules: LineRules | None = None) -> list[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "f")
        path.write_bytes(data)
        file_system = LocalFileSystem()
        file = file_system.find(str(path))
        assert file is not None
        with open_content(file_system, file, "none") as content:
            rules = (rules or LineRules())._replace(block_bytes=block)
            reader = LineReader(content, "f", 0, form or LineFormat.of("utf-8"), rules)
            found: list[str] = []
            while (got := reader.next_block(takes_last=True)) is not None:
                found += [str(text) for text in got.texts.to_pylist()]
                assert got.flagged == {} and len(got.texts) == len(got.nexts)
    return found


@given(BYTES, st.integers(1, 50), st.booleans())
def test_lines_are_those_of_a_plain_split(data: bytes, block: int, any_terminator: bool) -> None:
    form = LineFormat.of("utf-8", any_terminator=any_terminator)
    assert read(data, block=block, form=form) == expected(data, any_terminator=any_terminator)


@pytest.mark.parametrize(
    "encoding", ["utf-16-le", "utf-16-be", "utf-32-le", "latin-1", "cp1252", "shift_jis", "gb18030"]
)
@settings(max_examples=examples(25))
@given(st.lists(st.sampled_from(["a", "é" * 3, "\n", "\r", "\r\n", "x y", "Ċ", "ऊ"]), max_size=30).map("".join))
def test_other_encodings_split_where_the_text_does(encoding: str, text: str) -> None:
    data = text.encode(encoding, "ignore")
    lines = re.split("\r\n|\r|\n", data.decode(encoding))
    assert read(data, form=LineFormat.of(encoding)) == (lines if lines[-1] else lines[:-1])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig"])
def test_byte_order_mark_is_no_text(encoding: str, tmp_path: Path) -> None:
    file = tmp_path / "f.txt"
    file.write_bytes("één\ntwee\n".encode(encoding))
    source = file_source(file, file_encoding=encoding)
    source.run()
    assert source.take() == ["één", "twee"]
    with file.open("ab") as out:
        out.write("drie\n".encode({"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(encoding, "utf-8")))
    source.run()
    assert source.take() == ["drie"]


@given(BYTES)
def test_every_position_behind_a_line_is_one_to_go_on_from(data: bytes) -> None:
    form = LineFormat.of("utf-8")
    found = find_line_ends(data, form, is_last=False)
    texts = line_texts(data[: found.consumed], found, form).to_pylist()
    for index, position in enumerate(found.nexts.tolist()):
        rest = find_line_ends(data[position:], form, is_last=False)
        assert line_texts(data[position:][: rest.consumed], rest, form).to_pylist() == texts[index + 1 :]


@settings(max_examples=examples(30))
@given(BYTES, st.integers(1, 4), st.integers(1, 6))
def test_run_that_dies_after_any_batch_loses_and_repeats_nothing(data: bytes, batch: int, dies_after: int) -> None:
    from tests.unit.connectors.file_stream.source.source_runs import KilledError

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f.txt")
        file.write_bytes(data + b"\n")
        source = file_source(file, batch_size=str(batch), columnar="true")
        while True:
            try:
                source.run(kill_after=dies_after)
                break
            except KilledError:
                continue
        assert source.values == expected(data + b"\n")


@settings(max_examples=examples(40))
@given(
    st.lists(st.sampled_from([b"line", b"\n", b"\r\n", b"\r", "é".encode()]), max_size=60).map(b"".join),
    st.integers(1, 40),
    st.integers(1, 4),
    st.one_of(st.none(), st.integers(1, 3)),
)
def test_split_file_has_the_same_lines_and_ends_as_one_offset(
    data: bytes, split: int, tasks: int, dies_after: int | None
) -> None:
    from tests.unit.connectors.file_stream.source.source_runs import KilledError

    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f.txt")
        file.write_bytes(data + b"\n")
        source = file_source(file, split_bytes=str(split), batch_size="2")
        while True:
            try:
                source.run(tasks, kill_after=dies_after, reconcile_at_end=dies_after is None)
                break
            except KilledError:
                tasks = tasks % 4 + 1
        source.run(tasks)
        assert sorted(source.values) == sorted(expected(data + b"\n"))
        ((partition, offset),) = source.committed.committed()
        assert (partition, offset["position"]) == ({"filename": str(file)}, len(data) + 1)


@pytest.mark.parametrize("block", [3, 1000])
@pytest.mark.parametrize("tail", [b"\nz\n", b"\r\nz\n", b"\rz\n"])
def test_long_lines_are_cut_or_fail_and_those_behind_them_are_read(block: int, tail: bytes) -> None:
    data = b"ab\n" + b"x" * 50 + tail
    cut = LineRules(max_bytes=10, too_long="truncate")
    assert read(data, block=block, rules=cut) == ["ab", "x" * 10, "z"]
    with pytest.raises(DataError, match=r"f at byte 3: The line has 50 bytes, but line.max.bytes is 10"):
        read(data, block=1000, rules=LineRules(max_bytes=10))
    with pytest.raises(DataError, match=r"f at byte 3: The line has \d+ bytes, but line.max.bytes is 10"):
        read(data, block=block, rules=LineRules(max_bytes=10))


def test_long_line_without_end_is_cut_where_a_character_ends() -> None:
    assert read("é".encode() * 40, rules=LineRules(max_bytes=5, too_long="truncate")) == ["éé"]


def test_invalid_text_fails_with_file_position_and_what_to_do() -> None:
    with pytest.raises(
        DataError, match=r"f at byte 3: A line is not valid utf-8: invalid start byte at byte 1 of the line."
    ) as e:
        read(b"ok\na\xff\n", rules=LineRules(invalid_text="fail"))
    assert e.value.code == "file.invalid_text" and "dead_letter" in e.value.suggestion


@pytest.mark.parametrize(
    ("encoding", "why"),
    [
        ("cp037", "does not write a line feed"),
        ("cp500", "does not write a line feed"),
        ("base64", "does not write a line feed"),
        ("utf-7", "is a notation for text"),
        ("unicode_escape", "is a notation for text"),
        ("punycode", "is a notation for text"),
        ("undefined", "is a notation for text"),
    ],
)
def test_encoding_in_which_lines_cannot_be_found_is_refused(encoding: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as refused:
        LineFormat.of(encoding)
    assert refused.value.config_path == "file.encoding"


def test_unknown_encoding_is_refused_by_name() -> None:
    with pytest.raises(ConfigError, match=r"file\.encoding is 'klingon'"):
        LineFormat.of("klingon")
