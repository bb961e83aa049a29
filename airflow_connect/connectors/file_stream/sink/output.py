"""Where a sink without `file` writes its lines: the standard output of the command.

A command that redirects descriptor 1 calls `send_to`. Otherwise lines go to descriptor 1: the log of the Airflow task
in a driver process, or the standard output of the program that embeds this package.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from airflow_connect.errors import ConnectError

_destination: list[Callable[[bytes], None]] = []


class OutputClosedError(ConnectError):
    """The reader of the lines has closed the pipe."""

    code = "file.output_closed"


def send_to(write: Callable[[bytes], None] | None) -> None:
    """Pass lines to `write` from now on; None: write to descriptor 1."""
    _destination[:] = [] if write is None else [write]


def write(data: bytes) -> None:
    """Write whole lines.

    Raises:
        OutputClosedError: the other end of the pipe was closed.
    """
    try:
        _destination[0](data) if _destination else _to_descriptor_1(data)
    except BrokenPipeError as error:
        raise OutputClosedError(
            "Standard output was closed before all lines were written.",
            suggestion="No offset was committed: the next run writes all of the lines again.",
        ) from error


def _to_descriptor_1(data: bytes) -> None:
    sys.stdout.flush()
    with memoryview(data) as rest:
        done = 0
        while done < len(rest):
            done += os.write(1, rest[done:])
