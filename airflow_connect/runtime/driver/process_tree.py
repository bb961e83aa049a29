"""Find and end every process of a run on this machine, whatever process group it moved to.

A driver has children that leave its process group (pyspark's Python daemon calls setpgid) and children that
lose their parent (a worker whose daemon was killed). They all keep the environment that they inherited. So the
driver's environment holds a token, and every process with that token belongs to the run. A run that is started
inside another one has the token `<token of the outer run>/<its own>`: the outer run can end it, but it cannot end
other processes of the outer run.

Without /proc (macOS), only the process group of the driver is known; the Python workers there end by themselves
when the JVM closes their sockets.
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
UNENDED_S = 1.5
"""How long to wait for a process after SIGKILL. A running one ends within milliseconds. Airflow sends SIGKILL five
seconds after its SIGTERM."""


def new_token() -> str:
    """A new token, below the token of this process if it has one."""
    own = secrets.token_hex(16)
    outer = os.environ.get(TOKEN_ENV)
    return f"{outer}/{own}" if outer else own


@contextmanager
def own_token() -> Iterator[str]:
    """Give children that are started meanwhile their own token; restores the token of this process afterwards."""
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
    """Pids of the living processes whose environment carries `token`, or one below it; [] without /proc."""
    wanted = f"{TOKEN_ENV}={token}".encode()
    below = wanted + b"/"
    return [pid for pid in _pids() if any(e == wanted or e.startswith(below) for e in _environment(pid))]


def end_processes(token: str, grace_s: float, spare: Iterable[int] = ()) -> list[int]:
    """SIGKILL the processes of a run that do not end by themselves in time, until none is left.

    A process that the kernel cannot end yet (state D, waiting for a disk or a network file system) is given up after
    `UNENDED_S`. It has received its signal by then and executes no further instruction of its program.

    Args:
        token: the run's token.
        grace_s: seconds; 0 kills at once.
        spare: pids that are not killed.

    Returns:
        Pids that are still there.
    """
    spared = set(spare)
    deadline = time.monotonic() + grace_s
    while left := [pid for pid in processes_of(token) if pid not in spared]:
        now = time.monotonic()
        if now >= deadline + UNENDED_S:
            return left
        if now >= deadline:
            for pid in left:
                _end(pid)
        time.sleep(POLL_S)
    return []


def _end(pid: int) -> None:
    # It may be gone since the scan. A process of another user is reported as not ended.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, signal.SIGKILL)


def still_running(pids: Iterable[int]) -> str:
    """A sentence about processes that `end_processes` could not end: pid, name and state of each."""
    named = ", ".join(f"{pid} ({_name_and_state(pid)})" for pid in pids)
    return (
        f"Processes of this run could not be ended: {named}. They were sent SIGKILL and can commit nothing; the kernel "
        "removes them when the disk or network file system that they wait for responds."
    )


def _name_and_state(pid: int) -> str:
    """Such as `java, state D`. Source: proc_pid_stat(5)."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(errors="replace")
    except OSError:
        return "gone by now"
    before, _, after = stat.rpartition(")")
    return f"{before.partition('(')[2]}, state {after.split()[0]}"


def _pids() -> list[int]:
    proc = Path("/proc")
    return [int(entry.name) for entry in proc.iterdir() if entry.name.isdigit()] if proc.is_dir() else []


def _environment(pid: int) -> list[bytes]:
    """Environment at the start of a process; [] for those of other users and for zombies."""
    try:
        return Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return []
