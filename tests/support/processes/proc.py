"""Processes as /proc shows them, and how they are frozen."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path

from tests.support.processes.drivers import is_alive
from tests.support.waiting import wait_until


def children_of(pid: int) -> set[int]:
    """Living children of a process, of all its threads."""
    lists = Path(f"/proc/{pid}/task").glob("*/children")
    return {int(child) for entry in lists for child in _read(entry).split() if is_alive(int(child))}


def descendants_of(pid: int) -> set[int]:
    """Children, their children, and so on."""
    found: set[int] = set()
    waiting = children_of(pid)
    while waiting:
        found |= waiting
        waiting = {child for parent in waiting for child in children_of(parent)} - found
    return found


def command_lines() -> Iterator[tuple[int, str]]:
    """Pid and command line of every process of this machine, as anybody can read it."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            yield int(entry.name), _read(entry / "cmdline").replace("\0", " ")


def environment_of(pid: int) -> str:
    """Environment of a process, or "" if it has ended."""
    return _read(Path(f"/proc/{pid}/environ"))


def descriptors_in(folder: Path) -> int:
    """Open descriptors of this process of files in a folder, deleted ones included.

    How many it has altogether says nothing: clients of other tests still open and close theirs.
    """
    return sum(_link(entry).startswith(f"{folder}/") for entry in Path("/proc/self/fd").iterdir())


def _link(descriptor: Path) -> str:
    """What a descriptor leads to, or "" if it has just been closed."""
    try:
        return os.readlink(descriptor)
    except FileNotFoundError:
        return ""


def freeze(pid: int) -> None:
    """Stop a process until SIGCONT; returns when each of its threads stands still, which SIGSTOP does not wait for."""
    os.kill(pid, signal.SIGSTOP)
    wait_until(lambda: _states(pid) <= {"T"}, f"every thread of {pid} stands still")


def _states(pid: int) -> set[str]:
    """States of all threads, as proc_pid_stat(5) names them."""
    stats = map(_read, Path(f"/proc/{pid}/task").glob("*/stat"))
    return {stat.rpartition(")")[2].split()[0] for stat in stats if stat}


def _read(path: Path) -> str:
    """Content, or "" of a process that has just ended."""
    try:
        return path.read_bytes().decode("utf-8", "replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
