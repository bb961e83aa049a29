"""The program as a process: how much it loads, what it does to its streams, and how signals end it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.runtime.driver.process_tree import TOKEN_ENV
from tests.support.processes.drivers import PROJECT, fake_driver_env, is_alive
from tests.support.waiting import wait_until

CLI = [sys.executable, "-m", "airflow_connect.cli"]
PATIENCE_S = 20.0
CHILDREN_OF_HANG = 4
HEAVY = ("pyspark", "boto3", "botocore", "rich", "pyarrow", "airflow", "confluent_kafka", "babel", "pandas")


def start(*argv: str | Path, real: bool = False) -> subprocess.Popen[str]:
    env = {"PYTHONPATH": str(PROJECT)} if real else fake_driver_env()
    words = [*CLI, *map(str, argv)]
    pipe = subprocess.PIPE
    return subprocess.Popen(words, env={**os.environ, **env}, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize(("number", "exit_code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signal_ends_the_program_its_children_and_every_commit(
    worker: Path,
    connector: Callable[..., Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: signal.Signals,
    exit_code: int,
) -> None:
    paths = {name: str(tmp_path / name) for name in ("pids", "stopped", "committed")}
    monkeypatch.setenv(TOKEN_ENV, "of-a-run-that-started-this-program")
    neighbour = subprocess.Popen(["sleep", "600"])
    program = start("standalone", worker, connector("orders", fake="hang", **paths))

    def pids() -> list[int]:
        file = tmp_path / "pids"
        return [int(pid) for pid in file.read_text().split()] if file.exists() else []

    wait_until(lambda: len(pids()) == CHILDREN_OF_HANG, "the run has its children", PATIENCE_S)
    program.send_signal(number)
    _, err = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == exit_code
    assert (tmp_path / "stopped").exists()
    assert not (tmp_path / "committed").exists()
    assert [pid for pid in pids() if is_alive(pid)] == []
    assert err.endswith("Interrupted. What was committed stays; the next run resumes after it.\n")
    assert neighbour.poll() is None
    neighbour.kill()
    neighbour.wait()


# The signal arrives in the thread that works, while the main thread waits for it.
INTERRUPTED_ELSEWHERE = """
import signal, sys, threading
from airflow_connect.cli.interruptible import run_interruptible
from airflow_connect.cli.terminal import Terminal

def work(stopping):
    signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
    stopping.wait()

run_interruptible(work, Terminal(sys.stdout, sys.stderr))
"""


def test_signal_that_another_thread_gets_ends_the_program() -> None:
    words = [sys.executable, "-c", INTERRUPTED_ELSEWHERE]
    ended = subprocess.run(words, cwd=PROJECT, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert ended.returncode == 143, ended.stderr


def test_follow_runs_again_until_it_is_interrupted(worker: Path, connector: Callable[..., Path]) -> None:
    program = start("standalone", "--json", "--follow", "0.01", worker, connector("orders", fake="empty"))
    assert program.stdout is not None
    rounds = [json.loads(program.stdout.readline()) for _ in range(3)]
    program.send_signal(signal.SIGINT)
    program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 130
    runs = {answer["result"]["connectors"][0]["report"]["run_id"] for answer in rounds}
    assert len(runs) == 3


def test_noise_never_reaches_stdout_or_stderr(worker: Path, connector: Callable[..., Path]) -> None:
    program = start("standalone", "--json", worker, connector("orders", fake="echo"))
    out, err = program.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["ok"] is True
    assert "noise" not in err


def test_noise_is_on_stderr_when_asked_for(worker: Path, connector: Callable[..., Path]) -> None:
    program = start("standalone", "--json", "-v", worker, connector("orders", fake="echo"))
    out, err = program.communicate(timeout=PATIENCE_S)
    assert json.loads(out)["ok"] is True
    for line in ("noise of Python on stdout", "noise of C on stdout", "noise of a child on stdout"):
        assert line in err


def test_command_line_itself_loads_nothing_heavy() -> None:
    code = f"""
import sys
from airflow_connect.cli.main import build_parser
build_parser()
print([name for name in {HEAVY} if name in sys.modules])
"""
    env = {**os.environ, "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_wrong_arguments_end_with_two_and_the_usage() -> None:
    program = start("standalone", real=True)
    out, err = program.communicate(timeout=PATIENCE_S)
    assert (program.returncode, out) == (2, "")
    assert err.startswith("usage: airflow-connect standalone")


@pytest.mark.parametrize("command", ["standalone", "plan", "validate", "demo"])
def test_help_of_every_command_tells_the_exit_codes(command: str) -> None:
    program = start(command, "--help", real=True)
    out, _ = program.communicate(timeout=PATIENCE_S)
    assert program.returncode == 0
    assert "2 the configuration is wrong" in " ".join(out.split())
    assert "--json" in out
