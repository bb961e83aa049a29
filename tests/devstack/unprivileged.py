"""Replaces itself with a command that runs as the user `nobody`: PostgreSQL refuses to run as root.

Run as a script, by a process of root: unprivileged.py COMMAND... The standard library only, as for the guard.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

NOBODY = 65534
PR_SET_PDEATHSIG = 1


def as_nobody(argv: Sequence[str]) -> list[str]:
    """The command line that runs `argv` as nobody; `argv` itself unless this process is root."""
    if os.geteuid() != 0:
        return list(argv)
    return [sys.executable, "-I", "-S", __file__, *argv]


def give_to_nobody(folder: Path) -> None:
    """Let nobody own an empty folder; does nothing unless this process is root."""
    if os.geteuid() == 0:
        os.chown(folder, NOBODY, NOBODY)


def is_open_to_nobody(folder: Path) -> bool:
    """Whether nobody can reach a folder, such as that of a program; a folder of root's home is closed."""
    return os.geteuid() != 0 or all(path.stat().st_mode & 0o001 for path in (folder, *folder.parents))


def main(argv: list[str]) -> None:
    """Give up root, then run the command in place of this script."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    if sys.platform.startswith("linux"):
        # A change of the user clears what the guard has set: that the server ends with the guard.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    os.execv(argv[1], argv[1:])


if __name__ == "__main__":
    main(sys.argv)
