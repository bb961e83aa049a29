"""Offsets of a real Kafka Connect worker taken over, handed back, altered by people; offsets that cannot be."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.source import ExactlyOnceSupport
from airflow_connect.connectors.file_stream.source.connector import FileStreamSourceConnector
from airflow_connect.errors import ConfigError, OffsetError
from tests.unit.connectors.file_stream.source.source_runs import FileSource, file_source

RECORDED = Path(__file__).parents[4] / "data" / "file_source" / "connect-offsets.jsonl"


def recorded(name: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """What a worker of Kafka Connect 4.3.1 committed for a file, in order."""
    rows = [json.loads(line) for line in RECORDED.read_text().splitlines()]
    found = [(json.loads(row["key"])[1], json.loads(row["value"])) for row in rows]
    return [pair for pair in found if pair[0] == {"filename": name}]


UTF8 = "é1\n日本2\n😀3\nab\n".encode()


def with_worker_offset(folder: Path, name: str, content: bytes, position: int, **config: str) -> FileSource:
    (folder / name).write_bytes(content)
    source = file_source(folder / name, **config)
    source.committed.put({"filename": str(folder / name)}, {"position": position})
    return source


@pytest.mark.parametrize(
    ("name", "which", "content", "rest"),
    [
        ("u.txt", 0, UTF8 + b"new4\nlater5\n", ["new4", "later5"]),
        ("u.txt", 1, UTF8 + b"new4\nlater5\n", ["later5"]),
        ("n.txt", 0, b"one\ntwo more\nthree\n", ["two more", "three"]),
        ("c.txt", 0, b"a\r\nb\r\n\r\nc\rd\r\ne\rf\n", ["e", "f"]),
        ("crs.txt", 0, b"a\rb\rc\n", ["b", "c"]),
        ("iv.txt", 0, b"a\xff\xfeb\nafter\n", ["after"]),
    ],
)
def test_recorded_position_of_a_worker_is_where_a_run_goes_on(
    name: str, which: int, content: bytes, rest: list[str], tmp_path: Path
) -> None:
    position = recorded(name)[which][1]["position"]
    source = with_worker_offset(tmp_path, name, content, position, offset_takeover="characters")
    source.run()
    assert source.take() == rest
    source.run()
    assert source.take() == []


@pytest.mark.parametrize("restart", range(5))
def test_position_of_a_worker_loses_no_line_wherever_it_was_restarted(restart: int, tmp_path: Path) -> None:
    lines = ["é1\n", "日本2\n", "😀3\n", "ab\n", "new4\n", "last ü\n"]
    read_by_worker, content = lines[:5], "".join(lines).encode()
    before = len("".join(lines[:restart]).encode())  # where it began, in bytes; counted in characters from there
    position = before + len("".join(read_by_worker[restart:]).encode("utf-16-le")) // 2
    source = with_worker_offset(tmp_path, "u.txt", content, position)
    source.run()
    found = source.take()
    assert found[-1] == "last ü" and found == [line[:-1] for line in lines[-len(found) :]]
    assert len(found) <= 4
    is_exact = position == len("".join(read_by_worker).encode())
    assert not is_exact or found == ["last ü"]


def test_position_that_can_mean_several_lines_is_told(tmp_path: Path) -> None:
    source = with_worker_offset(tmp_path, "u.txt", UTF8 + b"new4\n", 14)
    source.run()
    assert source.take() == ["ab", "new4"]
    (note,) = dict.fromkeys(source.notes)
    assert "is ambiguous. It is read as byte 18, so no line is lost, but lines up to byte 21 may be repeated" in note


def test_position_after_a_restart_of_the_worker_is_taken_for_bytes_where_characters_cannot_be(tmp_path: Path) -> None:
    # The worker skipped 19 bytes of 26 and counted 14 more: its 33 are bytes, and more characters than there are.
    position = recorded("u.txt")[2][1]["position"]
    source = with_worker_offset(tmp_path, "u.txt", UTF8 + b"new4\nlater5\nmore\n", position)
    source.run()
    assert source.take() == ["more"]


def test_position_is_taken_for_bytes_when_told_so(tmp_path: Path) -> None:
    source = with_worker_offset(tmp_path, "u.txt", UTF8 + b"new4\n", 12, offset_takeover="bytes")
    source.run()
    assert source.take() == ["😀3", "ab", "new4"]


def test_position_of_a_truncated_file_is_refused_with_a_sentence(tmp_path: Path) -> None:
    source = with_worker_offset(tmp_path, "t.txt", b"abc\n", recorded("t.txt")[0][1]["position"])
    with pytest.raises(OffsetError, match=r"left position 18 for .*t.txt, but no line begins there") as error:
        source.run()
    assert error.value.code == "file.position"


def skipped_by_the_worker(content: bytes, offset: dict[str, Any]) -> list[str]:
    """What FileStreamSourceTask reads when it starts from an offset: it skips bytes, then decodes."""
    assert isinstance(offset["position"], int)
    return re.split("\r\n|\r|\n", content[offset["position"] :].decode())[:-1]


@pytest.mark.parametrize("content", [b"a\nb\n", UTF8, "ä\r\nö\r\n".encode()], ids=["ascii", "utf8", "crlf"])
def test_worker_goes_on_behind_our_last_line(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(content)
    source = file_source(tmp_path / "f")
    source.run()
    ((partition, offset),) = source.committed.committed()
    assert partition == {"filename": str(tmp_path / "f")} and next(iter(offset)) == "position"
    assert skipped_by_the_worker(content + "mehr ü\nend\n".encode(), offset) == ["mehr ü", "end"]


@pytest.mark.parametrize(
    ("partition", "offset", "message"),
    [
        ({"filename": "f"}, {"pos": 1}, "Offset objects should either be null or contain the key 'position'"),
        ({"filename": "f"}, {"position": -1}, "in the offset should be a non-negative value"),
        ({"filename": "f"}, {"position": "1"}, "is expected to be a Long value"),
        ({"filename": "f"}, {"position": True}, "is expected to be a Long value"),
        ({"file": "f"}, {"position": 1}, "Partition objects should contain the key 'filename'"),
    ],
)
def test_wrong_offsets_are_refused_in_the_words_of_kafka_connect(
    partition: dict[str, Any], offset: dict[str, Any], message: str
) -> None:
    key = tuple(sorted(partition.items()))
    with pytest.raises(ConfigError, match=re.escape(message)):
        FileStreamSourceConnector().alter_offsets({}, {key: offset})
    assert FileStreamSourceConnector().alter_offsets({}, {key: None}) is True


def test_altered_offset_is_where_the_next_run_begins(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\nc\n")
    source = file_source(tmp_path / "f")
    source.run()
    source.take()
    assert FileStreamSourceConnector().alter_offsets({}, {(("filename", str(tmp_path / "f")),): {"position": 2}})
    source.committed.put({"filename": str(tmp_path / "f")}, {"position": 2})
    source.run()
    assert source.take() == ["b", "c"]


def test_offset_that_is_no_offset_stops_the_run(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\n")
    source = file_source(tmp_path / "f")
    source.committed.put({"filename": str(tmp_path / "f")}, {"position": "x"})
    with pytest.raises(OffsetError, match="position must be a number of 0 or more"):
        source.run()


def test_change_of_a_file_fails_where_that_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"a\nb\n")
    source = file_source(tmp_path / "f", file_changed="fail")
    source.run()
    (tmp_path / "f").write_bytes(b"x\n")
    with pytest.raises(
        OffsetError, match="has 2 bytes, but 4 bytes of it were read: it was truncated or replaced"
    ) as error:
        source.run()
    assert error.value.code == "file.changed"


def test_exactly_once_is_for_files_and_not_for_the_standard_input() -> None:
    connector = FileStreamSourceConnector()
    assert connector.exactly_once_support({"topic": "t", "file": "f"}) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({"topic": "t", "files": "f*"}) is ExactlyOnceSupport.SUPPORTED
    assert connector.exactly_once_support({"topic": "t"}) is ExactlyOnceSupport.UNSUPPORTED
