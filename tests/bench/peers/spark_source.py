"""Spark's own Kafka source, which writes the same topic as files of the same format into a local directory.

It is a batch query in a session that has copied before: it starts from the first offset, and remembers none. Each run
of it copies the whole topic again.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import uuid
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.jvm.java import java_home
from tests.bench.arrivals import check_files
from tests.bench.last_release import ROOT
from tests.bench.peers.watching import PeerRun
from tests.bench.processes import TreeSampler
from tests.bench.topics import Load
from tests.devstack.jars import fetch_jars

LOCK = "spark-kafka-4.2.0"
"""The jars of the source for the Spark of requirements.lock."""
_FAST_GZIP = "BEST_SPEED"  # Level 1; the default of Java and zlib is 6.
TEXT_FAST = ("text", {"compression": "gzip", "zlib.compress.level": _FAST_GZIP})
TEXT_DENSE = ("text", {"compression": "gzip"})
PARQUET = ("parquet", {"compression": "zstd"})
_LOG_CHARS = 3000
_ENDS_WITHIN_S = 60


class SparkSource:
    """A session in a process of its own. Driver memory is Spark's default, and so is all that is not named here."""

    def __init__(self, kafka: KafkaBroker, folder: Path, master: str) -> None:
        """Starts nothing; files go below `folder`."""
        self._kafka, self._folder, self._master = kafka, folder, master
        self._process: subprocess.Popen[str] | None = None
        self._log: IO[bytes] | None = None

    def __enter__(self) -> Self:
        """Start the process; its session starts with it."""
        jars = ",".join(map(str, fetch_jars(LOCK)))
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "JAVA_HOME": java_home()}
        command = [sys.executable, "-m", "tests.bench.peers.spark_program", self._master, jars]
        self._log = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment,
            cwd=ROOT,
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """End the process."""
        assert self._process is not None and self._process.stdin is not None and self._log is not None
        self._process.stdin.close()
        self._process.wait(_ENDS_WITHIN_S)
        self._log.close()

    def copy(self, load: Load, form: tuple[str, Mapping[str, str]]) -> PeerRun:
        """Copy the topic, and count the records of its files, which are removed.

        Raises:
            RuntimeError: the process has ended.
        """
        process = self._process
        assert process is not None and process.stdin is not None and process.stdout is not None
        folder = self._folder / f"spark-{uuid.uuid4().hex[:8]}"
        asked = {"bootstrap": self._kafka.bootstrap, "topic": load.topic, "folder": str(folder)}
        with TreeSampler(process.pid) as sampler:
            process.stdin.write(json.dumps({**asked, "format": form[0], "options": form[1]}) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        if not answer:
            raise RuntimeError(f"Spark's process ended without an answer. The end of its log:\n{self._log_tail()}")
        for file in [*folder.rglob("_SUCCESS"), *folder.rglob(".*.crc")]:  # They hold no records.
            file.unlink()
        arrived = check_files(folder, load.records)
        shutil.rmtree(folder)
        seconds = float(answer)
        return PeerRun(seconds, seconds, sampler.used_s, sampler.peak_bytes, arrived.size_bytes, arrived.problem)

    def _log_tail(self) -> str:
        assert self._log is not None
        self._log.seek(0)
        return self._log.read().decode("utf-8", "replace")[-_LOG_CHARS:]
