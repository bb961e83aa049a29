"""A driver with a real Spark copy is killed: no process is left, nothing is committed, the next run does it all."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.driver.process_tree import processes_of
from tests.support.copies.s3 import InProcessEngine
from tests.support.processes.drivers import PROJECT, is_alive
from tests.support.processes.proc import command_lines
from tests.support.waiting import wait_until

pytestmark = pytest.mark.crash

SPARK = {"spark.master": "local[2]"}
START_S = 90.0
END_S = 30.0
PROCESSES = 5  # driver, JVM, pyspark's daemon, two Python workers


class Copy:
    """A topic and a sink whose two tasks stage ten files each and then wait."""

    def __init__(self, make_topic, fill, make_sink, faults) -> None:
        self.faults = faults
        topic = make_topic(partitions=2)
        self.values = fill(topic, 2, 200, at={n: {"do": "hold", "times": 2} for n in (100, 101)})
        self.sink = make_sink(topic, tasks_max="2", flush_size="5", **faults.config())
        self.sink.worker_config.update(SPARK)

    def is_under_way(self) -> bool:
        return len(self.faults.held()) == 2

    def assert_killed(self, token: str, pids: list[int], *, in_order: bool = False) -> None:
        """No process is left, nothing is visible, and a run in this process finishes the work.

        A run that is ended in order may find the time to discard what it has staged.
        """
        assert [pid for pid in pids if is_alive(pid)] == []
        assert processes_of(token) == []
        assert self.sink.keys() == []
        assert self.sink.offsets() == {}
        assert in_order or self.sink.uploads() != []
        self.faults.release()
        self.sink.engine = InProcessEngine()
        assert self.sink.run().records == 200
        self.sink.assert_exactly_once(self.values)


@pytest.fixture
def copy(make_topic, fill, make_sink, faults):
    return Copy(make_topic, fill, make_sink, faults)


def start(copy: Copy) -> tuple[DriverProcess, list[int]]:
    driver = DriverProcess(copy.sink.spec())
    wait_until(copy.is_under_way, "both tasks are at work", START_S)
    wait_until(lambda: copy.sink.uploads() != [], "something is staged", START_S)
    pids = processes_of(driver.token)
    assert len(pids) == PROCESSES
    return driver, pids


def test_kill_of_the_driver_ends_jvm_and_workers(copy):
    driver, pids = start(copy)
    killer = threading.Thread(target=driver.kill)
    killer.start()
    # How long it may take is a matter of STOP_GRACE_S (tests/unit/runtime/driver/test_process.py); here it has to end.
    killer.join(END_S)

    assert not killer.is_alive()
    copy.assert_killed(driver.token, pids, in_order=True)
    driver.wait()


def test_sigkill_of_the_drivers_process_group_leaves_no_process(copy):
    driver, pids = start(copy)
    os.killpg(driver.pid, signal.SIGKILL)

    assert driver.wait() == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, pids)), "all processes are gone", END_S)
    copy.assert_killed(driver.token, pids)


PARENT = """
import json, sys
from airflow_connect.runtime.driver.process import DriverProcess
from airflow_connect.runtime.spec import RunSpec
driver = DriverProcess(RunSpec.from_json(json.load(sys.stdin)))
print(driver.pid, driver.token, flush=True)
for event in driver.events():
    pass
"""


@pytest.mark.parametrize("driver_too", [False, True], ids=["parent", "parent and driver at once"])
def test_sigkill_of_the_parent_leaves_no_process(copy, driver_too):
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], cwd=PROJECT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with parent:
        parent.stdin.write(json.dumps(copy.sink.spec().to_json()))
        parent.stdin.close()
        driver_pid, token = parent.stdout.readline().split()
        wait_until(copy.is_under_way, "both tasks are at work", START_S)
        wait_until(lambda: copy.sink.uploads() != [], "something is staged", START_S)
        pids = processes_of(token)
        parent.kill()
        if driver_too:
            os.killpg(int(driver_pid), signal.SIGKILL)  # Nobody is left who looks for the token.
    assert len(pids) == PROCESSES
    wait_until(lambda: not any(map(is_alive, pids)), "all processes are gone", END_S)

    copy.assert_killed(token, pids)


def test_kill_while_spark_is_starting_leaves_no_process(copy):
    driver = DriverProcess(copy.sink.spec())
    for event in driver.events():
        if event.get("phase") == "copy":
            break
    wait_until(lambda: len(processes_of(driver.token)) > 1, "a child is being started", START_S)
    driver.kill()

    assert processes_of(driver.token) == []
    assert copy.sink.keys() == []
    driver.wait()


def test_secrets_are_in_no_command_line_environment_log_or_file_of_a_run(copy, tmp_path):
    secret = "hunter2-for-spark"
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    lines: list[str] = []
    copy.sink.worker_config["spark.hadoop.fs.s3a.secret.key"] = secret
    secrets = [secret, copy.sink.s3.secret_key]
    with DriverProcess(copy.sink.spec(), env={"TMPDIR": str(scratch)}, on_log=lines.append) as driver:
        wait_until(copy.is_under_way, "both tasks are at work", START_S)
        pids = processes_of(driver.token)
        seen = [line for pid, line in command_lines() if pid in pids]
        seen += [Path(f"/proc/{pid}/environ").read_text() for pid in pids]
        files = [path for path in scratch.rglob("*") if path.is_file()]
        told = [path for path in files if any(word.encode() in path.read_bytes() for word in secrets)]
        copy.faults.release()
        list(driver.events())
        report = driver.wait()

    assert len(pids) == PROCESSES
    assert [line for line in [*seen, *lines] if any(word in line for word in secrets)] == []
    assert told == []
    assert report.records == 200
    copy.sink.assert_exactly_once(copy.values)
    assert list(scratch.rglob("*")) == []
