"""The standard input as a file: what comes before its end is kept on disk, for a task to read."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from airflow_connect.api.errors import ConfigError, ConnectError


def spool(stream: BinaryIO | None = None) -> str:
    """Copy the standard input, to its end, into a temporary file; returns its path.

    The file is removed when this process ends: until then a task, or a second attempt of it, may read it. Driver and
    executors must be on one machine.

    Raises:
        ConfigError: there is no standard input, or a person at a terminal would have to type it.
        ConnectError: it cannot be read, or there is no room for it; nothing is left on the disk.
    """
    source = stream if stream is not None else getattr(sys.stdin, "buffer", None)
    if source is None or (stream is None and sys.stdin.isatty()):
        raise ConfigError(
            "Neither file nor files is set, and there is no standard input to read.",
            config_path="file",
            suggestion="Set file or files, or send text to the standard input of the command.",
        )
    descriptor, path = tempfile.mkstemp(prefix="airflow-connect-stdin-")
    atexit.register(Path(path).unlink, missing_ok=True)
    try:
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise ConnectError(
            f"The standard input could not be kept in {path}: {error.strerror or error}. Nothing of it was copied.",
            code="file.stdin",
            suggestion="Make room there, or name another directory by the environment variable TMPDIR; then send the"
            " text again.",
        ) from error
    return path
