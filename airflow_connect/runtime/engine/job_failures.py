"""Why Spark's executors cannot run tasks at all: no Python, another one, or one without this package.

Spark reports it inside long texts of Java and Python; here it becomes an error with a code, which names the executor
and what to do. Other failures of jobs are `TaskFailedError`.
"""

from __future__ import annotations

import re

from airflow_connect import __version__
from airflow_connect.documentation import page_url
from airflow_connect.errors import ConfigError, ConnectError, MissingPackageError

PYTHON, ARCHIVES = "spark.pyspark.python", "spark.archives"
_OWN = "airflow_connect"
_PAGE = f"What executors need: {page_url('how-to/run-on-a-spark-cluster')}"

_HOST = re.compile(r"\(TID \d+\) \((\S+) executor [^)\s]+\)|\(executor on (\S+)\)")
_NO_PROGRAM = re.compile(r'Cannot run program "([^"]+)"')
_RAISED = re.compile(r"^[\w.]+(?:Error|Exception)\b.*$", re.MULTILINE)
_NO_MODULE = re.compile(r"ModuleNotFoundError: No module named '?([\w.]+)'?")
_NO_DAEMON = re.compile(r"Error from python worker:.*?No module named '?([\w.]+)'?", re.DOTALL)
_OTHER_MEMBER = re.compile(rf"(?:cannot import name '\w+' from|Can't get attribute '\w+' on <module) '({_OWN}[\w.]*)'")
_PYTHONS = re.compile(r"Python in worker has different version: \(?(.+?)\)? than that in driver: \(?([\d., ']+)\)?")
_PYARROW = re.compile(
    r"(PyArrow|Pandas) >= \S+ must be installed; however, (?:it was not found|your version is \S+?)\.?$", re.M
)


class ExecutorPythonError(ConfigError):
    """Executors have no Python that can run tasks: none at all, or one that the driver's Spark cannot use."""

    code = "spark.python"


class OtherVersionError(ConfigError):
    """Executors have another version of this package than the driver."""

    code = "spark.other_version"


def executor_problem(text: str) -> ConnectError | None:
    """What is wrong with the executors, if the text of a failed job says so; otherwise None."""
    found = _HOST.search(text)
    where = (found[1] or found[2]) if found is not None else ""
    if program := _NO_PROGRAM.search(text):
        return python_missing(program[1], where)
    if pythons := _PYTHONS.search(text):
        return python_differs(pythons[1], pythons[2], where)
    if member := _OTHER_MEMBER.search(text):
        return _unlike(f"its module {member[1]} differs", where)
    if packages := _PYARROW.search(text):
        return package_missing(packages[0].rstrip("."), where, is_sentence=True)
    # The last one: an exception that was raised while another one was handled is what ended the task.
    last = (_RAISED.findall(text) or [""])[-1]
    if module := _NO_MODULE.search(last) or _NO_DAEMON.search(text):
        if module[1].startswith(f"{_OWN}."):
            return _unlike(f"it has no module {module[1]}", where)
        return package_missing(module[1], where)
    return None


def python_missing(program: str, where: str) -> ExecutorPythonError:
    """The error for an interpreter that an executor does not have.

    Args:
        program: its path, as Spark has tried to run it.
        where: host of the executor, or "".
    """
    return ExecutorPythonError(
        f"{_executor(where)} has no Python at {program}.",
        code="spark.python_missing",
        config_path=PYTHON,
        suggestion=f"Set {PYTHON} (or PYSPARK_PYTHON) to a Python that every executor has, or send one with"
        f" {ARCHIVES}. Without either, executors are told the path of the driver's own Python. {_PAGE}",
    )


def python_differs(there: str, here: str, where: str) -> ExecutorPythonError:
    """The error for an executor with another minor version of Python than the driver.

    Args:
        there: its version.
        here: that of the driver.
        where: host of the executor, or "".
    """
    return ExecutorPythonError(
        f"{_executor(where)} has Python {_dotted(there)}, the driver {_dotted(here)}; Spark needs the same minor"
        " version.",
        code="spark.python_version",
        config_path=PYTHON,
        suggestion=f"Set {PYTHON} (or PYSPARK_PYTHON) to a Python of the driver's version, or send one with"
        f" {ARCHIVES}. {_PAGE}",
    )


def package_missing(package: str, where: str, *, is_sentence: bool = False) -> MissingPackageError:
    """The error for a Python package that an executor does not have.

    Args:
        package: the module; or, with `is_sentence`, what Spark says about it.
        where: host of the executor, or "".
        is_sentence: see `package`.
    """
    what = package if is_sentence else f"its Python has no module {package}"
    is_ours = is_sentence or package in (_OWN, "pyspark", "pyarrow")
    of_plugin = "" if is_ours else " and what your plugins import"
    return MissingPackageError(
        f"{_executor(where)} cannot run tasks: {what}.",
        code="spark.package_missing",
        config_path=ARCHIVES,
        suggestion=f"Install airflow-connect {__version__}{of_plugin} where executors run, or send an environment with"
        f" {ARCHIVES}. {_PAGE}",
    )


def other_version(driver: str, executor: str, where: str) -> OtherVersionError:
    """The error for an executor with another version of this package.

    Args:
        driver: the driver's version.
        executor: the executor's.
        where: its host, or "".
    """
    return OtherVersionError(
        f"{_executor(where)} has airflow-connect {executor}, the driver {driver}.",
        config_path=ARCHIVES,
        suggestion=f"Install {driver} where executors run, or send the driver's environment with {ARCHIVES}. {_PAGE}",
    )


def _unlike(what: str, where: str) -> OtherVersionError:
    return OtherVersionError(
        f"{_executor(where)} has another version of airflow-connect than the driver, {__version__}: {what}.",
        config_path=ARCHIVES,
        suggestion=f"Install {__version__} where executors run, or send the driver's environment with {ARCHIVES}."
        f" {_PAGE}",
    )


def _executor(where: str) -> str:
    return f"The executor on {where}" if where else "An executor"


def _dotted(version: str) -> str:
    return ".".join(re.findall(r"\d+", version)[:2]) or version
