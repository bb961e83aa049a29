"""Run as a program: many open directories in one task under a memory budget. Prints peaks and a digest as JSON.

A program of its own, because the peak of a process's memory never goes down again.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import sys
from concurrent.futures import Future
from pathlib import Path

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.api.record import SinkRecord
from airflow_connect.api.schema import INT64, STRING, struct
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.api.staging import StagedFile
from airflow_connect.connectors.files.s3.config import S3SinkConfig
from airflow_connect.connectors.files.shared.writing.opening import open_task_plan
from airflow_connect.formats.spill import SpillBuffer
from airflow_connect.stores.store import FileIdentity
from tests.support.copies.sink_tasks import StagedInMemory, open_runner_of

TEXT = "x" * 1000


class DiskFile:
    """A staged file as the S3 store keeps it: in memory until it is told to spill; a digest is all that is left."""

    def __init__(self, digests: dict[str, str], identity: FileIdentity) -> None:
        self._digests = digests
        self._identity = identity
        self._buffer = SpillBuffer()

    @property
    def buffered_bytes(self) -> int:
        return self._buffer.buffered_bytes

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._buffer.append(bytes(data))

    def spill(self) -> None:
        self._buffer.spill()

    def close(self, end: int, records: int) -> Future[StagedFile]:
        body = self._buffer.read_all()
        self._buffer.close()
        self._digests[self._identity.key] = hashlib.sha256(body).hexdigest()
        done: Future[StagedFile] = Future()
        identity = self._identity
        done.set_result(
            StagedFile(identity.key, identity.topic, identity.partition, identity.start, end, records, len(body))
        )
        return done

    def abort(self) -> None:
        self._buffer.close()


class DiskStager:
    """Digests of closed files by key."""

    def __init__(self) -> None:
        self.digests: dict[str, str] = {}

    def open(self, identity: FileIdentity) -> DiskFile:
        return DiskFile(self.digests, identity)

    def close(self) -> None:
        """Nothing to release."""


def peak_mb() -> int:
    """High-water mark of this program alone; getrusage's would begin with that of the process that started it."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) // 1024


def main(budget_mb: int, directories: int, records: int) -> None:
    raw = {
        "name": "s", "connector.class": "io.confluent.connect.s3.S3SinkConnector", "topics": "t",
        "s3.bucket.name": "b", "storage.class": "io.confluent.connect.s3.storage.S3Storage", "flush.size": "100000000",
        "format.class": "JsonFormat", "partitioner.class": "FieldPartitioner", "partition.field.name": "d",
    }  # fmt: skip
    config = S3SinkConfig.from_config(raw)
    context = RoleContext(raw)
    plan = open_task_plan(config, context)
    plan = dataclasses.replace(plan, memory_budget_bytes=budget_mb << 20)
    stager = DiskStager()
    task = open_runner_of(StagedInMemory(plan, stager), context, [OffsetRange("t", 0, 0, records)])
    schema = struct(("d", INT64), ("n", INT64), ("text", STRING))
    before = peak_mb()
    for n in range(records):
        value = {"d": n % directories, "n": n, "text": f"{n}{TEXT}"}
        task.put(SinkRecord(topic="t", partition=0, value_schema=schema, value=value, offset=n))
    during = peak_mb()
    report = task.report(TopicPartition("t", 0), records, end=None, reason="")
    digest = hashlib.sha256(json.dumps(sorted(stager.digests.items())).encode()).hexdigest()
    found = {"growth_mb": during - before, "files": len(stager.digests), "digest": digest, "written": report.written}
    sys.stdout.write(json.dumps(found))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
