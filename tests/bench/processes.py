"""CPU time and memory of process trees, from /proc."""

from __future__ import annotations

import os
import threading
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK")
SAMPLE_S = 0.25


def tree(root: int) -> list[int]:
    """`root` and all its living descendants."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            fields = _stat(int(entry.name))
            if fields:
                children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def cpu_seconds(root: int) -> float:
    """User and system time of the tree, children that ended included."""
    ticks = 0
    for pid in tree(root):
        fields = _stat(pid)
        if fields:
            ticks += sum(map(int, fields[11:15]))
    return ticks / _TICKS


def memory_bytes(root: int) -> int:
    """Memory of the tree: proportional set sizes, so that what processes share counts once."""
    total = 0
    for pid in tree(root):
        try:
            text = Path(f"/proc/{pid}/smaps_rollup").read_text()
        except OSError:  # it has just ended
            continue
        total += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total * 1024


def _stat(pid: int) -> list[str]:
    """Fields of /proc/<pid>/stat from the third on (state, ppid, ...); [] for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    except OSError:
        return []


def _ticks_of_each(root: int) -> dict[tuple[int, str], int]:
    """User and system time of each living process of the tree, without its children; by pid and time of its start."""
    every = ((pid, _stat(pid)) for pid in tree(root))
    return {(pid, fields[19]): sum(map(int, fields[11:13])) for pid, fields in every if fields}


class TreeSampler:
    """Looks at a tree again and again while it is entered.

    Attributes:
        peak_bytes: the highest memory seen.
        cpu_s: CPU time of every process ever seen in the tree: of one that ended between two looks what it had used
            at the first of them, unless its parent has counted it.
        used_s: CPU time of the tree while it was entered. A process that ends counts until the last look at it, even
            if no parent counts it: Spark ends idle Python workers that have used hours.
    """

    def __init__(self, root: int) -> None:
        self._root = root
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self.peak_bytes = 0
        self.cpu_s = 0.0
        self._first: dict[tuple[int, str], int] = {}
        self._last: dict[tuple[int, str], int] = {}

    @property
    def used_s(self) -> float:
        return sum(ticks - self._first.get(process, 0) for process, ticks in self._last.items()) / _TICKS

    def __enter__(self) -> TreeSampler:
        self._first = _ticks_of_each(self._root)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._last |= _ticks_of_each(self._root)

    def _sample(self) -> None:
        while True:
            self._last |= _ticks_of_each(self._root)
            self.peak_bytes = max(self.peak_bytes, memory_bytes(self._root))
            self.cpu_s = max(self.cpu_s, cpu_seconds(self._root))
            if self._over.wait(SAMPLE_S):
                return
