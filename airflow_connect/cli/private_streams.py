"""Keep the noise of the JVM, of C libraries and of Python's logging away from the terminal and from `--json`."""

from __future__ import annotations

import os
import sys
import tempfile
from typing import TextIO


def take_streams(*, verbose: bool) -> tuple[TextIO, TextIO]:
    """Private text streams on the real stdout and stderr; descriptors 1 and 2 then lead elsewhere, for good.

    Args:
        verbose: noise goes to the real stderr; otherwise to a nameless temporary file, which nobody reads.
    """
    sys.stdout.flush()
    sys.stderr.flush()
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
