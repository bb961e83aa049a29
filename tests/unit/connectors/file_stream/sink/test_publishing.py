"""Appending to a file is idempotent: whatever it dies from and whenever, publishing again ends with the same bytes."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.api.staging import Outcome, StagedFile
from airflow_connect.connectors.file_stream.sink import append_journal, output, publishing
from airflow_connect.connectors.file_stream.sink.append_journal import (
    AppendJournal,
    OpenPublish,
    journal_path,
    read_journal,
    write_journal,
)
from airflow_connect.connectors.file_stream.sink.config import FileSinkConfig
from airflow_connect.connectors.file_stream.sink.publishing import FilePublisher, OutputPublisher
from airflow_connect.errors import AccessError, ConnectError, PublishConflictError, StateError, UnavailableError
from airflow_connect.stores.local.staging import LocalStager
from airflow_connect.stores.store import FileIdentity

LINES = {("t", 1): b"b1\nb2\n", ("t", 0): b"a1\na2\na3\n", ("s", 0): b"s1\n"}
IN_ORDER = b"s1\na1\na2\na3\nb1\nb2\n"


class Died(BaseException):
    """Stands for a process that ends in the middle."""


class Place:
    """A file to append to and the runs that stage for it."""

    def __init__(self, directory: Path) -> None:
        self.file = directory / "out.txt"
        self.journal = Path(journal_path(str(self.file)))
        self.config = FileSinkConfig.from_config(
            {"name": "c", "topics": "t", "connector.class": "FileStreamSink", "file": str(self.file)}
        )

    def stage(self, run_id: str = "run-1", lines: dict[tuple[str, int], bytes] = LINES) -> list[StagedFile]:
        stager = LocalStager(self.config.root, run_id)
        futures = []
        for (topic, partition), data in lines.items():
            key = f"{self.config.prefix}{topic}/{partition}+0"
            segment = stager.open(FileIdentity(key, topic, partition, 0))
            segment.write(data)
            futures.append(segment.close(3, 3))
        stager.close()
        return [future.result() for future in futures]

    def publish(self, files: list[StagedFile]) -> set[Outcome]:
        return set(FilePublisher(self.config).publish(files, lambda _: None).values())

    @property
    def staged(self) -> list[Path]:
        return [path for path in (self.file.parent / "+tmp").rglob("*") if path.is_file()]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def test_segments_are_appended_in_the_order_of_topics_and_partitions(place: Place) -> None:
    place.file.write_bytes(b"before\n")

    assert place.publish(place.stage()) == {Outcome.PUBLISHED}

    assert place.file.read_bytes() == b"before\n" + IN_ORDER
    assert place.staged == []
    assert read_journal(str(place.journal)) == AppendJournal(("run-1",))


def test_publishing_again_appends_nothing_also_after_the_file_was_changed(place: Place) -> None:
    files = place.stage()
    place.publish(files)
    place.file.write_bytes(b"rotated\n")

    assert place.publish(files) == {Outcome.ALREADY_PUBLISHED}
    assert place.file.read_bytes() == b"rotated\n"


def test_later_runs_are_appended_behind(place: Place) -> None:
    for number in range(3):
        place.publish(place.stage(f"run-{number}"))

    assert place.file.read_bytes() == IN_ORDER * 3


def dying(monkeypatch: pytest.MonkeyPatch, at: int) -> list[str]:
    """Let the process die before the `at`th change of anything on the disk; returns the changes so far."""
    changes: list[str] = []

    def dies(name: str) -> Callable[..., object]:
        original = getattr(os, name)

        def call(*arguments: object, **options: object) -> object:
            if len(changes) == at:
                raise Died
            changes.append(name)
            if name == "write":  # One byte at a time: it may die inside of a line.
                return original(arguments[0], bytes(arguments[1])[:1])  # type: ignore[call-overload]
            return original(*arguments, **options)

        return call

    for name in ("write", "replace", "fsync", "unlink", "ftruncate"):
        monkeypatch.setattr(publishing.os, name, dies(name))
    return changes


@pytest.mark.parametrize("before", [b"", b"before\n"])
def test_a_publish_that_dies_anywhere_is_continued(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, before: bytes
) -> None:
    died = 0
    while True:
        directory = tmp_path / str(died)
        directory.mkdir()
        place = Place(directory)
        place.file.write_bytes(before)
        files = place.stage()
        with monkeypatch.context() as patch:
            dying(patch, died)
            try:
                place.publish(files)
            except Died:
                died += 1
            else:
                break
        assert (before + IN_ORDER).startswith(place.file.read_bytes())
        outcomes = place.publish(files)
        assert outcomes <= {Outcome.PUBLISHED, Outcome.ALREADY_PUBLISHED}
        assert place.file.read_bytes() == before + IN_ORDER
        assert place.staged == []
    assert died > len(IN_ORDER)  # It has died before each byte, and around them.


def test_a_killed_process_is_continued(place: Place) -> None:
    files = place.stage()
    program = (
        "import json, os, signal, sys\n"
        "from airflow_connect.documents.run import StagedFile\n"
        "from airflow_connect.connectors.file_stream.sink.config import FileSinkConfig\n"
        "from airflow_connect.connectors.file_stream.sink.publishing import FilePublisher\n"
        "config = FileSinkConfig(*json.loads(sys.argv[1]))\n"
        "files = [StagedFile.from_json(f) for f in json.loads(sys.argv[2])]\n"
        "FilePublisher(config).publish(files, lambda n: os.kill(os.getpid(), signal.SIGKILL) if n == 2 else None)\n"
    )

    config = json.dumps([place.config.target, place.config.root, place.config.prefix])
    given = json.dumps([file.to_json() for file in files])
    done = subprocess.run([sys.executable, "-c", program, config, given], timeout=120, check=False)
    assert done.returncode == -9
    assert place.file.read_bytes() == b"s1\na1\na2\na3\n"

    assert place.publish(files) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == IN_ORDER


def die_after(place: Place, files: list[StagedFile], written: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Publish until `written` bytes are appended."""
    with monkeypatch.context() as patch:
        original = os.write

        def write(descriptor: int, data: bytes) -> int:
            size = place.file.stat().st_size
            if size >= written:
                raise Died
            return original(descriptor, bytes(data)[: written - size])

        patch.setattr(publishing.os, "write", write)
        with pytest.raises(Died):
            place.publish(files)


