"""Runs a command in a session of its own; when it is told to end (SIGTERM), the whole session is killed.

usage: process_session.py COMMAND...

For servers that start others and leave them behind, such as `airflow standalone`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

POLL_S = 0.02


def main(command: list[str]) -> int:
    os.setsid()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    try:
        return subprocess.Popen(command).wait()
    finally:
        while others := [pid for pid in members(os.getsid(0)) if pid != os.getpid()]:
            for pid in others:
                with contextlib.suppress(ProcessLookupError):  # ended since we looked
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)


def members(session: int) -> list[int]:
    """Living processes of a session."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            if entry.name.isdigit():
                state, _, _, of = (entry / "stat").read_text().rpartition(")")[2].split()[:4]
                if int(of) == session and state not in "ZX":
                    found.append(int(entry.name))
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
