"""Workers as forked processes of their own, which tests kill."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Self

from airflow_connect.devstack.launching.process import free_ports
from tests.support.processes.forking import ForkedProcess
from tests.support.servers.rest import Answered, send
from tests.support.waiting import wait_until

MODULE = "tests.support.processes.worker_in_process"
END_S = 60.0


def free_port() -> int:
    """A port of loopback that nothing listens on now, and that no outgoing connection gets meanwhile."""
    return free_ports(1)[0]


class ForkedWorker:
    """A worker that runs tasks in its own process.

    Attributes:
        worker_id: host:port.
    """

    def __init__(self, worker: Mapping[str, str], port: int = 0) -> None:
        """Start it; returns at once."""
        self.port = port or free_port()
        self.worker_id = f"127.0.0.1:{self.port}"
        self._process = ForkedProcess(MODULE)
        given = {**worker, "listeners": f"http://{self.worker_id}"}
        self._process.stdin.write(json.dumps(given).encode() + b"\n")
        self._process.stdin.flush()

    def __enter__(self) -> Self:
        """Return when it answers."""
        wait_until(self.answers, f"the worker {self.worker_id} to answer", END_S)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End it as SIGTERM does, unless it was killed; what it has printed is shown with a failure."""
        if self.is_alive:
            self.signal(signal.SIGTERM)
        print(f"--- {self.worker_id}\n{self.printed()}")

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    @property
    def exit_code(self) -> int | None:
        """Negative for a signal; None while it runs."""
        return self._process.poll()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to its process group."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, number)

    def kill(self) -> None:
        """SIGKILL; returns when it has ended."""
        self.signal(signal.SIGKILL)
        self.printed()

    def ends_within(self, seconds: float) -> bool:
        """Whether it ends by itself; returns False after so many seconds."""
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return False
        return True

    def printed(self) -> str:
        """What it has printed, once it has ended. One that does not end shows where it hangs."""
        try:
            out, err = self._process.communicate(END_S)
        except subprocess.TimeoutExpired:
            os.kill(self._process.pid, signal.SIGUSR1)
            self.ends_within(2.0)
            self.signal(signal.SIGKILL)
            out, err = self._process.communicate(END_S)
            raise AssertionError(f"The worker has not ended within {END_S} s:\n{err.decode()}") from None
        return out.decode() + err.decode()

    def answers(self) -> bool:
        """Whether its API can be reached."""
        assert self.is_alive, self.printed()
        try:
            return self.send("GET", "/").status == 200
        except OSError:
            return False

    def send(self, method: str, path: str, body: Any = None) -> Answered:
        """One request."""
        return send(("127.0.0.1", self.port), method, path, body)

    def owners(self) -> dict[str, str]:
        """The worker of each connector, as this one answers."""
        found = self.send("GET", "/connectors?expand=status").body
        return {name: about["status"]["connector"]["worker_id"] for name, about in found.items() if "status" in about}
