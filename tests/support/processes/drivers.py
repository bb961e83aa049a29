"""Driver processes with a scripted run instead of the real one, and with the real one but without Spark."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.processes.without_spark import engine_choice

FAKE_FOLDER = Path(__file__).with_name("fake_driver")
WITHOUT_SPARK_FOLDER = Path(engine_choice.__file__).parent
PROJECT = Path(__file__).parents[3]


def fake_driver_env() -> dict[str, str]:
    """Environment in which the driver does what the key `fake` of the connector configuration says."""
    return {"PYTHONPATH": os.pathsep.join([str(FAKE_FOLDER), str(PROJECT)])}


def without_spark_env() -> dict[str, str]:
    """Environment in which a driver has the tasks of its run in its own process."""
    return {"PYTHONPATH": os.pathsep.join([str(WITHOUT_SPARK_FOLDER), str(PROJECT)]), engine_choice.VARIABLE: "1"}


def is_alive(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] not in "ZX"
