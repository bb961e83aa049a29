"""Jars by lock file: what reaches the cache is complete and has the right checksum, or nothing does."""

from __future__ import annotations

import hashlib
import threading

import pytest

from airflow_connect.devstack.launching.java_server import LOCKS as STACK_LOCKS
from airflow_connect.errors import JarsError
from airflow_connect.jvm.jars import ivy, locked_jars
from tests.devstack.jars import LOCKS


@pytest.fixture
def locks(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "locks"
    folder.mkdir()
    sha256 = hashlib.sha256(b"content").hexdigest()
    (folder / "two.lock").write_text(f"org.b:b:1.0 {sha256}\n\norg.a:a:2.0:all:tar.gz {sha256}\n")
    return folder


@pytest.fixture
def repository(monkeypatch):
    """A download that writes `content` for every artifact; counts its calls."""
    calls = []

    def download(artifacts, into, scratch, on_poll):
        calls.append([artifact.file_name for artifact in artifacts])
        on_poll()
        for artifact in artifacts:
            (into / artifact.file_name).write_bytes(download.content)

    download.content = b"content"
    download.calls = calls
    monkeypatch.setattr(ivy, "download", download)
    return download


def test_artifact_names_file_and_dependency():
    plain = ivy.Artifact.parse("org.x:name:1.2 ab")
    classified = ivy.Artifact.parse("org.x:name:1.2:all:tar.gz ab")
    assert plain.file_name == "org.x+name+1.2.jar"
    assert classified.file_name == "org.x+name+1.2+all.tar.gz"
    assert "<artifact" not in plain.dependency()
    assert 'ext="tar.gz" m:classifier="all"' in classified.dependency()


SHIPPED = [lock for folder in (locked_jars.LOCKS, STACK_LOCKS, LOCKS) for lock in folder.glob("*.lock")]


@pytest.mark.parametrize("lock", SHIPPED, ids=lambda lock: lock.stem)
def test_shipped_locks_have_a_checksum_on_every_line_and_no_duplicates(lock):
    artifacts = locked_jars.read_lock(lock)
    assert artifacts
    assert all(len(artifact.sha256) == 64 and int(artifact.sha256, 16) >= 0 for artifact in artifacts)
    assert len({artifact.file_name for artifact in artifacts}) == len(artifacts)


def test_fetch_jars_returns_sorted_files_and_downloads_once(locks, repository):
    first = locked_jars.fetch_jars("two", locks)
    assert [path.name for path in first] == ["org.a+a+2.0+all.tar.gz", "org.b+b+1.0.jar"]
    assert all(path.read_bytes() == b"content" for path in first)
    assert locked_jars.fetch_jars("two", locks) == first
    assert len(repository.calls) == 1


def test_fetch_jars_with_a_changed_lock_uses_another_folder(locks, repository):
    first = locked_jars.fetch_jars("two", locks)
    (locks / "two.lock").write_text((locks / "two.lock").read_text().replace("org.b:b:1.0", "org.b:b:1.1"))
    second = locked_jars.fetch_jars("two", locks)
    assert second[1].name == "org.b+b+1.1.jar"
    assert first[1].exists()


def test_fetch_jars_with_wrong_checksum_keeps_nothing(locks, repository, tmp_path):
    repository.content = b"other content"
    with pytest.raises(JarsError, match=r"two: org\.[ab]\+.* has sha256 .* not .*; nothing was kept") as failed:
        locked_jars.fetch_jars("two", locks)
    assert failed.value.code == "jars.checksum"
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_fetch_jars_with_missing_file_keeps_nothing(locks, monkeypatch, tmp_path):
    monkeypatch.setattr(ivy, "download", lambda artifacts, into, scratch, on_poll: None)
    with pytest.raises(JarsError, match=r"does not have org\.b\+b\+1\.0\.jar"):
        locked_jars.fetch_jars("two", locks)
    assert list((tmp_path / "cache" / "jars").iterdir()) == []


def test_fetch_jars_by_several_at_once_downloads_once(locks, repository):
    found = []
    threads = [threading.Thread(target=lambda: found.append(locked_jars.fetch_jars("two", locks))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(repository.calls) == 1


def test_fetch_jars_says_once_what_it_fetches(locks, repository, capsys):
    locked_jars.fetch_jars("two", locks)
    locked_jars.fetch_jars("two", locks)
    assert capsys.readouterr().err.count("Fetching two from Maven Central") == 1


@pytest.mark.parametrize(
    ("log", "cause", "advice"),
    [
        ("PKIX path building failed", "does not trust", "trustStore"),
        ("Host repo.example not found. url=x", "cannot be reached", "proxyHost"),
        ("java.net.ConnectException: Connection refused", "cannot be reached", "AIRFLOW_CONNECT_MAVEN_ROOT"),
        ("something else", "Ivy failed", "last lines"),
    ],
)
def test_failed_download_names_the_cause_and_the_way_out(log, cause, advice):
    error = ivy.download_error(log)
    assert cause in error.message and log in error.message
    assert advice in error.suggestion