def test_zeros_that_a_loss_of_power_left_are_replaced(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    files = place.stage()
    die_after(place, files, 4, monkeypatch)
    with place.file.open("ab") as file:
        file.write(b"\0" * 7)

    assert place.publish(files) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == IN_ORDER


def append(data: bytes) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        with path.open("ab") as file:
            file.write(data)

    return change


@pytest.mark.parametrize(
    "change",
    [
        append(b"x"),
        append(b"stranger\n" * 10),
        lambda path: path.write_bytes(b"befo"),
        lambda path: path.write_bytes(b"before\nXX\n"),
        Path.unlink,
    ],
    ids=["appended", "appended much", "truncated", "overwritten", "removed"],
)
def test_a_file_that_somebody_changed_in_the_middle_of_a_publish_is_a_conflict(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    place.file.write_bytes(b"before\n")
    files = place.stage()
    die_after(place, files, 11, monkeypatch)
    change(place.file)
    found = place.file.read_bytes() if place.file.exists() else b""

    for _ in range(2):
        with pytest.raises(PublishConflictError, match="Another program changed it") as caught:
            place.publish(files)
        assert place.file.read_bytes() == found

    assert "first 7 bytes" in caught.value.suggestion
    place.file.write_bytes(b"before\n")  # The first way out of the suggestion.
    assert place.publish(files) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == b"before\n" + IN_ORDER


def test_the_other_way_out_of_a_conflict_appends_behind_the_stranger(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = place.stage()
    die_after(place, files, 3, monkeypatch)
    place.file.write_bytes(b"stranger\n")
    place.journal.unlink()

    assert place.publish(files) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == b"stranger\n" + IN_ORDER


def test_somebody_who_appends_at_the_same_time_is_a_conflict_and_loses_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = place.stage()
    original = os.write

    def write(descriptor: int, data: bytes) -> int:
        written = original(descriptor, bytes(data)[:2])
        if place.file.stat().st_size == 5:
            append(b"stranger\n")(place.file)
        return written

    with monkeypatch.context() as patch:
        patch.setattr(publishing.os, "write", write)
        with pytest.raises(PublishConflictError):
            place.publish(files)

    assert b"stranger\n" in place.file.read_bytes()


def test_what_another_run_left_half_appended_is_taken_away_first(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    place.file.write_bytes(b"before\n")
    dead = place.stage("dead")
    die_after(place, dead, 12, monkeypatch)

    assert place.publish(place.stage("next")) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == b"before\n" + IN_ORDER

    assert place.publish(dead) == {Outcome.PUBLISHED}  # Its manifest is rolled forward later.
    assert place.file.read_bytes() == b"before\n" + IN_ORDER * 2


@pytest.mark.parametrize("appended", [0, 5])
def test_a_lost_segment_has_all_of_them_copied_again(
    place: Place, monkeypatch: pytest.MonkeyPatch, appended: int
) -> None:
    files = place.stage()
    die_after(place, files, appended, monkeypatch)
    os.unlink(place.staged[0])
    publisher = FilePublisher(place.config)

    assert set(publisher.publish(files, lambda _: None).values()) == {Outcome.LOST}
    assert place.staged == []

    again = place.stage("run-1", {**LINES, ("t", 0): b"other text\n"})
    assert set(publisher.publish(again, lambda _: None).values()) == {Outcome.PUBLISHED}
    assert place.file.read_bytes() == b"s1\nother text\nb1\nb2\n"


def test_a_segment_that_somebody_cut_is_lost(place: Place) -> None:
    files = place.stage()
    os.truncate(place.staged[0], 1)

    assert place.publish(files) == {Outcome.LOST}
    assert not place.file.exists() or place.file.read_bytes() == b""


def test_segments_that_are_lost_twice_were_staged_elsewhere(place: Place) -> None:
    publisher = FilePublisher(place.config)
    files = place.stage()
    FilePublisher(place.config).abort(files)
    publisher.publish(files, lambda _: None)

    with pytest.raises(AccessError, match="cannot find it"):
        publisher.publish(files, lambda _: None)


def test_a_publisher_that_was_thought_dead_comes_late_and_changes_nothing(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(append_journal, "REMEMBERED_RUNS", 3)
    files = place.stage("old")
    place.publish(files)
    for number in range(4):
        place.publish(place.stage(f"run-{number}", {("t", 0): b"x\n"}))
    before = place.file.read_bytes()

    assert place.publish(files) == {Outcome.LOST}  # The journal has forgotten it; its segments are gone.
    assert place.file.read_bytes() == before


def test_a_lock_that_somebody_keeps_is_said(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "LOCK_WAIT_S", 0.2)
    files = place.stage()
    with place.file.open("ab") as holder:
        fcntl.flock(holder, fcntl.LOCK_EX)
        with pytest.raises(UnavailableError, match="Another process"):
            place.publish(files)

    assert place.publish(files) == {Outcome.PUBLISHED}


def test_nothing_to_publish_touches_nothing(place: Place) -> None:
    assert place.publish([]) == set()
    assert list(place.file.parent.iterdir()) == []


def test_leftovers_are_found_beside_the_file_that_the_keys_name(place: Place) -> None:
    place.publish(place.stage())
    left = place.stage("dead")

    found = list(FilePublisher(place.config).list_staged([place.config.prefix]))

    assert sorted(one.key for one in found) == sorted(file.key for file in left)
    assert FilePublisher(place.config).abort(found) == 3


# --- the journal ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["", "{}", '{"v": 2, "done": [], "open": null}', '{"v": 1, "done": 3, "open": {}}'])
def test_a_damaged_journal_stops_the_run(place: Place, text: str) -> None:
    place.journal.write_text(text)
    files = place.stage()

    with pytest.raises(StateError, match="cannot be read"):
        FilePublisher(place.config).preflight()
    with pytest.raises(StateError):
        place.publish(files)


def test_a_journal_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / ".j")
    journal = AppendJournal(("a", "b"), OpenPublish("c", 7, 9, ("x", "ü")))

    write_journal(path, journal)

    assert read_journal(path) == journal
    assert os.listdir(tmp_path) == [".j"]


# --- preflight ------------------------------------------------------------------------------------------------------


def test_preflight_leaves_nothing(place: Place) -> None:
    FilePublisher(place.config).preflight()

    assert list(place.file.parent.iterdir()) == []


def test_preflight_names_a_missing_directory(tmp_path: Path) -> None:
    place = Place(tmp_path / "missing")

    with pytest.raises(AccessError, match="does not exist") as caught:
        FilePublisher(place.config).preflight()

    assert (caught.value.code, caught.value.config_path) == ("file.no_directory", "file")


@pytest.mark.parametrize("kind", ["directory", "pipe"])
def test_preflight_refuses_what_is_no_regular_file(place: Place, kind: str) -> None:
    if kind == "directory":
        place.file.mkdir()
    else:
        os.mkfifo(place.file)

    with pytest.raises(AccessError, match="not a regular file"):
        FilePublisher(place.config).preflight()


# --- standard output ------------------------------------------------------------------------------------------------


@pytest.fixture
def to_output(tmp_path: Path) -> Place:
    place = Place(tmp_path)
    place.config = FileSinkConfig("", str(tmp_path / "staging"), "stdout/connector=c/")
    return place


def test_lines_go_to_the_output_in_order_and_are_gone_then(to_output: Place) -> None:
    received: list[bytes] = []
    output.send_to(received.append)
    try:
        publisher = OutputPublisher(to_output.config)
        publisher.preflight()
        files = to_output.stage()
        outcomes = publisher.publish(files, lambda _: None)
        assert OutputPublisher(to_output.config).publish(files, lambda _: None) == dict.fromkeys(outcomes, Outcome.LOST)
    finally:
        output.send_to(None)

    assert set(outcomes.values()) == {Outcome.PUBLISHED}
    assert b"".join(received) == IN_ORDER
    assert os.stat(to_output.config.root).st_mode & 0o077 == 0


def test_every_write_ends_with_a_whole_line(to_output: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "PIECE_BYTES", 5)
    received: list[bytes] = []
    output.send_to(received.append)
    try:
        publisher = OutputPublisher(to_output.config)
        publisher.preflight()
        publisher.publish(to_output.stage(lines={("t", 0): b"a\nlonger line\nb\nc\n"}), lambda _: None)
    finally:
        output.send_to(None)

    assert b"".join(received) == b"a\nlonger line\nb\nc\n"
    assert all(data.endswith(b"\n") for data in received)


def test_an_output_that_was_closed_fails_the_run(to_output: Place) -> None:
    def closed(_: bytes) -> None:
        raise BrokenPipeError

    output.send_to(closed)
    try:
        publisher = OutputPublisher(to_output.config)
        publisher.preflight()
        with pytest.raises(ConnectError, match="was closed before all lines were written"):
            publisher.publish(to_output.stage(), lambda _: None)
    finally:
        output.send_to(None)


def test_a_staging_directory_of_somebody_else_is_not_used(to_output: Place, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    os.symlink(tmp_path / "elsewhere", to_output.config.root)

    with pytest.raises(AccessError, match="belongs to another user"):
        OutputPublisher(to_output.config).preflight()
