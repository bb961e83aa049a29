"""The driver process from the outside, with real processes and a scripted run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver import process, process_tree
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver.process_tree import TOKEN_ENV, processes_of
from airflow_connect.runtime.spec import RunSpec
from tests.support.processes.drivers import PROJECT, fake_driver_env, is_alive
from tests.support.processes.proc import freeze
from tests.support.waiting import wait_until

PATIENCE_S = 20.0
CHILDREN_OF_HANG = 4  # driver, child, and the two that the child forked


def wait_for(condition: Callable[[], bool], what: str) -> None:
    wait_until(condition, what, PATIENCE_S)


def start(config: dict[str, Any], log: list[str] | None = None, **spec: Any) -> DriverProcess:
    order = RunSpec(connector={"name": "c", **config}, worker=spec.pop("worker", {}), **spec)
    return DriverProcess(order, env=fake_driver_env(), on_log=None if log is None else log.append)


def hanging(folder: Path, **more: Any) -> dict[str, Any]:
    paths = {name: str(folder / name) for name in ("pids", "stopped", "committed")}
    return {"fake": "hang", **paths, **more}


def pids_in(folder: Path) -> list[int]:
    file = folder / "pids"
    return [int(line) for line in file.read_text().split()] if file.exists() else []


def start_hanging(folder: Path, **more: Any) -> tuple[DriverProcess, list[int]]:
    driver = start(hanging(folder, **more))
    wait_for(lambda: len(pids_in(folder)) == CHILDREN_OF_HANG, "all children are up")
    return driver, pids_in(folder)


def test_run_reports_events_in_order_and_a_report() -> None:
    with start({}) as driver:
        events = [event["event"] for event in driver.events()]
        report = driver.wait()
    assert events == ["start", "phase", "plan", "phase", "progress", "end"]
    assert isinstance(report, RunReport)
    assert report.records == 20
    assert report.committed == {"meetups-0": 10, "meetups-1": 10}


def test_stdout_noise_of_any_origin_goes_to_the_log() -> None:
    log: list[str] = []
    with start({"fake": "echo"}, log) as driver:
        events = [event["event"] for event in driver.events()]
        driver.wait()
    assert events == ["start", "warning", "end"]
    assert {"noise of Python on stdout", "noise of C on stdout", "noise of a child on stdout"} <= set(log)


def test_secrets_reach_the_driver_by_its_stdin_only() -> None:
    worker, aws = {"sasl.password": "hunter22"}, {"secret_access_key": "wonderland"}
    with start({"fake": "echo"}, worker=worker, aws=aws) as driver:
        event = next(event for event in driver.events() if event["event"] == "warning")
        driver.wait()
    assert event["seen"]["worker"] == worker
    assert event["seen"]["aws"] == aws
    outside = json.dumps([event["env"], event["argv"]])
    assert "hunter22" not in outside
    assert "wonderland" not in outside


def test_spec_of_many_megabytes_arrives_whole() -> None:
    value = "x" * 3_000_000
    with start({"fake": "echo", "long": value}) as driver:
        event = next(event for event in driver.events() if event["event"] == "warning")
        driver.wait()
    assert event["seen"]["connector"]["long"] == value


@pytest.mark.parametrize(("fake", "exit_code"), [("copy", 0), ("empty", 0), ("away", 1), ("config", 2)])
def test_exit_code_follows_the_report(fake: str, exit_code: int) -> None:
    spec = RunSpec(connector={"name": "c", "fake": fake}, worker={})
    done = subprocess.Popen(
        [sys.executable, "-m", "airflow_connect.runtime.driver"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env={**os.environ, **fake_driver_env(), TOKEN_ENV: "exit-code-test"},
        start_new_session=True,
    )
    assert done.stdin is not None
    done.stdin.write(json.dumps(spec.to_json()).encode() + b"\n")
    done.stdin.flush()
    assert done.wait(PATIENCE_S) == exit_code
    done.stdin.close()


def test_crash_returns_the_exit_code_and_keeps_the_end_of_the_log() -> None:
    with start({"fake": "crash"}) as driver:
        assert [event["event"] for event in driver.events()] == ["start"]
        assert driver.wait() == 52
    assert driver.log_tail.endswith("OutOfMemoryError: Java heap space")


def test_defect_in_the_run_is_reported_as_an_internal_error_with_its_traceback_in_the_log() -> None:
    connector = {"name": "c", "fake": "defect", "sasl.password": "hunter2-of-the-test"}
    with start(connector) as driver:
        ended = list(driver.events())[-1]["event"]
        report = driver.wait()
    assert isinstance(report, RunReport) and report.error is not None
    assert (ended, report.status, report.error["code"]) == ("end", "failed", "internal.error")
    assert report.error["retriable"] is False
    message = "Internal error in connector c, please report it: AssertionError: a defect of ours near [hidden]."
    assert report.error["message"] == message
    assert "AssertionError: a defect of ours near [hidden]" in driver.log_tail
    assert "Traceback (most recent call last)" in driver.log_tail


def test_trouble_that_is_no_defect_stays_a_driver_that_died() -> None:
    with start({"fake": "trouble"}) as driver:
        assert [event["event"] for event in driver.events()] == ["start"]
        assert driver.wait() == 1
    assert "ConnectionResetError: gone" in driver.log_tail


def test_defect_after_the_end_does_not_change_the_report() -> None:
    with start({"fake": "late defect"}) as driver:
        assert [event["event"] for event in driver.events()].count("end") == 1
        report = driver.wait()
    assert isinstance(report, RunReport) and report.status == "done"
    assert "TypeError: too late" in driver.log_tail


def test_process_that_cannot_be_ended_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel keeps a process in state D whatever signal it has. Here the signal does not arrive."""
    driver, pids = start_hanging(tmp_path)
    children = [pid for pid in pids if pid != driver.pid]
    with monkeypatch.context() as patch:
        patch.setattr(process_tree, "_end", lambda pid: None)
        os.kill(driver.pid, signal.SIGKILL)
        list(driver.events())
        assert driver.wait() == -signal.SIGKILL
    left = [pid for pid in children if is_alive(pid)]
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert left
    assert "could not be ended" in driver.log_tail
    assert all(f"{pid} (python" in driver.log_tail for pid in left)


