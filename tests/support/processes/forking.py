"""Processes of runs that tests kill, forked by `tests.support.processes.fork_server` instead of started anew."""

from __future__ import annotations

import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

from tests.support.processes.drivers import PROJECT
from tests.support.processes.fork_server import request_bytes

NO_THREADS = {
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
}
"""For libraries that start threads when they are imported."""


class ForkedProcess:
    """What the tests use of `subprocess.Popen`, with pipes as its three streams.

    Attributes:
        pid: of the process, which leads a session and a process group of its own.
        stdin: what it reads.
        returncode: negative for a signal; None while it runs.
    """

    def __init__(
        self, module: str, argv: Sequence[str] = (), env: Mapping[str, str] | None = None, cwd: Path = PROJECT
    ) -> None:
        """Run a module as `python -m` does; `env`: its whole environment, this process's unless given."""
        environment = dict(os.environ if env is None else env)
        (child_in, own_in), (own_out, child_out), (own_err, child_err) = os.pipe(), os.pipe(), os.pipe()
        self._told, told = socket.socketpair()
        with told:
            try:
                descriptors = [child_in, child_out, child_err, told.fileno()]
                socket.send_fds(_server().socket, [request_bytes(module, list(argv), environment, cwd)], descriptors)
            finally:
                for descriptor in (child_in, child_out, child_err):
                    os.close(descriptor)
        self.stdin: IO[bytes] = os.fdopen(own_in, "wb")
        self.returncode: int | None = None
        self._lines = self._told.makefile("rb")
        self._kept: list[bytes] = [b"", b""]
        self._readers = [
            threading.Thread(target=self._read, args=(number, os.fdopen(descriptor, "rb")), daemon=True)
            for number, descriptor in enumerate((own_out, own_err))
        ]
        self.pid = int(self._lines.readline() or b"0")
        assert self.pid, "the fork server has ended; its last words stand in the output of this session"
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        for thread in (*self._readers, self._waiter):
            thread.start()

    def poll(self) -> int | None:
        """The exit code, or None while it runs."""
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """The exit code, once it has ended.

        Raises:
            subprocess.TimeoutExpired: not within `timeout` seconds.
        """
        self._join(self._waiter, timeout)
        assert self.returncode is not None
        return self.returncode

    def communicate(self, timeout: float | None = None) -> tuple[bytes, bytes]:
        """What it wrote to its output and to its error stream, once it has ended; closes its input."""
        with contextlib.suppress(BrokenPipeError):  # it has ended without reading all of it
            self.stdin.close()
        for thread in (*self._readers, self._waiter):
            self._join(thread, timeout)
        return self._kept[0], self._kept[1]

    def _join(self, thread: threading.Thread, timeout: float | None) -> None:
        thread.join(timeout)
        if thread.is_alive():
            raise subprocess.TimeoutExpired([str(self.pid)], timeout or 0.0)

    def _read(self, number: int, stream: IO[bytes]) -> None:
        with stream:
            self._kept[number] = stream.read()

    def _wait(self) -> None:
        with self._told, self._lines:
            line = self._lines.readline()
        # Without a line the server has ended before its child.
        self.returncode = int(line) if line else -9


class _Server:
    """The fork server of this process; it ends when this process does, as its socket closes."""

    def __init__(self) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tests.support.processes.fork_server", str(theirs.fileno())],
                cwd=PROJECT,
                env={**os.environ, **NO_THREADS},
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )


_lock = threading.Lock()
_running: list[_Server] = []


def _server() -> _Server:
    with _lock:
        if not _running:
            _running.append(_Server())
        return _running[0]


def end_fork_server() -> None:
    """End this process's server, if it has one."""
    with _lock:
        while _running:
            server = _running.pop()
            server.socket.close()
            server.process.wait()
