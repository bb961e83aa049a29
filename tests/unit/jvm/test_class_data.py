"""Archives of class data: which one a JVM gets, what it says about a bad one, and which are removed."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from airflow_connect.jvm.class_data import UNUSED_DAYS, ClassDataArchive
from airflow_connect.jvm.java import find_java

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


def second(jar: Path) -> ClassDataArchive:
    """The archive of a server that was started before."""
    ClassDataArchive(find_java(), [jar], FLAGS).flags()
    return ClassDataArchive(find_java(), [jar], FLAGS)


def writes(archive: ClassDataArchive) -> bool:
    found = any(flag == f"{WRITES}{archive.draft}" for flag in archive.flags())
    assert archive.is_writing is found
    return found


def written(archive: ClassDataArchive) -> Path:
    """Do what a JVM does at its end; returns the archive."""
    archive.draft.write_bytes(b"class data")
    archive.keep()
    (use,) = [flag for flag in archive.flags() if flag.startswith(USES)]
    return Path(use.removeprefix(USES).rpartition(":")[2])


def test_archive_is_written_by_the_second_start_and_used_from_then_on(cache: Path, jar: Path):
    assert not writes(ClassDataArchive(find_java(), [jar], FLAGS))
    archive = ClassDataArchive(find_java(), [jar], FLAGS)
    assert writes(archive) and not archive.exists
    path = written(archive)
    assert path.parent == cache and archive.exists
    later = ClassDataArchive(find_java(), [jar], FLAGS)
    assert not writes(later)
    assert any(flag.endswith(str(path)) for flag in later.flags())


def test_of_servers_that_start_at_the_same_time_one_writes(cache: Path, jar: Path):
    archive = second(jar)
    other = ClassDataArchive(find_java(), [jar], FLAGS)
    assert (writes(archive), writes(other)) == (True, False)
    written(archive)
    assert not writes(other)
    assert any(flag.startswith(USES) for flag in other.flags())


def test_half_an_archive_of_a_server_that_was_killed_is_not_kept(cache: Path, jar: Path):
    archive = second(jar)
    archive.flags()
    archive.draft.write_bytes(b"half")
    archive.discard()
    assert not archive.exists and not archive.draft.exists()
    assert writes(ClassDataArchive(find_java(), [jar], FLAGS))


def test_jar_that_was_replaced_needs_another_archive(cache: Path, jar: Path):
    written(second(jar))
    os.utime(jar, (1, 1))
    assert writes(second(jar))


def test_system_properties_need_no_other_archive(cache: Path, jar: Path):
    written(second(jar))
    assert ClassDataArchive(find_java(), [jar], [*FLAGS, "-Dstore.password=x"]).exists
    assert not ClassDataArchive(find_java(), [jar], [*FLAGS, "-XX:-UseCompressedOops"]).exists


def test_jvm_is_told_to_say_nothing_about_archives(cache: Path, jar: Path):
    """It would say so on standard output, which is for the records of a file sink and for reports."""
    archive = second(jar)
    before = archive.flags()
    written(archive)
    assert "-Xlog:cds=off,cds+dynamic=off" in set(before) & set(archive.flags())


def test_archives_that_nobody_has_used_for_long_are_removed(cache: Path, jar: Path, tmp_path: Path):
    used = written(ClassDataArchive(find_java(), [jar], FLAGS))
    unused, draft, mark = cache / "unused.jsa", cache / ".killed-1.jsa", cache / "unused.started"
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    for path in (used, unused, draft, mark):
        path.touch()
        os.utime(path, (long_ago, long_ago))
    ClassDataArchive(find_java(), [jar], FLAGS).flags()
    other = tmp_path / "b.jar"
    other.write_bytes(b"PK")
    new = written(ClassDataArchive(find_java(), [other], FLAGS))
    assert not mark.exists()
    assert {path.name for path in cache.glob("*.jsa") if not path.name.startswith("base-")} == {used.name, new.name}
