"""Whose processes a run ends: its own, those of runs inside it, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from airflow_connect.runtime.driver.process_tree import TOKEN_ENV, end_processes, new_token, own_token, processes_of

Start = Callable[[], "subprocess.Popen[bytes]"]


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Start]:
    """Start a process that waits, with this process's environment; each is ended after the test."""
    monkeypatch.delenv(TOKEN_ENV, raising=False)
    with ExitStack() as stack:

        def begin() -> subprocess.Popen[bytes]:
            program = "import sys; print(flush=True); sys.stdin.read()"
            process = subprocess.Popen([sys.executable, "-S", "-c", program], stdin=-1, stdout=-1)
            stack.enter_context(process)
            stack.callback(process.kill)
            assert process.stdout is not None and process.stdout.readline()
            return process

        yield begin


def test_a_run_inside_another_ends_its_own_processes_only(start: Start) -> None:
    stranger = start()
    with own_token() as outer:
        beside = start()
        with own_token() as inner:
            child = start()
        assert sorted(processes_of(outer)) == sorted([beside.pid, child.pid])

        end_processes(inner, grace_s=0)
        child.wait()
        assert processes_of(outer) == [beside.pid]

        end_processes(outer, grace_s=0)
        beside.wait()
    assert stranger.poll() is None


def test_a_token_is_below_the_one_that_is_there_and_leaves_no_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TOKEN_ENV, raising=False)
    assert "/" not in new_token()
    with own_token() as outer:
        with own_token() as inner:
            assert (os.environ[TOKEN_ENV], inner.startswith(f"{outer}/")) == (inner, True)
        assert os.environ[TOKEN_ENV] == outer
        assert new_token().startswith(f"{outer}/")
    assert TOKEN_ENV not in os.environ


def test_a_token_that_only_begins_alike_is_another(start: Start) -> None:
    with own_token() as token:
        os.environ[TOKEN_ENV] = f"{token}0"
        start()
        assert processes_of(token) == []
