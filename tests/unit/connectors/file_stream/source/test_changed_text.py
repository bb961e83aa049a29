"""Records whose text is not what the file holds: each is counted, on both paths."""

from __future__ import annotations

from pathlib import Path

import pytest

from airflow_connect.errors import DataError
from tests.unit.connectors.file_stream.source.source_runs import file_source

PATHS = pytest.mark.parametrize("columnar", ["false", "true"])


def written(folder: Path, content: bytes) -> Path:
    file = folder / "a.log"
    file.write_bytes(content)
    return file


@PATHS
@pytest.mark.parametrize("batch", ["1", "100"])
def test_replaced_bytes_are_counted_by_file(tmp_path: Path, columnar: str, batch: str) -> None:
    file = written(tmp_path, b"good\na\xff\nreal \xef\xbf\xbd\n\xc3\nb\xed\xa0\x80\n\xff")
    source = file_source(file, columnar=columnar, batch_size=batch, last_line="read")

    source.run()

    assert source.take() == ["good", "a\ufffd", "real \ufffd", "\ufffd", "b\ufffd\ufffd\ufffd", "\ufffd"]
    told = f"Records of {file} with bytes that are not valid utf-8, replaced by U+FFFD (invalid.text=replace):"
    assert {note.rpartition(" ")[0] for note in source.notes} == {told}
    assert sum(int(note.rpartition(" ")[2].rstrip(".")) for note in source.notes) == 4


@PATHS
def test_utf_16_that_is_read_as_utf_8_is_told(tmp_path: Path, columnar: str) -> None:
    source = file_source(written(tmp_path, "one\ntwo\n".encode("utf-16")), columnar=columnar)

    source.run()

    assert "not valid utf-8" in " ".join(source.notes)


@PATHS
@pytest.mark.parametrize("size", [30, 3 << 20], ids=["in a block", "of several blocks"])
def test_cut_lines_are_counted_and_invalid_bytes_of_their_beginning_are_replaced(
    tmp_path: Path, columnar: str, size: int
) -> None:
    file = written(tmp_path, b"a\xff" + b"x" * size + b"\nz\n")
    source = file_source(file, columnar=columnar, line_max_bytes="5", line_too_long="truncate")

    source.run()

    assert source.take() == ["a\ufffdxxx", "z"]
    assert sorted(source.notes) == [
        f"Records of {file} that were cut after 5 bytes of a line (line.too.long=truncate): 1.",
        f"Records of {file} with bytes that are not valid utf-8, replaced by U+FFFD (invalid.text=replace): 1.",
    ]


@PATHS
@pytest.mark.parametrize("size", [30, 3 << 20], ids=["in a block", "of several blocks"])
def test_invalid_beginning_of_a_line_that_is_cut_fails_the_run_if_it_must(
    tmp_path: Path, columnar: str, size: int
) -> None:
    file = written(tmp_path, b"a\xff" + b"x" * size + b"\nz\n")
    source = file_source(file, columnar=columnar, line_max_bytes="5", line_too_long="truncate", invalid_text="fail")

    with pytest.raises(DataError, match="not valid utf-8"):
        source.run()


@PATHS
def test_events_with_a_changed_line_are_counted_once(tmp_path: Path, columnar: str) -> None:
    file = written(tmp_path, b"one\n a\xff\n b\xff\ntwo\n")
    source = file_source(file, columnar=columnar, multiline_pattern="^\\s", last_line="read")

    source.run()

    assert source.take() == ["one\n a\ufffd\n b\ufffd", "two"]
    assert [note.rpartition(" ")[2] for note in source.notes] == ["1."]


@PATHS
def test_ascii_replaces_in_every_line_what_is_not_ascii(tmp_path: Path, columnar: str) -> None:
    source = file_source(
        written(tmp_path, b"\xc3\xa9\n\xc3\xa9"), columnar=columnar, file_encoding="US-ASCII", last_line="read"
    )

    source.run()

    assert source.take() == ["\ufffd\ufffd", "\ufffd\ufffd"]
