"""Which files, which tasks, compressed files, events of several lines, files that change under a run."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import os
import resource
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from airflow_connect.connectors.file_stream.source.work import ASSIGNMENT, assigned
from airflow_connect.errors import AccessError, ConfigError, ConnectError, DataError
from tests.unit.connectors.file_stream.source.source_runs import file_source


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("a.log", "a"),
        ("*.log", "ab"),
        ("?.log", "ab"),
        ("[!a].log", "b"),
        ("**/*.log", "abcd"),
        ("x/*.log", "c"),
        ("*/*.log", "c"),
        ("x/**/*.log", "cd"),
        ("x/", "cd"),
        ("*", "abt"),
        ("nothing*", ""),
        ("no/such/folder/", ""),
    ],
)
def test_patterns_name_files(pattern: str, found: str, tmp_path: Path) -> None:
    write(tmp_path, a_log="a\n", b_log="b\n", x__c_log="c\n", x__y__d_log="d\n", t_txt="t\n")
    source = file_source(topic="t", files=f"{tmp_path}/{pattern}")
    source.run(tasks=2)
    assert sorted(source.take()) == sorted(found)


def test_directory_without_those_below_and_without_excluded_files(tmp_path: Path) -> None:
    write(tmp_path, a_log="a\n", b_tmp="b\n", x__c_log="c\n")
    source = file_source(files=f"{tmp_path}/", files_recursive="false", files_exclude=r"\.tmp$")
    source.run()
    assert source.take() == ["a"]


def test_new_files_come_with_later_runs_and_tasks_change_between_them(tmp_path: Path) -> None:
    source = file_source(f"{tmp_path}/*.log")
    seen = []
    for run, tasks in enumerate((1, 4, 2, 3)):
        for number in range(run + 1):
            with (tmp_path / f"{number}.log").open("a") as out:
                out.write(f"{number} in run {run}\n")
        assert source.run(tasks) == min(tasks, run + 1)
        seen += source.take()
    assert sorted(seen) == sorted(f"{number} in run {run}" for run in range(4) for number in range(run + 1))


def test_files_are_shared_by_size(tmp_path: Path) -> None:
    for name, size in (("a", 100), ("b", 60), ("c", 50), ("d", 10)):
        (tmp_path / name).write_text("x" * (size - 1) + "\n")
    source = file_source(f"{tmp_path}/*")
    loads = [sum(item.cost for item in assigned(config[ASSIGNMENT])) for config in source.task_configs(2)]
    assert sorted(loads) == [110, 110]
    assert len(source.task_configs(10)) == 4


def test_run_ends_at_the_size_that_the_file_had_when_it_was_planned(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n2\n")
    source = file_source(file)
    (config,) = source.task_configs()
    file.write_bytes(b"1\n2\n3\n")
    task = source.open_task(config)
    assert [record.value for record in task.poll() or ()] == ["1", "2"]
    assert task.has_ended() and task.poll() is None
    task.stop()


def test_file_that_is_deleted_while_it_is_read_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n2\n3\n")
    source = file_source(file, batch_size="1")
    (config,) = source.task_configs()
    task = source.open_task(config)
    assert [record.value for record in task.poll() or ()] == ["1"]
    file.unlink()
    assert [[record.value for record in task.poll() or ()] for _ in range(2)] == [["2"], ["3"]]
    assert task.has_ended()
    task.stop()


@pytest.mark.parametrize("replaced", [True, False])
def test_file_that_is_gone_when_the_task_comes_is_left_for_the_next_run(replaced: bool, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_bytes(b"1\n")
    source = file_source(file)
    (config,) = source.task_configs()
    file.rename(tmp_path / "other")
    if replaced:
        file.write_bytes(b"new\n")
    task = source.open_task(config)
    assert task.poll() is None and task.has_ended()
    assert "It is left for the next run" in source.notes[0]
    task.stop()


@pytest.mark.parametrize("key", ["file", "files"])
def test_directory_or_pipe_is_an_error_with_its_name_and_what_to_do(key: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigError, match="pipe cannot be read: it is a pipe, a socket or a device, not a file"):
        file_source(**{key: str(tmp_path / "pipe")}).run()
    with pytest.raises(ConfigError, match=r"it is a directory, not a file\. Set files=/.*/ to read the files in it"):
        file_source(**{key: str(tmp_path)}).run()


def test_forbidden_file_is_an_error_with_its_name(tmp_path: Path) -> None:
    (tmp_path / "f").write_bytes(b"1\n")
    (tmp_path / "f").chmod(0)
    if os.geteuid():
        with pytest.raises(AccessError, match="cannot be read: Permission denied"):
            file_source(tmp_path / "f").run()


TEXT = "".join(f"line {number}\n" for number in range(5000))


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, "zstd", asbytes=True))


@pytest.mark.parametrize("end", ["", "without end of line"])
@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".zst", zstd)], ids=["gzip", "zstd"])
def test_compressed_file_is_read_whole_and_once(suffix: str, packed, end: str, tmp_path: Path) -> None:
    file = tmp_path / f"a.log{suffix}"
    data = (TEXT + end).encode()
    file.write_bytes(packed(data[:1000]) + packed(data[1000:]))
    source = file_source(file, batch_size="700", columnar="true")
    source.run()
    assert source.take() == (TEXT + end).splitlines()
    ((_, offset),) = source.committed.committed()
    assert (offset["position"], offset["whole"]) == (len(data), file.stat().st_size)
    assert source.task_configs() == []  # not even looked into again
    file.write_bytes(file.read_bytes() + packed(b"\nmore\n" if end else b"more\n"))
    source.run()
    assert source.take() == (["", "more"] if end else ["more"])


@pytest.mark.parametrize(("suffix", "packed"), [(".gz", gzip.compress), (".zst", zstd)], ids=["gzip", "zstd"])
def test_compressed_file_that_is_cut_off_gives_its_lines_and_a_sentence(suffix: str, packed, tmp_path: Path) -> None:
    import random

    chance = random.Random(1)
    text = "".join(f"{chance.random()}\n" for _ in range(30_000))
    file = tmp_path / f"a.log{suffix}"
    data = packed(text.encode())
    file.write_bytes(data[: len(data) // 2])
    source = file_source(file)
    with pytest.raises(DataError, match=r"ends in the middle of its (gzip|zstd) stream") as error:
        source.run()
    assert error.value.code == "file.truncated"
    known = source.take()
    assert 1000 < len(known) < 30_000 and known == text.splitlines()[: len(known)]
    file.write_bytes(data)
    source.run()
    assert known + source.take() == text.splitlines()


def test_damaged_file_fails_or_its_rest_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"no gzip at all\n")
    with pytest.raises(DataError, match="is not a gzip file, or it is damaged after 0 bytes") as error:
        file_source(tmp_path / "a.gz").run()
    assert error.value.code == "file.damaged"
    (tmp_path / "b.log").write_bytes(b"fine\n")
    source = file_source(f"{tmp_path}/*", errors_tolerance="all")
    source.run()
    assert source.take() == ["fine"] and "The rest of the file is skipped" in source.notes[0]


TRACE = "INFO start\nERROR boom\n  at a\n  at b\nINFO go on\nERROR last\n  at c\n"
EVENTS = ["INFO start", "ERROR boom\n  at a\n  at b", "INFO go on", "ERROR last\n  at c"]


@pytest.mark.parametrize(
    "config",
    [
        {"multiline_pattern": r"^\s"},
        {"multiline_pattern": r"^[A-Z]", "multiline_negate": "true"},
    ],
)
@pytest.mark.parametrize("batch", ["1", "2000"])
def test_lines_of_a_stack_trace_are_one_event(config: dict[str, str], batch: str, tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text(TRACE)
    source = file_source(file, batch_size=batch, **config)
    source.run()
    assert source.take() == EVENTS[:-1]  # the last one may go on
    with file.open("a") as out:
        out.write("  at d\nINFO end\n")
    source.run()
    assert source.take() == ["ERROR last\n  at c\n  at d"]
    source = file_source(file, batch_size=batch, last_line="read", **config)
    source.run()
    assert source.take() == [*EVENTS[:-1], "ERROR last\n  at c\n  at d", "INFO end"]


def test_lines_that_belong_to_the_next_one_and_bounds_of_an_event(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("a \\\nb \\\nc\nd\n")
    source = file_source(tmp_path / "f", multiline_pattern=r"\\$", multiline_what="next")
    source.run()
    assert source.take() == ["a \\\nb \\\nc", "d"]
    (tmp_path / "g").write_text("x\n" + " y\n" * 5 + "z\n")
    source = file_source(tmp_path / "g", multiline_pattern="^ ", multiline_max_lines="3", last_line="read")
    source.run()
    assert source.take() == ["x\n y\n y", " y\n y\n y", "z"]
    source = file_source(tmp_path / "g", multiline_pattern="^ ", multiline_max_bytes="6", last_line="read")
    source.run()
    assert source.take() == ["x\n y", " y\n y", " y\n y", "z"]


def test_standard_input_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"one\ntwo")))
    source = file_source()
    (config,) = source.task_configs(3)
    task = source.open_task(config)
    records = [record for _ in range(2) for record in task.poll() or ()]
    assert [(r.value, r.source_partition, r.source_offset["position"]) for r in records] == [
        ("one", {"filename": None}, 4),
        ("two", {"filename": None}, 7),
    ]
    assert task.has_ended()
    task.stop()


def test_standard_input_that_the_disk_cannot_hold_is_told_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a line\n" * 100_000)))
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, before[1]))  # The kernel refuses to write more.
    try:
        with pytest.raises(ConnectError, match=r"could not be stored in .*: File too large\.") as failed:
            file_source().task_configs(1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert failed.value.code == "file.stdin"
    assert list(tmp_path.iterdir()) == []


def test_standard_input_is_still_there_after_a_plan(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(b"one\n"))
    monkeypatch.setattr(sys, "stdin", stream)
    source = file_source()
    assert [assigned(config[ASSIGNMENT]) for config in source.task_configs(only_plans=True)] == [[]]
    assert source.notes == ["Standard input is read to its end when the run starts."]
    assert stream.read() == "one\n"


def test_files_regex_chooses_among_what_files_names(tmp_path: Path) -> None:
    for name in ("a-1.log", "a-22.log", "b-1.log", "a-1.log.tmp"):
        (tmp_path / name).write_text(f"{name}\n")
    source = file_source(f"{tmp_path}/*", files_regex=r".*/a-\d+\.log")
    source.run()
    assert sorted(source.take()) == ["a-1.log", "a-22.log"]
    with pytest.raises(ConfigError, match="It is not a valid regular expression"):
        file_source(f"{tmp_path}/*", files_regex="(").task_configs()


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_default_batch_in_columns_is_what_was_read_and_a_smaller_one_is_kept(columnar: str, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("".join(f"{n}\n" for n in range(5000)))
    for size, wanted in (("2000", [5000] if columnar == "true" else [2000, 2000, 1000]), ("1999", [1999, 1999, 1002])):
        source = file_source(tmp_path / "f", batch_size=size)
        task = source.open_task(source.task_configs()[0])
        found = []
        while not task.has_ended():
            columns = task.poll_columns() if columnar == "true" else None
            found.append(len(columns.values) if columns is not None else len(task.poll() or ()))
        task.stop()
        assert found == wanted


def test_line_that_is_not_vectorizable_leaves_those_around_it_in_columns(tmp_path: Path) -> None:
    lines = [str(n).encode() for n in range(9000)]
    lines[4321] = b"\xff"
    (tmp_path / "f").write_bytes(b"\n".join([*lines, b""]))
    source = file_source(
        tmp_path / "f", batch_size="2500", invalid_text="dead_letter", dead_letter_topic="d", columnar="true"
    )
    source.run()
    assert [r.value for r in source.records if r.topic == "lines"] == [str(n) for n in range(9000) if n != 4321]
    assert [r.value for r in source.records if r.topic == "d"] == ["\ufffd"]


def test_no_standard_input_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(ConfigError, match="there is no standard input to read"):
        file_source().task_configs()


@pytest.mark.parametrize("text", ["", "new\n", "a new line\n" * 9])
@pytest.mark.parametrize("columnar", ["true", "false"])
def test_file_that_is_copied_and_truncated_between_plan_and_read_is_left_for_the_next_run(
    columnar: str, text: str, tmp_path: Path
) -> None:
    log = tmp_path / "app.log"
    log.write_text("1\n2\n")
    source = file_source(tmp_path / "app.log*", columnar=columnar)
    source.run()
    with log.open("a") as out:
        out.write("3\n4\n")
    (config,) = source.task_configs()
    (tmp_path / "app.log.1").write_bytes(log.read_bytes())
    log.write_text(text)
    task = source.open_task(config)
    assert not task.poll() and task.has_ended()
    task.stop()
    assert "was truncated or written again since this run was planned" in source.notes[-1]
    assert source.take() == ["1", "2"]
    source.run()
    assert source.take() == ["3", "4", *text.splitlines()]


@pytest.mark.parametrize("rest", [gzip.compress(b"2\n3\n")[:12], b"no gzip"], ids=["cut-off", "damaged"])
def test_short_compressed_file_gives_the_lines_before_its_damage(rest: bytes, tmp_path: Path) -> None:
    file = tmp_path / "a.gz"
    file.write_bytes(gzip.compress(b"1\n") + rest)
    source = file_source(file)
    for lines in (["1"], []):
        with pytest.raises(DataError):
            source.run()
        assert source.take() == lines
    file.write_bytes(gzip.compress(b"1\n") + gzip.compress(b"2\n3\n"))
    source.run()
    assert source.take() == ["2", "3"]


@pytest.mark.parametrize(("name", "pack"), [("a.bz2", bz2.compress), ("a.xz", lzma.compress), ("a.Z", gzip.compress)])
def test_compressed_bytes_that_would_be_read_as_text_are_refused(name: str, pack, tmp_path: Path) -> None:
    data = pack(b"1\n" * 99 + b"2\n")
    (tmp_path / name).write_bytes(data)
    with pytest.raises(DataError, match=rf"{name} is compressed \(\w+\), but would be read as text") as error:
        file_source(tmp_path / "*").run()
    assert error.value.code == "file.compressed"
    source = file_source(tmp_path / "*", compression="none", last_line="read")
    source.run()
    assert source.take()


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16", "utf-16-le", "utf-32-be"])
def test_line_feed_that_comes_after_its_carriage_return_was_read_is_no_line(encoding: str, tmp_path: Path) -> None:
    file, text = tmp_path / "f", "1\r\n2\r\n".encode(encoding)
    source = file_source(file, file_encoding=encoding, last_line="read")
    file.write_bytes(text[: len("1\r".encode(encoding))])
    source.run()
    assert source.take() == ["1"]
    file.write_bytes(text)
    source.run()
    assert source.take() == ["2"]
