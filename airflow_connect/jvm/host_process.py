"""The operating system's side of a plugin host: one JVM with its output, its children and its private folder."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from pathlib import Path

KEPT_LINES = 40
_LINE_CHARS = 4_000
_SOCKET_PATH_BYTES = 107
"""The longest path of a Unix socket on Linux, without its final zero."""
_DUMP_TIMEOUT_S = 5.0
_DUMP_FIRST, _DUMP_LAST = "Full thread dump", "JNI global ref"
_FRAMES_OF_A_STACK = 30
_POLL_S = 0.01

OnLine = Callable[[str], None]


class HostProcess:
    """A JVM that has been started, or has ended.

    It is the leader of a session of its own, so its children can be ended with it. Its folder (mode 0700) is for the
    socket until the JVM has connected, and for the report that a crashing JVM writes.

    Attributes:
        folder: the private one.
        hide: what is done to each line before anyone sees it.
    """

    def __init__(self, argv_for: Callable[[Path], Sequence[str]], on_line: OnLine | None) -> None:
        """Start the JVM.

        Args:
            argv_for: gets the private folder and returns the command; the socket is `<folder>/s`.
            on_line: gets each line of its output, in a thread of this object.
        """
        self.folder = _private_folder()
        self.hide: Callable[[str], str] = str
        self._on_line = on_line
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._dump: list[str] | None = None
        self._dumped = threading.Event()
        try:
            self._server = socket.socket(socket.AF_UNIX)
            self._server.bind(str(self.folder / "s"))
            self._server.listen(1)
            self._process = subprocess.Popen(
                argv_for(self.folder),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            self._server.close()
            shutil.rmtree(self.folder, ignore_errors=True)
            raise
        self._drain = threading.Thread(target=self._read_output, name="plugin-host-output", daemon=True)
        self._drain.start()

    @property
    def pid(self) -> int:
        """Process id of the JVM, which is also that of its session."""
        return self._process.pid

    def accept(self, timeout_s: float) -> socket.socket | None:
        """Wait for the JVM to connect; None: it has ended, or does not come in time."""
        deadline = time.monotonic() + timeout_s
        self._server.settimeout(0.05)
        try:
            while not self.has_ended() and time.monotonic() < deadline:
                with contextlib.suppress(TimeoutError):
                    return self._server.accept()[0]
            return None
        finally:
            self._server.close()
            (self.folder / "s").unlink(missing_ok=True)

    def last_lines(self) -> list[str]:
        """The end of its output."""
        return list(self._lines)

    def stack_of(self, *threads: str) -> str:
        """The Java stacks of the threads with these names; "" if the JVM does not answer.

        SIGQUIT makes a JVM print the stacks of all threads. Tools that attach to a JVM are not part of every Java.
        """
        self._dumped.clear()
        self._dump = []
        os.kill(self.pid, signal.SIGQUIT)
        self._dumped.wait(_DUMP_TIMEOUT_S)
        dump, self._dump = self._dump, None
        return _stacks(dump, threads)

    def end(self, timeout_s: float) -> int:
        """Wait for the JVM to end, kill it after that time, end its children, remove its folder; return its exit code.

        The code is as in `subprocess`: negative for a signal. Idempotent.
        """
        if self._process.returncode is None:
            deadline = time.monotonic() + timeout_s
            while not self.has_ended() and time.monotonic() < deadline:
                time.sleep(_POLL_S)
            with contextlib.suppress(ProcessLookupError):
                # The JVM is not reaped yet: the number of its group cannot belong to others.
                os.killpg(self.pid, signal.SIGKILL)
            self._process.wait()
        self._drain.join(_DUMP_TIMEOUT_S)
        return self._process.returncode

    def remove_folder(self) -> None:
        """Remove the private folder; idempotent."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def crash_frame(self) -> str:
        """Where a JVM crashed, from the report that it left in its folder: one line, or ""."""
        for report in sorted(self.folder.glob("hs_err_*.log")):
            found = re.search(r"^# Problematic frame:\n# (.+)$", report.read_text(errors="replace"), re.MULTILINE)
            if found:
                return found[1].strip()
        return ""

    def has_ended(self) -> bool:
        """Whether the JVM has ended. It is not reaped, so that its children can still be found by its number."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # Something else in this process reaps all children, or ignores SIGCHLD.
            return True

    def _read_output(self) -> None:
        """Read its output until it ends: a pipe that nobody reads would stop the JVM."""
        pipe = self._process.stdout
        assert pipe is not None
        with pipe:
            while raw := pipe.readline(_LINE_CHARS):
                self._take(raw.decode(errors="replace").rstrip("\r\n"))

    def _take(self, line: str) -> None:
        if self._dump is not None and (self._dump or line.startswith(_DUMP_FIRST)):
            self._dump.append(line)
            if line.startswith(_DUMP_LAST):
                self._dumped.set()
            return
        line = self.hide(line)
        self._lines.append(line)
        if self._on_line is not None:
            try:
                self._on_line(line)
            except Exception:
                logging.getLogger(__name__).exception("A line of a plugin host could not be passed on.")


def _private_folder() -> Path:
    """A new folder of mode 0700 whose path leaves room for the name of a socket."""
    folder = Path(tempfile.mkdtemp(prefix="jvm-"))
    if len(os.fsencode(folder / "s")) <= _SOCKET_PATH_BYTES:
        return folder
    folder.rmdir()
    return Path(tempfile.mkdtemp(prefix="jvm-", dir="/tmp"))


def _stacks(dump: Sequence[str], threads: Sequence[str]) -> str:
    """The parts of a thread dump that begin with the name of one of the threads."""
    found: list[str] = []
    for part in "\n".join(dump).split("\n\n"):
        for name in threads:
            at = part.find(f'"{name}" ')
            if at >= 0:
                frames = [line.strip() for line in part[at:].splitlines() if line.startswith("\tat ")]
                found.append("\n".join([f"{name}:", *frames[:_FRAMES_OF_A_STACK]]))
    return "\n".join(found)
