"""Archives of class data: which one a JVM gets, what it says about a bad one, and which are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from airflow_connect.runtime.engine.class_data import UNUSED_DAYS, ClassDataArchive
from airflow_connect.runtime.engine.java import find_java

FLAGS = ("-Xmx32m", "-XX:+UseSerialGC")
USES = "-XX:SharedArchiveFile="
WRITES = "-XX:ArchiveClassesAtExit="


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "class-data"


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "a.jar"
    path.write_bytes(b"PK")
    return path


def written(archive: ClassDataArchive) -> Path:
    """Do what a JVM does at its end; returns the archive."""
    archive.draft.write_bytes(b"class data")
    archive.keep()
    (use,) = [flag for flag in archive.flags() if flag.startswith(USES)]
    return Path(use.removeprefix(USES).rpartition(":")[2])


def test_archive_is_written_once_and_used_from_then_on(cache: Path, jar: Path):
    first = ClassDataArchive(find_java(), [jar], FLAGS)
    assert any(flag.startswith(WRITES) for flag in first.flags())
    path = written(first)
    assert path.parent == cache
    later = ClassDataArchive(find_java(), [jar], FLAGS).flags()
    assert not any(flag.startswith(WRITES) for flag in later)
    assert any(flag.endswith(str(path)) for flag in later)


def test_jar_that_was_replaced_needs_another_archive(cache: Path, jar: Path):
    written(ClassDataArchive(find_java(), [jar], FLAGS))
    os.utime(jar, (1, 1))
    assert any(flag.startswith(WRITES) for flag in ClassDataArchive(find_java(), [jar], FLAGS).flags())


def test_jvm_is_told_to_say_nothing_about_archives(cache: Path, jar: Path):
    """It would say so on standard output, which is for the records of a file sink and for reports."""
    archive = ClassDataArchive(find_java(), [jar], FLAGS)
    before = archive.flags()
    written(archive)
    assert "-Xlog:cds=off,cds+dynamic=off" in set(before) & set(archive.flags())


def test_archives_that_nobody_has_used_for_long_are_removed(cache: Path, jar: Path, tmp_path: Path):
    used = written(ClassDataArchive(find_java(), [jar], FLAGS))
    unused, draft = cache / "unused.jsa", cache / ".killed-1.jsa"
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    for path in (used, unused, draft):
        path.touch()
        os.utime(path, (long_ago, long_ago))
    ClassDataArchive(find_java(), [jar], FLAGS).flags()
    other = tmp_path / "b.jar"
    other.write_bytes(b"PK")
    new = written(ClassDataArchive(find_java(), [other], FLAGS))
    assert {path.name for path in cache.glob("*.jsa") if not path.name.startswith("base-")} == {used.name, new.name}
