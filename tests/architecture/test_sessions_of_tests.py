"""A session of tests: its processes share servers, which end with it; the longest tests start first."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from tests.support.processes.drivers import is_alive
from tests.support.session import durations
from tests.support.session.durations import Durations, SharedTime
from tests.support.waiting import wait_until

PROJECT = Path(__file__).parents[2]
SHARING = """
import os, signal
from pathlib import Path
from tests.support.waiting import wait_until

FOLDER = Path(os.environ["FOLDER"])

def meet(name, s3):
    # Both processes are in a test at once, so that each asks for the server.
    (FOLDER / name).write_text(f"{s3.pid} {os.getpid()} {s3.data_dir}")
    wait_until(lambda: len(list(FOLDER.glob("one-*"))) == 2, "both processes are in a test", 60)
    s3.client().list_buckets()

def test_one(s3):
    meet("one-a", s3)

def test_two(s3):
    meet("one-b", s3)
"""
DYING = """
import os, signal

def test_dies():
    os.kill(os.getpid(), signal.SIGKILL)
"""
WAITING = """
def test_waits(s3):
    (FOLDER / "one-a").write_text(f"{s3.pid} {os.getpid()} {s3.data_dir}")
    signal.pause()
"""
ENDING = """
import os, signal
import pytest
from tests.support.processes.drivers import is_alive
from tests.support.waiting import wait_until

def test_ends_the_server(s3):
    with pytest.raises(AssertionError, match="shared by all tests"):
        s3.stop()
    os.kill(s3.pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(s3.pid), "its end")
    raise AssertionError("on purpose")
"""
# As `python -m pytest`, which inherits that SIGINT is ignored from a shell that runs these tests in the background.
PYTEST = "import signal, sys, pytest; signal.signal(signal.SIGINT, signal.default_int_handler); sys.exit(pytest.main())"


Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Start a session of its own with the fixtures of this one: `start(source, *options)`."""
    started: list[subprocess.Popen[str]] = []

    def begin(source: str, *options: str) -> subprocess.Popen[str]:
        started.append(_session(tmp_path, source, *options))
        return started[-1]

    yield begin
    for session in started:
        session.kill()
        session.communicate()


