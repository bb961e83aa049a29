"""Random histories of a log: written, rotated in every way, copied by runs that die. Each line comes once.

`make soak` plays more of them. A disk uses inodes of deleted files again, as ext4 does; tmpfs does not.
"""

from __future__ import annotations

import gzip
import os
import random
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.errors import OffsetError
from tests.support.session.searching import IS_SOAK
from tests.unit.connectors.file_stream.source.source_runs import FileSource, KilledError, file_source

HISTORIES = 1500 if IS_SOAK else 12
DECISIONS = {
    "file.may_be_copy": ("file.replaced", "read"),
    "file.replaced": ("file.replaced", "read"),
    "file.rotated_or_foreign": ("file.rotated", r"app[.-]\d+\.log(\.gz)?"),
}
ACTIONS = (
    "append", "append", "rename", "date", "copy_and_truncate", "rename_and_compress", "compress", "compress_all", "run",
    "run", "die",
)  # fmt: skip


class Log:
    """app.log with its rotated files, on a clock of its own. `lines`: all that were written."""

    def __init__(self, folder: Path, chance: random.Random, *, adds_to_the_end: bool) -> None:
        self.file, self._chance = folder / "app.log", chance
        self._numbered, self._dated = ("app.log.{}", "app.log-{}") if adds_to_the_end else ("app.{}.log", "app-{}.log")
        self.lines: list[str] = []
        self._now_s = 1_700_000_000
        self._begin()

    def append(self) -> None:
        more = [f"line {len(self.lines) + number}" for number in range(self._chance.randint(1, 6))]
        self._write("".join(f"{line}\n" for line in more))
        self.lines += more

    def rename(self) -> None:
        self._count_on()
        self.file.rename(self._rotated(1))
        self._begin()

    def date(self) -> None:
        self.file.rename(self.file.with_name(self._dated.format(self._now_s)))
        self._begin()

    def copy_and_truncate(self) -> None:
        self._count_on()
        copy = self._rotated(1)
        shutil.copyfile(self.file, copy)
        self._touch(copy)
        os.truncate(self.file, 0)
        self._touch(self.file)

    def rename_and_compress(self) -> None:
        self.rename()
        self._pack(self._rotated(1))

    def delete(self) -> None:
        """All lines of the file were copied before."""
        rotated = sorted(file for file in self.file.parent.iterdir() if file != self.file)
        if rotated:
            self._chance.choice(rotated).unlink()

    def compress(self) -> None:
        if rotated := self._plain():
            self._pack(self._chance.choice(rotated))

    def compress_all(self) -> None:
        for file in self._plain():
            self._pack(file)

    def _plain(self) -> list[Path]:
        return sorted(file for file in self.file.parent.iterdir() if file != self.file and file.suffix != ".gz")

    def _pack(self, file: Path) -> None:
        packed = file.with_name(f"{file.name}.gz")
        packed.write_bytes(gzip.compress(file.read_bytes()))
        if self._chance.random() < 0.5:
            shutil.copystat(file, packed)
        else:
            self._touch(packed)
        file.unlink()

    def _begin(self) -> None:
        """A new file; many begin with the same line."""
        has_banner = self._chance.random() < 0.5
        self._write("banner\n" if has_banner else "")
        self.lines += ["banner"] if has_banner else []

    def _count_on(self) -> None:
        for number in range(40, 0, -1):
            for end in ("", ".gz"):
                if (older := self._rotated(number, end)).exists():
                    older.rename(self._rotated(number + 1, end))

    def _rotated(self, number: int, end: str = "") -> Path:
        return self.file.with_name(self._numbered.format(number) + end)

    def _write(self, text: str) -> None:
        with self.file.open("a") as out:
            out.write(text)
        self._touch(self.file)

    def _touch(self, file: Path) -> None:
        self._now_s += 1
        os.utime(file, (self._now_s, self._now_s))


LOGS = pytest.mark.parametrize(
    ("pattern", "adds_to_the_end"), [("app.log", True), ("app.log*", True), ("app.log", False), ("app*.log*", False)]
)
COLUMNAR = pytest.mark.parametrize("columnar", ["false", "true"])


@COLUMNAR
@LOGS
def test_each_line_of_a_log_that_is_rotated_in_every_way_comes_once(
    pattern: str, adds_to_the_end: bool, columnar: str, tmp_path: Path
) -> None:
    for history in range(HISTORIES):
        chance, folder = random.Random(f"{pattern} {columnar} {history}"), tmp_path / str(history)
        folder.mkdir()
        log = Log(folder, chance, adds_to_the_end=adds_to_the_end)
        source = file_source(folder / pattern, batch_size=str(chance.randint(1, 5)), columnar=columnar)
        actions = chance.choices(ACTIONS, k=chance.randint(5, 25))
        play(actions, log, source, chance)
        copied, written = Counter(source.take()), Counter(log.lines)
        assert (copied - written, written - copied) == (Counter(), Counter()), f"history {history}: {actions}"


@COLUMNAR
@LOGS
def test_line_that_is_left_out_because_a_deleted_file_had_it_alone_is_named(
    pattern: str, adds_to_the_end: bool, columnar: str, tmp_path: Path
) -> None:
    """A new file with the content of one that was deleted may be a copy of it."""
    for history in range(HISTORIES):
        chance, folder = random.Random(f"deleted {pattern} {columnar} {history}"), tmp_path / str(history)
        folder.mkdir()
        log = Log(folder, chance, adds_to_the_end=adds_to_the_end)
        source = file_source(folder / pattern, batch_size=str(chance.randint(1, 5)), columnar=columnar)
        actions = chance.choices((*ACTIONS, "run_and_delete", "run_and_delete"), k=chance.randint(5, 25))
        play(actions, log, source, chance)
        copied, written = Counter(source.take()), Counter(log.lines)
        named = sum(note.count("/app") for note in source.notes if "or a new file" in note)
        lost = written - copied
        assert lost.keys() <= {"banner"}, f"history {history}: {actions} {lost}"
        assert lost.total() <= named, f"history {history}: {actions}, {source.notes}"
        is_told = any("copied twice" in note for note in source.notes)
        assert is_told or not copied - written, f"history {history}: {actions} {copied - written}, {source.notes}"


def play(actions: list[str], log: Log, source: FileSource, chance: random.Random) -> None:
    for action in ["run", *actions, "run", "run"]:
        if action in ("run", "die", "run_and_delete"):
            run(source, chance, dies=action == "die")
            if action == "run_and_delete":
                log.delete()
        else:
            getattr(log, action)()


def run(source: FileSource, chance: random.Random, *, dies: bool) -> None:
    """A run; where it refuses to decide, the configuration does: here no file is a copy, or of another program."""
    how: dict[str, Any] = {"tasks": chance.randint(1, 3)}
    if dies:
        how |= {"kill_after": chance.randint(1, 3), "reconcile_at_end": chance.random() < 0.5}
    while True:
        try:
            source.run(**how)
        except KilledError:
            return
        except OffsetError as error:
            key, value = DECISIONS[error.code]
            if source.config.get(key) == value:
                raise
            source.config[key] = value
        else:
            return
