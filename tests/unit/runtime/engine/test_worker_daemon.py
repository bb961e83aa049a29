"""The process that the Python workers of a local session are forked from."""

from __future__ import annotations

import subprocess
import sys

from airflow_connect.runtime.engine.worker_daemon import IMPORTED, without_archives

SITE = "/opt/venv/lib/python3.11/site-packages"
HOME = f"{SITE}/pyspark"
ARCHIVES = [f"{HOME}/python/lib/pyspark.zip", f"{HOME}/python/lib/py4j-0.10.9.9-src.zip", f"{HOME}/jars/spark-core.jar"]


def test_archives_of_the_installed_pyspark_leave_the_path() -> None:
    assert without_archives(["/work", *ARCHIVES, "/own.zip", SITE], HOME) == ["/work", "/own.zip", SITE]


def test_archives_of_another_spark_stay_first() -> None:
    path = ["/work", "/opt/spark/python/lib/pyspark.zip", "/opt/spark/jars/spark-core.jar", SITE]
    assert without_archives(path, "/opt/spark") == path
    assert without_archives(path, "") == path


def test_archives_of_a_pyspark_that_nothing_else_on_the_path_brings_stay() -> None:
    assert without_archives(["/work", *ARCHIVES], HOME) == ["/work", *ARCHIVES]


def test_its_imports_start_no_thread() -> None:
    program = "import importlib, os, sys; [importlib.import_module(name) for name in sys.argv[1:]]"
    count = "print(len(os.listdir('/proc/self/task')))"
    done = subprocess.run(
        [sys.executable, "-c", f"{program}; {count}", *IMPORTED], capture_output=True, text=True, check=True
    )
    assert done.stdout == "1\n"
