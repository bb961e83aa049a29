"""Runs one server as its child. Ends it on request, or when the process that started the guard is gone.

Run as a script by `process.ServerProcess`; the standard library only, so that it is up in milliseconds.

usage: guard.py GRACE_SECONDS STOP_SIGNAL CLEANUP_JSON COMMAND...
stdin: `T` ends the server with STOP_SIGNAL, a number (SIGKILL after the grace period), `K` with SIGKILL.
    End of file without a letter means that the parent is gone: then the paths of CLEANUP_JSON (a JSON list) are
    removed, too.
stdout: one line, the pid of the server; everything after that is the server's own log.

Why a separate process: a server must end after SIGKILL of its parent, when the parent can no longer do anything.
PR_SET_PDEATHSIG alone is not enough, because it fires when the *thread* that started the child ends, and
servers are started from thread pools.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable

PARENT_CHECK_S = 0.5
PR_SET_PDEATHSIG = 1


def main(argv: list[str]) -> int:
    """Start the server, wait for a command or for its end, return its exit code."""
    grace_s, stop_signal, cleanup, command = float(argv[1]), int(argv[2]), json.loads(argv[3]), argv[4:]
    parent = os.getppid()
    wakeup = _wake_on(signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    log = os.dup(2)
    server = subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        preexec_fn=_kill_with_guard(),  # noqa: PLW1509 - unsafe with other threads, and there are none
    )
    os.write(1, f"{server.pid}\n".encode())
    os.close(1)
    order = _next_order(server, wakeup, parent)
    if order == b"K":
        server.kill()
    elif server.poll() is None:
        server.send_signal(stop_signal)
    try:
        server.wait(grace_s)
    except subprocess.TimeoutExpired:
        server.kill()
        server.wait()
    if order == b"":
        for path in cleanup:
            _remove(path)
    return server.returncode if server.returncode >= 0 else 128 - server.returncode


def _next_order(server: subprocess.Popen[bytes], wakeup: int, parent: int) -> bytes:
    """Return `T`, `K`, or nothing if the parent is gone.

    Usually the end of stdin shows this. The parent's pid is checked as well, because a child that the parent
    forked without exec also holds the pipe open.
    """
    stdin_fd = 0
    while True:
        ready, _, _ = select.select([stdin_fd, wakeup], [], [], PARENT_CHECK_S)
        if stdin_fd in ready:
            return os.read(stdin_fd, 1)
        if wakeup in ready and set(os.read(wakeup, 64)) - {signal.SIGCHLD}:
            return b"T"
        if server.poll() is not None:
            return b"T"
        if os.getppid() != parent:
            return b""


def _wake_on(*signals: int) -> int:
    """Return a descriptor that gets one byte, the signal's number, for each of these signals."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    signal.set_wakeup_fd(write_end)
    for number in signals:
        signal.signal(number, lambda *_: None)
    return read_end


def _kill_with_guard() -> Callable[[], None] | None:
    """Make Linux kill the server if the guard itself is killed by SIGKILL."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    return lambda: libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)


def _remove(path: str) -> None:
    """Remove a file or a folder; a dying server may still write into it for a moment."""
    for _ in range(20):
        if not os.path.lexists(path):
            return
        if os.path.isdir(path):
            shutil.rmtree(path, ignore_errors=True)
        else:
            os.unlink(path)
        time.sleep(0.05)


if __name__ == "__main__":
    sys.exit(main(sys.argv))
