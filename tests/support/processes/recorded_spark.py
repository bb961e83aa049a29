"""A Spark and a Java that write down how they were started before they start for real."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from airflow_connect.jvm.java import find_java
from airflow_connect.runtime.engine.gateway import spark_home
from tests.support.processes.proc import descendants_of

_PROGRAM = """#!/bin/sh
{{ printf '%s\\n' "$0" "$@"; env; }} > "$(mktemp '{records}/{name}.XXXXXX')"
exec '{program}' "$@"
"""


class RecordedSpark:
    """SPARK_HOME and JAVA_HOME whose programs write their arguments and environment into a folder.

    Attributes:
        before: processes below this one that were there before: servers of the session.
    """

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        """Make both and let the environment name them."""
        self.before = descendants_of(os.getpid())
        self._records = folder / "records"
        self._records.mkdir(parents=True)
        java, spark = find_java(), spark_home()
        self._link(folder / "java", java.home, "java")
        self._link(folder / "spark", spark, "spark-submit")
        patch.setenv("JAVA_HOME", str(folder / "java"))
        patch.setenv("SPARK_HOME", str(folder / "spark"))

    def started(self) -> list[str]:
        """Names of the programs that were started."""
        return sorted(path.name.partition(".")[0] for path in self._records.iterdir())

    def seen(self) -> str:
        """Arguments and environments of all of them."""
        return "\n".join(path.read_text() for path in self._records.iterdir())

    def _link(self, home: Path, original: Path, program: str) -> None:
        """A folder like `original` in which one program of `bin` is recorded."""
        (home / "bin").mkdir(parents=True)
        for entry in original.iterdir():
            if entry.name != "bin":
                (home / entry.name).symlink_to(entry)
        for entry in (original / "bin").iterdir():
            if entry.name != program:
                (home / "bin" / entry.name).symlink_to(entry)
        recorder = home / "bin" / program
        recorder.write_text(_PROGRAM.format(records=self._records, name=program, program=original / "bin" / program))
        os.chmod(recorder, 0o755)
