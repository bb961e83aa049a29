"""Keep the noise of the JVM, of C libraries and of Python's logging away from the terminal and from `--json`."""

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
    """Private text streams on the real stdout and stderr; descriptors 1 and 2 then lead elsewhere, for good.

    Args:
        verbose: noise goes to the real stderr; otherwise to a nameless temporary file, which nobody reads.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    # Into a pipe or a file, print() would hold its text back until the process ends, behind what others wrote later.
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
    """Puts something between descriptors 1 and 2 and the terminal: every line passes a function that hides secrets.

    Nothing is changed until `start`: as long as there is no secret, the noise of a process that dies suddenly should
    reach the terminal by itself.
    """

    def __init__(self, err: TextIO) -> None:
        """Noise is to end up in `err`, which has a descriptor of its own."""
        self._err = err
        self._hide: Callable[[str], str] = str
        self._thread: threading.Thread | None = None

    def start(self, hide: Callable[[str], str]) -> None:
        """Let lines pass `hide` from now on, also those of processes that are started later."""
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
        """Give the descriptors back, so that the pipe can end, and wait for the last lines.

        A child that still runs keeps the pipe open; nobody waits for it.
        """
        sys.stdout.flush()
        sys.stderr.flush()
        os.dup2(self._err.fileno(), 1)
        os.dup2(self._err.fileno(), 2)
        if self._thread is not None:
            self._thread.join(LAST_LINES_S)
