"""Driver processes with a scripted run instead of the real one."""

from __future__ import annotations

import os
from pathlib import Path

FAKE_FOLDER = Path(__file__).with_name("fake_driver")
PROJECT = Path(__file__).parents[3]


def fake_driver_env() -> dict[str, str]:
    """Environment in which the driver does what the key `fake` of the connector configuration says."""
    return {"PYTHONPATH": os.pathsep.join([str(FAKE_FOLDER), str(PROJECT)])}


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
