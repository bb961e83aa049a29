"""The Ivy of the pyspark wheel fetches from a real Maven layout; a folder stands for the repository."""

from __future__ import annotations

import hashlib

import pytest

from airflow_connect.errors import JarsError
from airflow_connect.jvm.jars.locked_jars import fetch_jars

pytestmark = pytest.mark.integration


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A Maven repository of three artifacts, and a lock that names them."""
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("AIRFLOW_CONNECT_MAVEN_ROOT", (tmp_path / "m2").as_uri())
    lines = []
    for name, file_name, suffix in (
        ("one", "one-1.0.jar", ""),
        ("two", "two-1.0.jar", ""),
        ("app", "app-1.0-all.tar.gz", ":all:tar.gz"),
    ):
        folder = tmp_path / "m2" / "org" / "example" / name / "1.0"
        folder.mkdir(parents=True)
        (folder / file_name).write_bytes(name.encode())
        lines.append(f"org.example:{name}:1.0{suffix} {hashlib.sha256(name.encode()).hexdigest()}\n")
    (tmp_path / "test.lock").write_text("".join(lines))
    return tmp_path


def test_fetch_of_jars_and_archives_gives_every_file(repository):
    found = {path.name: path.read_bytes() for path in fetch_jars("test", repository)}
    assert found == {
        "org.example+app+1.0+all.tar.gz": b"app",
        "org.example+one+1.0.jar": b"one",
        "org.example+two+1.0.jar": b"two",
    }


def test_fetch_of_a_changed_file_is_refused(repository):
    (repository / "m2" / "org" / "example" / "one" / "1.0" / "one-1.0.jar").write_bytes(b"changed")
    with pytest.raises(JarsError) as failed:
        fetch_jars("test", repository)
    assert failed.value.code == "jars.checksum"


def test_fetch_of_an_artifact_that_is_not_there_names_it(repository):
    (repository / "m2" / "org" / "example" / "two" / "1.0" / "two-1.0.jar").unlink()
    with pytest.raises(JarsError, match=r"two#?;?.*1\.0|two-1\.0") as failed:
        fetch_jars("test", repository)
    assert failed.value.code == "jars.fetch"


def test_fetch_from_a_host_that_does_not_answer_names_the_network(repository, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONNECT_MAVEN_ROOT", "http://127.0.0.1:9/")
    with pytest.raises(JarsError, match="cannot be reached") as failed:
        fetch_jars("test", repository)
    assert failed.value.code == "jars.fetch"
