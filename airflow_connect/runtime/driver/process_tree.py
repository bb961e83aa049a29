"""Find and end every process of a run on this machine, whatever process group it moved to.

A driver has children that leave its process group (pyspark's Python daemon calls setpgid) and children that
lose their parent (a worker whose daemon was killed). What they all keep is the environment that they
inherited, so the driver's environment carries a token, and whoever has the token belongs to the run. A run that
is started inside another one has `<token of the outer one>/<its own>`: the outer one ends it, and it never ends
what is beside it.

Where there is no /proc (macOS), only the process group of the driver is known; the Python workers there end
by themselves when the JVM closes their sockets.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

TOKEN_ENV = "AIRFLOW_CONNECT_RUN_TOKEN"
POLL_S = 0.02


def new_token() -> str:
    """A token that nobody has, below the one that this process has itself."""
    own = secrets.token_hex(16)
    outer = os.environ.get(TOKEN_ENV)
    return f"{outer}/{own}" if outer else own


@contextmanager
def own_token() -> Iterator[str]:
    """Give children that are started meanwhile a token of their own, and this process back what it had."""
    before = os.environ.get(TOKEN_ENV)
    token = os.environ[TOKEN_ENV] = new_token()
    try:
        yield token
    finally:
        if before is None:
            del os.environ[TOKEN_ENV]
        else:
            os.environ[TOKEN_ENV] = before


def processes_of(token: str) -> list[int]:
    """Pids of the living processes whose environment carries `token`, or one below it; [] where there is no /proc."""
    wanted = f"{TOKEN_ENV}={token}".encode()
    below = wanted + b"/"
    return [pid for pid in _pids() if any(e == wanted or e.startswith(below) for e in _environment(pid))]


def end_processes(token: str, grace_s: float, spare: Iterable[int] = ()) -> None:
    """SIGKILL the processes of a run that did not end by themselves in time, until none is left.

    Args:
        token: the run's token.
        grace_s: seconds; 0 kills at once.
        spare: pids that are left alone.
    """
    spared = set(spare)
    deadline = time.monotonic() + grace_s
    while left := [pid for pid in processes_of(token) if pid not in spared]:
        if time.monotonic() >= deadline:
            for pid in left:
                # Gone since the scan: that is what was wanted.
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        time.sleep(POLL_S)


def _pids() -> list[int]:
    proc = Path("/proc")
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()] if proc.is_dir() else []


def _environment(pid: int) -> list[bytes]:
    """Environment at the start of a process; [] for those of other users and for zombies."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