def test_driver_that_cannot_be_ended_is_named_and_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    driver, pids = start_hanging(tmp_path, deaf=True)
    with monkeypatch.context() as patch:
        for where, name in ((process, "STOP_GRACE_S"), (process_tree, "UNENDED_S")):
            patch.setattr(where, name, 0.1)
        patch.setattr(process_tree, "_end", lambda pid: None)
        patch.setattr(driver, "_signal_group", lambda number: None)
        driver.kill()
        list(driver.events())
        assert driver.wait() == -signal.SIGKILL
    assert is_alive(driver.pid)
    assert f"{driver.pid} (python" in driver.log_tail
    driver.kill()
    assert [pid for pid in pids if is_alive(pid)] == []


def test_kill_asks_the_run_to_stop_and_leaves_no_process(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path)
    began = time.monotonic()
    driver.kill()
    took = time.monotonic() - began
    assert [pid for pid in pids if is_alive(pid)] == []
    assert processes_of(driver.token) == []
    assert (tmp_path / "stopped").exists()
    assert not (tmp_path / "committed").exists()
    assert took < 4.5, "Airflow sends SIGKILL after five seconds"
    report = driver.wait()
    assert isinstance(report, RunReport)
    assert report.status == "failed"


def test_kill_lets_the_step_that_has_begun_end(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path, step_s=0.4)
    driver.kill()
    assert (tmp_path / "stopped").exists()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert isinstance(report := driver.wait(), RunReport) and report.status == "failed"


def test_kill_ends_a_run_inside_deaf_code(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path, deaf=True)
    driver.kill()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert driver.wait() == 143


def test_kill_ends_a_stopped_driver(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path)
    freeze(driver.pid)  # cannot even handle SIGTERM
    driver.kill()
    assert [pid for pid in pids if is_alive(pid)] == []
    assert driver.wait() == -signal.SIGKILL


def test_kill_twice_and_after_the_end_does_nothing() -> None:
    driver = start({})
    assert isinstance(driver.wait(), RunReport)
    driver.kill()
    driver.kill()
    assert isinstance(driver.wait(), RunReport)


def test_leaving_the_block_by_an_exception_leaves_no_process(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path)
    with pytest.raises(KeyError), driver:
        raise KeyError("trouble in the parent")
    assert [pid for pid in pids if is_alive(pid)] == []


def test_driver_killed_alone_takes_its_children_along(tmp_path: Path) -> None:
    driver, pids = start_hanging(tmp_path)
    os.kill(driver.pid, signal.SIGKILL)
    assert driver.wait() == -signal.SIGKILL
    assert [pid for pid in pids if is_alive(pid)] == []


PARENT = """
import sys, json
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.spec import RunSpec
driver = DriverProcess(RunSpec(connector=json.loads(sys.argv[1]), worker={}))
print(driver.pid, flush=True)
for event in driver.events():
    pass
"""


def test_parent_killed_by_sigkill_leaves_no_process(tmp_path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, json.dumps(hanging(tmp_path))],
        env={**os.environ, **fake_driver_env()},
        cwd=PROJECT,
        stdout=subprocess.PIPE,
    )
    wait_for(lambda: len(pids_in(tmp_path)) == CHILDREN_OF_HANG, "all children are up")
    parent.kill()
    parent.communicate()
    wait_for(lambda: not [pid for pid in pids_in(tmp_path) if is_alive(pid)], "all children are gone")
    assert not (tmp_path / "committed").exists()


def test_kill_from_a_signal_handler_ends_the_event_loop(tmp_path: Path) -> None:
    """Airflow's on_kill runs in a SIGTERM handler that interrupts the loop over the events."""
    driver, pids = start_hanging(tmp_path)
    previous = signal.signal(signal.SIGALRM, lambda *_: driver.kill())
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        events = [event["event"] for event in driver.events()]
    finally:
        signal.signal(signal.SIGALRM, previous)
    assert events == ["start", "phase", "end"]
    driver.wait()
    assert [pid for pid in pids if is_alive(pid)] == []
