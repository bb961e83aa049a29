"""Refusals of a file system as messages: which operation on which path, why, and what to do."""

from __future__ import annotations

import errno
import os
import socket

from airflow_connect.errors import AccessError, ConnectError, UnavailableError

UNSUPPORTED = frozenset({errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EMLINK})
"""Errors of `link` on file systems without hard links (FAT, some network and FUSE file systems)."""

_CALLED_OFF = "No offset was moved: the next run resumes from here."


def error_for(error: OSError, operation: str, path: str) -> ConnectError:
    """The typed error for an error of the operating system.

    Args:
        error: what was raised.
        operation: what was attempted, as words after "cannot": `write`, `create the directory`.
        path: on which file or directory.
    """
    head = f"This process on {host()} cannot {operation} {path}: {error.strerror or error}."
    number = error.errno
    if number == errno.ENOSPC:
        return UnavailableError(head, code="local.disk_full", suggestion=f"Free space there. {_CALLED_OFF}")
    if number == errno.EDQUOT:
        advice = f"Free space, or have the quota of {_user()} raised. {_CALLED_OFF}"
        return UnavailableError(head, code="local.quota", suggestion=advice)
    if number in (errno.EMFILE, errno.ENFILE):
        advice = "Raise the limit of open files (ulimit -n) of the processes that run drivers and executors."
        return UnavailableError(head, code="local.too_many_open_files", suggestion=advice)
    code, suggestion, _ = _explain(number)
    if code:
        return AccessError(head, code=code, suggestion=suggestion)
    return UnavailableError(head, code="local.unavailable", suggestion=f"Look at the disk or mount. {_CALLED_OFF}")


def _explain(number: int | None) -> tuple[str, str, str]:
    """Stable code and suggestion for a permanent refusal; "" if it may be temporary."""
    if number in (errno.EACCES, errno.EPERM):
        advice = f"Give {_user()} the right to write there, or choose another directory."
        return "local.forbidden", advice, ""
    if number == errno.EROFS:
        return "local.read_only", "Mount that file system for writing, or choose another directory.", ""
    if number == errno.ENOTDIR:
        return "local.not_a_directory", "A file exists where a directory is needed: move it away.", ""
    if number == errno.EISDIR:
        return "local.is_a_directory", "A directory exists where a file is needed: move it away.", ""
    if number == errno.ENAMETOOLONG:
        return "local.name_too_long", "Choose shorter directories, or partition by a shorter field.", ""
    if number == errno.ELOOP:
        return "local.symbolic_links", "Correct the symbolic links: they form a loop.", ""
    if number == errno.EXDEV:
        advice = "Staged and published files must be in one file system: mount or link no other one below it."
        return "local.other_file_system", advice, ""
    if number == errno.ENOENT:
        return "local.not_found", "Create the directory, or correct the path.", ""
    return "", "", ""


def staged_file_gone(path: str, operation: str) -> UnavailableError:
    """The error for a temporary file that disappears before this run has published it; `operation`: past tense."""
    return UnavailableError(
        f"The temporary file {path} disappeared before it was {operation}.",
        code="local.staged_file_gone",
        suggestion="Make sure that nothing deletes files below +tmp during runs. No offset was moved; the next run"
        " copies it again.",
    )


def not_shared(path: str, staged_on: str) -> AccessError:
    """The error if executors stage files in a directory that the driver does not see."""
    return AccessError(
        f"The temporary file {path} was staged twice by {staged_on or 'an executor'}, and the driver on {host()}"
        f" cannot find it.",
        code="local.not_shared",
        suggestion="Drivers and executors must see the same directory: run Spark as local[*] on this machine, or use "
        "a directory of a network file system that is mounted under the same path everywhere. If they do, something "
        "deletes files below +tmp during runs.",
    )


def not_found_here(root: str) -> AccessError:
    """The error if the store's directory exists on the driver but not on an executor."""
    return AccessError(
        f"The directory {root} does not exist on {host()}, where an executor is to stage files.",
        code="local.not_shared",
        suggestion="Drivers and executors must see the same directory: run Spark as local[*] on the driver's machine, "
        "or use a directory of a network file system that is mounted under the same path everywhere.",
    )


def host() -> str:
    """This machine's name, for messages and tokens."""
    return socket.gethostname()


def _user() -> str:
    return f"the user with id {os.geteuid()}"
