"""FileStreamSink's keys, promises and lines."""

from __future__ import annotations

import datetime
import os
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import Field, Schema, Type
from airflow_connect.api.sink import Delivery
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.file_stream.sink import task
from airflow_connect.connectors.file_stream.sink.config import FileSinkConfig, is_line_output
from airflow_connect.connectors.file_stream.sink.connector import FileStreamSinkConnector
from airflow_connect.errors import ConfigError
from tests.support.copies.sink_tasks import open_runner_of
from tests.support.copies.started_sinks import sink_of

SMALLEST = {"name": "c", "topics": "t", "connector.class": "FileStreamSink"}
TP = TopicPartition("t", 0)


def context(directory: Path, **keys: str) -> RoleContext:
    config = {**SMALLEST, "file": str(directory / "out.txt"), **{k.replace("_", "."): v for k, v in keys.items()}}
    return RoleContext({name: value for name, value in config.items() if value}, run_id="run-1")


def record(value: Any, schema: Schema | None = None, offset: int = 0) -> SinkRecord:
    return SinkRecord(topic="t", partition=0, offset=offset, value_schema=schema, value=value)


def lines_of(directory: Path, *records: SinkRecord) -> bytes:
    sink = open_runner_of(task.FileStreamSinkTask(), context(directory), [OffsetRange("t", 0, 0, 100)])
    for one in records:
        sink.put(one)
    sink.report(TP, 100, end=None, reason="")
    files = sink.staged_files()
    sink.close()
    return b"".join((directory / str(file.token["path"])).read_bytes() for file in files)


@pytest.mark.parametrize(
    ("value", "schema", "line"),
    [
        (None, None, "null"),
        ("text é 😀", None, "text é 😀"),
        ("two\nlines", None, "two\nlines"),
        ({"ok": 1}, None, "{ok=1}"),
        ([1, None, "x"], None, "[1, null, x]"),
        (1.5, None, "1.5"),
        (True, None, "true"),
        (Decimal("10.50"), None, "10.50"),
        (b"\x00\xff", None, "AP8="),
        (datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=datetime.UTC), None, "Tue Nov 14 22:13:20 UTC 2023"),
        ({"id": 1, "name": None}, Schema(Type.STRUCT, fields=(Field("id", 0, Schema(Type.INT64)),)), "Struct{id=1}"),
        ("\ud800", None, "?"),
    ],
)
def test_a_line_is_the_text_that_java_prints(tmp_path: Path, value: Any, schema: Schema | None, line: str) -> None:
    assert lines_of(tmp_path, record(value, schema)) == f"{line}\n".encode()


def test_a_segment_says_which_records_it_holds(tmp_path: Path) -> None:
    sink = open_runner_of(
        task.FileStreamSinkTask(), context(tmp_path), [OffsetRange("t", 0, 5, 12), OffsetRange("t", 1, 0, 3)]
    )
    for offset in (6, 8):
        sink.put(record("x", offset=offset))
    sink.count_left_out(TP, 9, is_dead_letter=False)
    sink.count_left_out(TP, 9, is_dead_letter=True)
    report = sink.report(TP, 12, end=10, reason="run.max.records")
    empty = sink.report(TopicPartition("t", 1), 3, end=None, reason="")
    (file,) = sink.staged_files()
    sink.close()

    assert (file.start, file.end, file.records, file.size_bytes) == (6, 9, 2, 4)
    assert (report.read, report.written, report.filtered, report.dead_lettered) == (4, 2, 1, 1)
    assert (report.range.end, report.commit_offset, report.stopped_early) == (10, 10, "run.max.records")
    assert (empty.read, empty.commit_offset) == (0, 3)


def test_an_aborted_task_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(task, "MEMORY_BYTES", 10)
    sink = open_runner_of(task.FileStreamSinkTask(), context(tmp_path), [OffsetRange("t", 0, 0, 100)])
    for _ in range(501):  # More than the task is given at once.
        sink.put(record("more than ten bytes"))
    assert any(path.is_file() for path in tmp_path.rglob("*"))

    sink.abort()
    sink.abort()

    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_a_task_that_is_aborted_after_it_has_staged_leaves_nothing(tmp_path: Path) -> None:
    sink = open_runner_of(task.FileStreamSinkTask(), context(tmp_path), [OffsetRange("t", 0, 0, 100)])
    sink.put(record("x"))
    sink.report(TP, 100, end=None, reason="")
    (file,) = sink.staged_files()
    assert (tmp_path / str(file.token["path"])).is_file()

    sink.abort()

    assert not any(path.is_file() for path in tmp_path.rglob("*"))


