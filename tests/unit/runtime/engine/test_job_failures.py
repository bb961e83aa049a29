"""Errors of executors that cannot run tasks, from what Spark says: texts of Spark 4.2, shortened."""

from __future__ import annotations

import pytest

from airflow_connect import __version__
from airflow_connect.runtime.engine.job_failures import executor_problem, other_version

LOST = (
    "org.apache.spark.SparkException: Job aborted due to stage failure: Task 0 in stage 0.0 failed 4 times, most recent"
    " failure: Lost task 0.3 in stage 0.0 (TID 3) (10.0.0.7 executor 1): "
)
OTHER = f"The executor on node-7 has another version of airflow-connect than the driver, {__version__}: "
WORKER = "An exception was thrown from the Python worker:\nTraceback (most recent call last):\n  File x, line 3\n"


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        (
            LOST + 'java.io.IOException: Cannot run program "/opt/venv/bin/python": error=2, No such file or directory',
            "spark.python_missing",
            "The executor on 10.0.0.7 has no Python at /opt/venv/bin/python.",
        ),
        (
            WORKER
            + "pyspark.errors.exceptions.base.PySparkRuntimeError: [PYTHON_VERSION_MISMATCH] Python in worker has"
            " different version: 3.10 than that in driver: 3.12, PySpark cannot run with different minor versions.",
            "spark.python_version",
            "An executor has Python 3.10, the driver 3.12; Spark needs the same minor version.",
        ),
        (
            WORKER + "ModuleNotFoundError: No module named 'airflow_connect' (executor on node-7)",
            "spark.package_missing",
            "The executor on node-7 cannot run tasks: its Python has no module airflow_connect.",
        ),
        (
            WORKER + "ModuleNotFoundError: No module named 'pyarrow'",
            "spark.package_missing",
            "An executor cannot run tasks: its Python has no module pyarrow.",
        ),
        (
            LOST
            + "org.apache.spark.SparkException: \nError from python worker:\n  /opt/bin/python: Error while finding"
            " module specification for 'pyspark.daemon' (ModuleNotFoundError: No module named 'pyspark')\nPATH:",
            "spark.package_missing",
            "The executor on 10.0.0.7 cannot run tasks: its Python has no module pyspark.",
        ),
        (
            WORKER
            + "pyspark.errors.exceptions.base.PySparkImportError: [UNSUPPORTED_PACKAGE_VERSION] PyArrow >= 18.0.0"
            " must be installed; however, your version is 9.0.0.",
            "spark.package_missing",
            "An executor cannot run tasks: PyArrow >= 18.0.0 must be installed; however, your version is 9.0.0.",
        ),
        (
            WORKER + "ModuleNotFoundError: No module named 'airflow_connect.runtime.machines' (executor on node-7)",
            "spark.other_version",
            OTHER + "it has no module airflow_connect.runtime.machines.",
        ),
        (
            WORKER + "ImportError: cannot import name 'rows_of' from 'airflow_connect.runtime.engine.task_rows'"
            " (/opt/a.py) (executor on node-7)",
            "spark.other_version",
            OTHER + "its module airflow_connect.runtime.engine.task_rows differs.",
        ),
    ],
)
def test_problem_of_executors_has_a_code_and_names_the_executor(text, code, said):
    error = executor_problem(text)

    assert error is not None
    assert (error.code, error.message, error.retriable) == (code, said, False)
    assert "spark.archives" in error.suggestion
    assert error.config_path in ("spark.pyspark.python", "spark.archives")


@pytest.mark.parametrize(
    "text",
    [
        LOST + "ExecutorLostFailure (executor 1 exited caused by one of the running tasks) Reason: Remote RPC client",
        # An optional module that a library looked for before it failed for another reason.
        WORKER + "ModuleNotFoundError: No module named 'gssapi'\n\nDuring handling of the above exception, another"
        " exception occurred:\n\nTraceback (most recent call last):\nOSError: no route to host",
        "",
    ],
)
def test_other_failures_are_none_of_these(text):
    assert executor_problem(text) is None


def test_other_version_names_both():
    error = other_version("2.0.0", "1.9.0", "node-7")
    assert error.message == "The executor on node-7 has airflow-connect 1.9.0, the driver 2.0.0."
    assert error.code == "spark.other_version"
