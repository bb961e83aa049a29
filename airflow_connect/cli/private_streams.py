"""Keeps the logs of the JVM, C libraries and Python away from the terminal and from `--json`."""

from __future__ import annotations

import atexit
import io
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from typing import TextIO

LAST_LINES_S = 1.0


def take_streams(*, verbose: bool) -> tuple[TextIO, TextIO]:
    """Private text streams on the real stdout and stderr; descriptors 1 and 2 are then redirected permanently.

    Args:
        verbose: logs go to the real stderr; otherwise to an unlinked temporary file, which is never read.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # With a pipe or a file, print() would buffer its text until the process ends, after later output of others.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    out, err = _private(1, sys.stdout), _private(2, sys.stderr)
    if verbose:
        os.dup2(2, 1)
    else:
        with tempfile.TemporaryFile() as noise:
            os.dup2(noise.fileno(), 1)
            os.dup2(noise.fileno(), 2)
    return out, err


def _private(descriptor: int, like: TextIO) -> TextIO:
    return open(os.dup(descriptor), "w", encoding=like.encoding, errors=like.errors)


class NoiseFilter:
    """Passes every line that is written to descriptors 1 and 2 through a function that hides secrets.

    Nothing is changed before `start`: while there are no secrets, the last output of a process that dies suddenly
    should reach the terminal directly.
    """

    def __init__(self, err: TextIO) -> None:
        """`err`: destination of the logs; it has its own descriptor."""
        self._err = err
        self._hide: Callable[[str], str] = str
        self._thread: threading.Thread | None = None

    def start(self, hide: Callable[[str], str]) -> None:
        """Pass lines through `hide` from now on, including those of processes that are started later."""
        self._hide = hide
        if self._thread is not None:
            return
        sys.stdout.flush()
        sys.stderr.flush()
        source, sink = os.pipe()
        os.dup2(sink, 1)
        os.dup2(sink, 2)
        os.close(sink)
        self._thread = threading.Thread(target=self._pass_on, args=(source,), name="noise", daemon=True)
        self._thread.start()
        atexit.register(self._finish)

    def _pass_on(self, source: int) -> None:
        # Written to the descriptor: the text stream belongs to the main thread, and text streams are not thread-safe.
        descriptor, encoding = self._err.fileno(), self._err.encoding
        with open(source, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                rest = self._hide(line).encode(encoding, "replace")
                while rest:
                    rest = rest[os.write(descriptor, rest) :]

    def _finish(self) -> None:
        """Restore the descriptors, so the pipe can end, and wait for the last lines.

        A child process that still runs keeps the pipe open; this does not wait for it.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self._err.fileno(), 1)
        os.dup2(self._err.fileno(), 2)
        if self._thread is not None:
            self._thread.join(LAST_LINES_S)
