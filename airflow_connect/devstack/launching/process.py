"""A server as a child process: ready when started, ended by its pid, never left running."""

from __future__ import annotations

import contextlib
import json
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from airflow_connect.devstack.launching.errors import DevStackError

LOG_TAIL_BYTES = 3000
POLL_S = 0.02
# Below the ephemeral range of Linux (32768) and macOS (49152): a port in that range may be taken at any time
# as the source port of an outgoing connection, and a restart on the same port would occasionally fail.
PORT_RANGE = range(20_000, 32_000)


@dataclass(frozen=True)
class Command:
    """How to run a server.

    Attributes:
        name: its name in messages, `Kafka 4.3.1`.
        argv: program and arguments.
        log_path: file that receives the server's output; appended to.
        cleanup: files and folders that are removed if the parent dies without stopping the server.
        start_s: maximum seconds until the server is ready.
        stop_s: seconds between `stop_signal` and SIGKILL.
        stop_signal: asks the server to end.
        env: environment variables, in addition to those of this process.
    """

    name: str
    argv: Sequence[str]
    log_path: Path
    cleanup: Sequence[Path] = ()
    start_s: float = 90.0
    stop_s: float = 30.0
    stop_signal: int = signal.SIGTERM
    env: dict[str, str] = field(default_factory=dict)


class ServerProcess:
    """One running server. It ends on `stop()`, on `kill()`, and when this process dies for any reason."""

    def __init__(self, command: Command, guard: subprocess.Popen[bytes], pid: int) -> None:
        """Wrap a running guard; use `start`."""
        self._command = command
        self._guard = guard
        self.pid = pid

    @classmethod
    def start(cls, command: Command, is_ready: Callable[[], bool]) -> ServerProcess:
        """Start the server and return when `is_ready()` is true.

        Raises:
            DevStackError: `devstack.start` when the server ends early or is not ready in time, with the end
                of its log.
        """
        guard_file = Path(__file__).with_name("guard.py")
        cleanup = json.dumps([str(path) for path in command.cleanup])
        with command.log_path.open("ab") as log:
            limits = [str(command.stop_s), str(int(command.stop_signal))]
            guard = subprocess.Popen(
                [sys.executable, "-I", "-S", str(guard_file), *limits, cleanup, *command.argv],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                bufsize=0,
                env={**os.environ, **command.env},
                start_new_session=True,  # Ctrl-C must not end the server before the program that uses it
            )
        assert guard.stdout is not None
        with guard.stdout as stdout:
            first_line = stdout.readline()
        if not first_line.strip():
            guard.communicate()
            raise _start_error(command, "could not be started")
        server = cls(command, guard, int(first_line))
        try:
            server._wait_until(is_ready)
        except BaseException:
            server.stop()  # Not killed, so that it can end processes that it has started.
            raise
        return server

    def _wait_until(self, is_ready: Callable[[], bool]) -> None:
        deadline = time.monotonic() + self._command.start_s
        while not is_ready():
            if self._guard.poll() is not None:
                raise _start_error(self._command, f"ended with exit code {self._guard.returncode} while starting")
            if time.monotonic() > deadline:
                raise _start_error(self._command, f"was not ready within {self._command.start_s:.0f} s")
            time.sleep(POLL_S)
        if self._guard.poll() is not None:
            raise _start_error(self._command, "ended while another process answered on its port")

    @property
    def is_running(self) -> bool:
        """Return whether the server is alive."""
        return self._guard.poll() is None

    def stop(self) -> None:
        """End the server with its stop signal and wait until it is gone; does nothing if it has ended already."""
        self._order(b"T")

    def kill(self) -> None:
        """End the server with SIGKILL, as a crash would, and wait until it is gone."""
        self._order(b"K")

    def _order(self, letter: bytes) -> None:
        """Let the guard do it: it owns the child, so the pid cannot belong to another process."""
        stdin = self._guard.stdin
        assert stdin is not None
        if not stdin.closed:
            # A broken pipe: the server and its guard have already ended, as requested.
            with contextlib.suppress(BrokenPipeError), stdin:
                stdin.write(letter)
        self._guard.wait()


def _start_error(command: Command, what: str) -> DevStackError:
    tail = log_tail(command.log_path)
    return DevStackError(
        f"{command.name} {what}. The end of its log {command.log_path}:\n{tail}\n",
        code="devstack.start",
        suggestion="Start it again; if it fails the same way, the log shows the reason.",
    )


def log_tail(path: Path, size: int = LOG_TAIL_BYTES) -> str:
    """Return the last `size` bytes of a log as text, or a note that there is none."""
    if not path.exists():
        return "(no log)"
    with path.open("rb") as log:
        log.seek(max(0, path.stat().st_size - size))
        return log.read().decode("utf-8", "replace").strip() or "(the log is empty)"


def free_ports(count: int) -> list[int]:
    """Return `count` different unused ports of 127.0.0.1, outside the ephemeral range."""
    held: list[socket.socket] = []
    try:
        # Not the shared generator: a test may have seeded it, and then all processes would choose the same ports.
        candidates = random.SystemRandom().sample(PORT_RANGE, len(PORT_RANGE))
        for port in candidates:
            if len(held) == count:
                break
            listener = socket.socket()
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                listener.bind(("127.0.0.1", port))
                listener.listen(1)
            except OSError:
                listener.close()
                continue
            held.append(listener)
        return [listener.getsockname()[1] for listener in held]
    finally:
        for listener in held:
            listener.close()


def answers(port: int) -> bool:
    """Return whether a process accepts connections on this port of 127.0.0.1."""
    try:
        with socket.create_connection(("127.0.0.1", port), 0.5):
            return True
    except OSError:
        return False