def _session(folder: Path, source: str, *options: str) -> subprocess.Popen[str]:
    (folder / "test_inner.py").write_text(source)
    command = [sys.executable, "-c", PYTEST, "-p", "tests.conftest", "-p", "no:cacheprovider", "-c", os.devnull]
    return subprocess.Popen(
        [*command, "--rootdir", str(folder), *options, str(folder / "test_inner.py")],
        cwd=PROJECT,
        env={**os.environ, "FOLDER": str(folder)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )


def _seen(folder: Path) -> list[tuple[int, int, Path]]:
    """Server, process of the test, and the server's data, as each test saw them."""
    found = [file.read_text().split() for file in sorted(folder.glob("one-*"))]
    return [(int(server), int(process), Path(data)) for server, process, data in found]


def _assert_gone(folder: Path) -> None:
    (server, _, data), *_ = _seen(folder)
    wait_until(lambda: not is_alive(server), "the end of the server")
    wait_until(lambda: not data.exists(), "the end of its data")


def test_processes_share_a_server_that_ends_with_the_session(start: Start, tmp_path: Path) -> None:
    session = start(SHARING, "-n", "2")
    out, _ = session.communicate(timeout=200)
    assert session.returncode == 0, out
    (server, first, _), (other, second, _) = _seen(tmp_path)
    assert (server == other, first == second) == (True, False)
    _assert_gone(tmp_path)


def test_server_outlives_a_process_of_tests_that_dies(start: Start, tmp_path: Path) -> None:
    session = start(SHARING + DYING, "-n", "2", "--dist", "load")
    out, _ = session.communicate(timeout=200)
    assert session.returncode == 1, out
    assert "1 failed, 2 passed" in out
    _assert_gone(tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_session_that_is_ended_leaves_no_server(start: Start, tmp_path: Path, number: signal.Signals) -> None:
    session = start(SHARING.partition("def meet")[0] + WAITING, "-n", "1")
    wait_until(lambda: len(_seen_if_whole(tmp_path)) == 1, "a server", 120)
    os.killpg(session.pid, number)
    session.communicate(timeout=200)
    _assert_gone(tmp_path)


def _seen_if_whole(folder: Path) -> list[Path]:
    return [file for file in folder.glob("one-*") if len(file.read_text().split()) == 3]


@pytest.mark.parametrize("processes", ["0", "1"])
def test_failure_names_a_server_that_has_ended_by_itself(start: Start, tmp_path: Path, processes: str) -> None:
    session = start(ENDING, "-n", processes)
    out, _ = session.communicate(timeout=200)
    assert "s3proxy 4.1.0 has ended by itself" in out
    assert "on purpose" in out


ORDERED = """
import pytest

@pytest.fixture(scope="module")
def shared():
    yield

def test_short():
    pass

def test_shared(shared):
    pass

def test_shared_too(shared):
    pass

@pytest.mark.budget(100)
def test_long():
    pass
"""


def test_longest_test_starts_first_and_tests_that_share_a_fixture_stay_together(start: Start, tmp_path: Path) -> None:
    session = start(ORDERED, "-n", "1", "-v")
    out, _ = session.communicate(timeout=200)
    assert session.returncode == 0, out
    order = [line.rpartition("::")[2].strip() for line in out.splitlines() if "PASSED" in line]
    assert order[0] == "test_long"
    assert abs(order.index("test_shared") - order.index("test_shared_too")) == 1


def _report(nodeid: str, phase: str, seconds: float, **more: float) -> pytest.TestReport:
    report = pytest.TestReport(nodeid, ("", 0, ""), {}, "passed", None, phase, duration=seconds)  # type: ignore[arg-type]
    vars(report).update(more)
    return report


def test_budget_counts_a_tests_own_time_on_a_machine_as_busy_as_this(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Durations()
    monkeypatch.setattr(durations, "slowness", lambda: 1.0)
    for phase, seconds, shared_s in (("setup", 30.0, 29.0), ("call", 8.0, 0.0), ("teardown", 2.0, 0.0)):
        kept.pytest_runtest_logreport(_report("a", phase, seconds, shared_s=shared_s))
    kept.pytest_runtest_logreport(_report("b", "call", 50.0, budget_s=20.0))
    kept.pytest_runtest_logreport(_report("c", "call", 50.0, budget_s=60.0))
    assert kept.own_s == {"a": 11.0, "b": 50.0, "c": 50.0}
    assert kept.over_budget() == ["50.0 s of 20 s: b", "11.0 s of 10 s: a"]
    assert kept.over_budget(2.0) == ["50.0 s of 20 s: b"]
    monkeypatch.setattr(durations, "slowness", lambda: 3.0)
    kept.pytest_runtest_logreport(_report("b", "teardown", 0.0, budget_s=20.0))
    assert kept.over_budget() == ["11.0 s of 10 s: a"]


def test_cpu_time_far_over_the_budget_fails_the_session(tmp_path: Path) -> None:
    kept = Durations(kept=tmp_path / "durations.json")
    kept.pytest_runtest_logreport(_report("a", "setup", 1.0, cpu_s=12.0))
    kept.pytest_runtest_logreport(_report("a", "call", 1.0, cpu_s=29.0))
    kept.pytest_runtest_logreport(_report("b", "call", 1.0, cpu_s=41.0, budget_s=20.0))
    assert kept.over_cpu_budget() == ["41.0 s of CPU time, the budget is 10 s: a"]
    session = SimpleNamespace(exitstatus=pytest.ExitCode.OK)
    kept.pytest_sessionfinish(session)  # type: ignore[arg-type]
    assert session.exitstatus == pytest.ExitCode.TESTS_FAILED


def test_cpu_time_of_a_test_is_its_own() -> None:
    times = SharedTime()
    _work(0.2)
    times.pytest_runtest_logstart()
    assert times.take_cpu() < 0.1
    _work(0.2)
    times._start()
    _work(1.0)
    times._end()
    assert 0.2 <= times.take_cpu() < 0.9


def _work(cpu_s: float) -> None:
    until = time.process_time() + cpu_s
    while time.process_time() < until:
        pass


def test_one_process_runs_tests_of_folders_with_fixtures_of_their_own(start: Start, tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "conftest.py").write_text("def pytest_runtest_setup(item): pass\n")
        (tmp_path / name / f"test_{name}.py").write_text("def test_it(): pass\n")
    session = start("def test_inner(): pass\n", str(tmp_path / "a"), str(tmp_path / "b"))
    out, _ = session.communicate(timeout=200)
    assert (session.returncode, "3 passed" in out) == (0, True), out
