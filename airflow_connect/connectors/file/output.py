"""Where the lines of a sink without `file` go: the standard output of whoever runs the command.

A command line that points descriptor 1 elsewhere says so with `send_to`. Without that it is descriptor 1: the log of
the Airflow task in a driver process, the program's own standard output where this package is embedded.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

from airflow_connect.api.errors import ConnectError

_destination: list[Callable[[bytes], None]] = []


class OutputClosedError(ConnectError):
    """Whoever read the lines has gone."""

    code = "file.output_closed"


def send_to(write: Callable[[bytes], None] | None) -> None:
    """Give lines to `write` from now on; None: to descriptor 1."""
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
            suggestion="No offset was moved: the next run writes the lines again, from the first one.",
        ) from error


def _to_descriptor_1(data: bytes) -> None:
    sys.stdout.flush()
    with memoryview(data) as rest:
        done = 0
        while done < len(rest):
            done += os.write(1, rest[done:])
