"""Standard input as a file: it is copied to disk up to its end, so that a task can read it."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path
from typing import BinaryIO

from airflow_connect.errors import ConfigError, ConnectError


def spool(stream: BinaryIO | None = None) -> str:
    """Copy standard input, to its end, into a temporary file; returns the path.

    The file is removed when this process ends. Until then a task, or a second attempt of it, can read it. The driver
    and the executors must be on one machine.

    Raises:
        ConfigError: there is no standard input, or it is an interactive terminal.
        ConnectError: it cannot be read, or there is no space for it; nothing is left on disk.
    """
    source = stream if stream is not None else getattr(sys.stdin, "buffer", None)
    if source is None or (stream is None and sys.stdin.isatty()):
        raise ConfigError(
            "Neither file nor files is set, and there is no standard input to read.",
            config_path="file",
            suggestion="Set file or files, or pipe text to the standard input of the command.",
        )
    descriptor, path = tempfile.mkstemp(prefix="airflow-connect-stdin-")
    atexit.register(Path(path).unlink, missing_ok=True)
    try:
        with os.fdopen(descriptor, "wb") as target:
            shutil.copyfileobj(source, target)
    except OSError as error:
        Path(path).unlink(missing_ok=True)
        raise ConnectError(
            f"Standard input could not be stored in {path}: {error.strerror or error}. Nothing was copied.",
            code="file.stdin",
            suggestion="Free space there, or set the environment variable TMPDIR to another directory; then send the"
            " text again.",
        ) from error
    return path
