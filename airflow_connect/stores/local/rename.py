"""Gives a staged file its final name without ever replacing another file.

`link` is the portable way: it fails if the name exists. A crash between it and the removal of the temporary name leaves
two names of one file, which the next attempt recognises. On file systems without hard links, Linux's `renameat2` with
RENAME_NOREPLACE is used; file systems that support neither are rejected.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
from functools import cache
from typing import Any

from airflow_connect.stores.local.errors import UNSUPPORTED

_RENAME_NOREPLACE = 1
_AT_FDCWD = -100


def rename_without_replacing(source: str, target: str) -> None:
    """Rename a file; after a crash it may have both names.

    Raises:
        FileExistsError: `target` exists; `source` is untouched.
        FileNotFoundError: `source` or the directory of `target` does not exist.
        OSError: the file system refused.
    """
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError as error:
        if error.errno not in UNSUPPORTED:
            raise
        _renameat2(source, target)
        return
    with contextlib.suppress(FileNotFoundError):  # Another publisher of the same manifest has removed it.
        os.unlink(source)


def _renameat2(source: str, target: str) -> None:
    function = _libc_renameat2()
    if function is None:
        raise OSError(errno.EOPNOTSUPP, "The file system has no hard links, and this system no renameat2", target)
    if function(_AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE) != 0:
        number = ctypes.get_errno()
        if number == errno.EINVAL:
            number = errno.EOPNOTSUPP
        raise OSError(number, os.strerror(number), target)


@cache
def _libc_renameat2() -> Any:
    function = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if function is not None:
        function.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint]
    return function
