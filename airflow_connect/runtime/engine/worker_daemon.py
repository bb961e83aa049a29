"""The process that Spark's Python workers are forked from, which reads pyspark from where it is installed.

Spark puts `pyspark.zip` and a jar first on the path of Python workers. An archive keeps no bytecode, so that the daemon
and each worker would compile pyspark's sources: a second of CPU time of each process.

What every task imports is imported here, once: workers share its memory, and each needs 0.2 s of CPU time less. Nothing
is imported that starts a thread, which a fork would lose.

Spark starts it as `python -m MODULE pyspark.worker` (`spark.python.daemon.module`; pyspark/daemon.py in Spark 4).
"""

from __future__ import annotations

import gc
import importlib
import os
import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

MODULE = "airflow_connect.runtime.engine.worker_daemon"
_DAEMON = "pyspark.daemon"
IMPORTED = ("pyspark.worker", "airflow_connect.runtime.executor.task")


def main() -> None:
    """Be pyspark's daemon."""
    sys.path[:] = without_archives(sys.path, os.environ.get("SPARK_HOME", ""))
    for name in IMPORTED:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()  # each worker collects garbage after each task
    runpy.run_module(_DAEMON, run_name="__main__", alter_sys=True)


def without_archives(path: Sequence[str], spark_home: str) -> list[str]:
    """A path for imports without the archives of a Spark that is itself an installed `pyspark`, on the same path.

    They hold the same code as the installation. Archives of any other Spark stay first.
    """
    home = Path(spark_home)
    if home.name != "pyspark" or str(home.parent) not in path:
        return list(path)
    archives = (home / "python" / "lib", home / "jars")
    return [entry for entry in path if Path(entry).parent not in archives]


if __name__ == "__main__":
    main()