def test_tasks_stage_where_the_driver_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    relative = RoleContext({**SMALLEST, "file": "out.txt"})
    sink_connector = sink_of(FileStreamSinkConnector, relative.config)
    configs = sink_connector.task_configs(3)

    assert sink_connector.store_name == f"file://{tmp_path}/out.txt"
    assert len(configs) == 3
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    sink = open_runner_of(
        task.FileStreamSinkTask(), RoleContext(relative.config, task_config=configs[0]), [OffsetRange("t", 0, 0, 1)]
    )
    sink.put(record("x"))
    sink.report(TP, 1, end=None, reason="")
    (file,) = sink.staged_files()
    sink.close()
    assert (tmp_path / str(file.token["path"])).is_file()


def test_leftovers_of_the_connector_match_and_those_of_others_do_not(tmp_path: Path) -> None:
    pattern = sink_of(FileStreamSinkConnector, context(tmp_path).config).leftovers([OffsetRange("t", 0, 5, 9)])
    other = sink_of(FileStreamSinkConnector, context(tmp_path, name="d").config)

    assert pattern.matches("out.txt/connector=c/t/0+5")
    assert not pattern.matches("out.txt/connector=c/t/0+9")
    assert not pattern.matches("out.txt/connector=d/t/0+5")
    assert other.leftovers([]).prefixes != pattern.prefixes
    assert all("out.txt/connector=c/t/0+5".startswith(p) for p in pattern.prefixes if "connector=" in p)


@pytest.mark.parametrize("name", ["a/b", "..", "x" * 300, "ü" * 100, "a b"])
def test_any_name_of_a_connector_can_stage(tmp_path: Path, name: str) -> None:
    config = FileSinkConfig.from_config({**SMALLEST, "name": name, "file": str(tmp_path / "f")})
    assert config.prefix.count("/") == 2
    sink = open_runner_of(task.FileStreamSinkTask(), context(tmp_path, name=name), [OffsetRange("t", 0, 0, 100)])
    sink.put(record("x"))
    sink.report(TP, 100, end=None, reason="")
    assert len(sink.staged_files()) == 1
    sink.close()


@pytest.mark.parametrize("file", ["/tmp/", "/tmp/..", "/", "a\0b"])
def test_what_cannot_be_a_file_is_refused(file: str) -> None:
    with pytest.raises(ConfigError, match="file"):
        FileSinkConfig.from_config({**SMALLEST, "file": file})


def test_standard_output_promises_at_least_once_and_a_file_exactly_once(tmp_path: Path) -> None:
    with_file = {**SMALLEST, "file": str(tmp_path / "f")}

    assert FileStreamSinkConnector.delivery_for(with_file) is Delivery.STAGED
    assert FileStreamSinkConnector.delivery_for(SMALLEST) is Delivery.AT_LEAST_ONCE
    with pytest.raises(ConfigError, match="cannot be taken back") as caught:
        sink_of(FileStreamSinkConnector, {**SMALLEST, "delivery.guarantee": "exactly_once"})
    assert caught.value.config_path == "delivery.guarantee"
    at_most_once = {**SMALLEST, "delivery.guarantee": "at_most_once"}
    assert "standard output" in sink_of(FileStreamSinkConnector, at_most_once).store_name


def test_lines_on_standard_output_are_known_by_the_configuration() -> None:
    assert is_line_output(SMALLEST)
    assert is_line_output({**SMALLEST, "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector"})
    assert is_line_output({**SMALLEST, "file": None})
    assert not is_line_output({**SMALLEST, "file": "${env:FILE}"})
    assert not is_line_output({**SMALLEST, "connector.class": "LocalSink"})
    assert not is_line_output({**SMALLEST, "connector.class": "NoSuchSink"})
    assert not is_line_output({})


def test_stdout_belongs_to_the_lines_alone(tmp_path: Path) -> None:
    from airflow_connect.cli.terminal import Terminal

    out, err = tmp_path / "out", tmp_path / "err"
    with out.open("w") as real_out, err.open("w") as real_err:
        terminal = Terminal(real_out, real_err, as_json=True)
        write = terminal.hand_over_stdout()
        terminal.print('{"command": "standalone"}')
        write(b"a line\n")

    assert out.read_bytes() == b"a line\n"
    assert err.read_text() == '{"command": "standalone"}\n'


def test_a_closed_pipe_is_seen_by_the_write_that_meets_it() -> None:
    from airflow_connect.cli.terminal import Terminal

    reading, writing = os.pipe()
    with os.fdopen(writing, "w") as real_out, open(os.devnull, "w") as real_err:
        write = Terminal(real_out, real_err).hand_over_stdout()
        os.close(reading)
        with pytest.raises(BrokenPipeError):
            write(b"a line\n")
