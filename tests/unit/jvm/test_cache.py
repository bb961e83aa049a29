"""The cache folder: where it lies, and that processes sharing it do not disturb each other."""

from __future__ import annotations

import os
import stat
import threading

from airflow_connect.jvm.cache import cache_dir, locked, replace_text
from tests.support.waiting import wait_until


def test_cache_dir_prefers_own_variable_then_xdg_then_home(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.delenv("AIRFLOW_CONNECT_CACHE", raising=False)
    assert cache_dir() == tmp_path / "home" / ".cache" / "airflow-connect"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert cache_dir() == tmp_path / "xdg" / "airflow-connect"
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path / "own"))
    assert cache_dir() == tmp_path / "own"
    assert (tmp_path / "own").is_dir()


def test_locked_lets_one_in_at_a_time(tmp_path, monkeypatch):
    monkeypatch.setenv("AIRFLOW_CONNECT_CACHE", str(tmp_path))
    steps = []

    def second():
        steps.append("asks")
        with locked("name"):
            steps.append("second")

    with locked("name"):
        thread = threading.Thread(target=second)
        thread.start()
        wait_until(lambda: bool(steps), "the second one asks")
        with locked("another name"):
            steps.append("first")
    thread.join()
    assert steps == ["asks", "first", "second"]


def test_replace_text_writes_mode_and_leaves_an_equal_file_alone(tmp_path):
    path = tmp_path / "folder" / "file"
    replace_text(path, "one", mode=0o755)
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("one", 0o755)
    inode = path.stat().st_ino
    replace_text(path, "one")
    assert path.stat().st_ino == inode
    replace_text(path, "two")
    assert path.read_text() == "two"
    assert os.listdir(path.parent) == ["file"]
