"""A driver process without Spark, with a process for each task: reads a run's specification, prints its report.

The processes of tasks are forked before anything else starts, and have no other end than that of their work, or a
signal: one whose driver was killed goes on, as on an executor that has not heard of it.
"""

from __future__ import annotations

import faulthandler
import json
import os
import pickle
import queue
import signal
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any

from airflow_connect.documents.run import TaskPlan, TaskReport
from airflow_connect.errors import TaskFailedError
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.task_rows import _pack, _result_of, error_of, reports_of
from airflow_connect.runtime.spec import RunSpec

if TYPE_CHECKING:
    from airflow_connect.runtime.settings import TaskSettings

ATTEMPTS = 2
"""Of each task."""
TASKS = 2
PROCESS_GONE = "test.task_process_gone"


@dataclass
class TaskProcess:
    """A process that runs tasks, one after the other."""

    pid: int
    channel: Connection

    def ask(self, work: tuple[TaskSettings, TaskPlan, int]) -> tuple[str, Any] | None:
        """The packed result of a task, or the text of an error; None: the process was killed."""
        try:
            self.channel.send_bytes(pickle.dumps(work))
            answer: tuple[str, Any] = pickle.loads(self.channel.recv_bytes())
        except (EOFError, ConnectionError):
            return None
        return answer


def fork_tasks(count: int) -> list[TaskProcess]:
    """So many of them; each returns from here never."""
    made: list[TaskProcess] = []
    for _ in range(count):
        own, other = Pipe()
        pid = os.fork()
        if pid == 0:
            for each in (own, *(task.channel for task in made)):
                each.close()
            _serve(other)
            sys.exit(0)
        other.close()
        made.append(TaskProcess(pid, own))
    return made


def _serve(channel: Connection) -> None:
    while True:
        try:
            work = pickle.loads(channel.recv_bytes())
        except (EOFError, ConnectionError):
            return  # The driver has ended.
        try:
            answer = ("row", _pack(_result_of(*work)))
        except Exception as error:  # noqa: BLE001 (as Spark: its text goes to the driver)
            answer = ("raised", str(error))
        try:
            channel.send_bytes(pickle.dumps(answer))
        except ConnectionError:
            return


class ForkedTasks:
    """An engine that repeats a task whose attempt has failed or was killed, as Spark does."""

    may_leave_duplicates = False

    def __init__(self, processes: Sequence[TaskProcess]) -> None:
        """`processes`: enough for all attempts."""
        self._free: queue.Queue[TaskProcess] = queue.Queue()
        for each in processes:
            self._free.put(each)

    def run(self, settings: TaskSettings, tasks: Sequence[TaskPlan]) -> list[TaskReport]:
        """Run all of them at once."""
        with ThreadPoolExecutor(len(tasks)) as pool:
            return reports_of(pool.map(lambda task: self._row_of(settings, task), tasks))

    def _row_of(self, settings: TaskSettings, task: TaskPlan) -> bytes:
        failure: Exception = AssertionError
        for attempt in range(ATTEMPTS):
            process = self._free.get()
            answer = process.ask((settings, task, attempt))
            if answer is None:
                failure = TaskFailedError("The process of the task was killed.", code=PROCESS_GONE)
                continue
            self._free.put(process)
            kind, result = answer
            if kind == "row":
                return bytes(result)
            failure = error_of(result) or TaskFailedError(result, code="test.raised")
        raise failure

    def cancel(self, run_id: str) -> None:
        """Its tasks are not interrupted."""

    def progress_host(self) -> str:
        """See `InProcessEngine`."""
        return "127.0.0.1"


def main() -> None:
    """One run."""
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1)
    processes = fork_tasks(TASKS * ATTEMPTS)
    spec = RunSpec.from_json(json.loads(sys.stdin.readline()))
    report = run_connector(spec, engine=ForkedTasks(processes))
    for each in processes:
        each.channel.close()
    for each in processes:
        os.waitpid(each.pid, 0)
    print(json.dumps(report.to_json()), flush=True)


if __name__ == "__main__":
    main()
