"""Forks processes from one that has everything imported, for tests that start many runs and kill them.

A run's process needs a second to import what it needs, and less for what it does. The server imports it once, starts no
thread, and forks for each request; the child has the request's arguments, environment, folder and streams, and leads a
session of its own. It is a process like any other: what kills it is a real SIGKILL.

usage: python -m tests.support.processes.fork_server DESCRIPTOR

DESCRIPTOR is a Unix socket. A request is one message: JSON with four descriptors, of the child's three streams and of a
socket that gets the child's pid and, when it has ended, its status, as lines. The server ends with the other end.
"""

from __future__ import annotations

import array
import contextlib
import gc
import importlib
import json
import os
import runpy
import select
import signal
import socket
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# pandas: pyarrow imports it for the first array that is made of Python's values, in a third of a second of CPU time.
PRELOADED = (
    "airflow_connect.connectors.file_stream.sink.publishing",
    "airflow_connect.connectors.file_stream.sink.connector",
    "airflow_connect.connectors.file_stream.sink.task",
    "airflow_connect.connectors.file_stream.source.connector",
    "airflow_connect.connectors.file_stream.source.task",
    "airflow_connect.connectors.files.hdfs.connector",
    "airflow_connect.connectors.files.hdfs.task",
    "airflow_connect.connectors.jdbc.sink.columns.loading",
    "airflow_connect.connectors.jdbc.sink.connector",
    "airflow_connect.connectors.jdbc.sink.task",
    "airflow_connect.connectors.jdbc.source.connector",
    "airflow_connect.connectors.jdbc.source.task",
    "airflow_connect.connectors.metrics.task",
    "airflow_connect.connectors.mirror.connector",
    "airflow_connect.connectors.mirror.task",
    "airflow_connect.connectors.java.chain",
    "airflow_connect.connectors.java.classes",
    "airflow_connect.connectors.java.sink",
    "airflow_connect.connectors.java.sink_task",
    "airflow_connect.connectors.java.source",
    "airflow_connect.connectors.files.s3.foreign_objects",
    "airflow_connect.connectors.files.s3.connector",
    "airflow_connect.connectors.files.s3.task",
    "airflow_connect.connectors.search.connector",
    "airflow_connect.connectors.search.task",
    "airflow_connect.connectors.files.shared.publishing.markers",
    "airflow_connect.connectors.files.shared.publishing.topic_names",
    "airflow_connect.connectors.files.shared.writing.opening",
    "airflow_connect.connectors.files.shared.writing.sink_task",
    "airflow_connect.control.metrics.serving",
    "airflow_connect.control.rest.app",
    "airflow_connect.control.rest.serving.servers",
    "airflow_connect.control.worker.worker",
    "airflow_connect.converters.avro.mapping",
    "airflow_connect.converters.json.columns",
    "airflow_connect.converters.json.documents",
    "airflow_connect.databases.dialects.lookup",
    "airflow_connect.formats.avro",
    "airflow_connect.formats.json_lines",
    "airflow_connect.formats.orc",
    "airflow_connect.formats.parquet",
    "airflow_connect.formats.raw_bytes",
    "airflow_connect.formats.string_lines",
    "airflow_connect.jvm.frames",
    "airflow_connect.jvm.host",
    "airflow_connect.kafka.reading.batch_fetch",
    "airflow_connect.kafka.reading.message_columns",
    "airflow_connect.runtime.driver.checks.offline",
    "airflow_connect.runtime.driver.progress",
    "airflow_connect.runtime.driver.sink.configuration",
    "airflow_connect.runtime.driver.sink.run",
    "airflow_connect.runtime.driver.source.run",
    "airflow_connect.runtime.driver.pages_progress",
    "airflow_connect.runtime.executor.sink.coalescing",
    "airflow_connect.runtime.executor.sink.column_path",
    "airflow_connect.runtime.executor.source.task",
    "airflow_connect.stores.hdfs.publish",
    "airflow_connect.stores.hdfs.staging",
    "airflow_connect.stores.s3.preflight",
    "airflow_connect.stores.s3.publish",
    "airflow_connect.stores.s3.staging",
    "airflow_connect.testing.runs",
    "confluent_kafka.admin",
    "elastic_transport",
    "fastavro",
    "hdfs_native",
    "numpy.ma",
    "pandas",
    "prometheus_client",
    "psycopg",
    "pyarrow.compute",
    "pyarrow.parquet",
    "pymysql",
    "regex",
    "sqlalchemy.dialects.mysql.pymysql",
    "sqlalchemy.dialects.postgresql.psycopg",
    "sqlalchemy.dialects.sqlite.pysqlite",
    "stringprep",
    "tests.support.copies.hdfs",
    "tests.support.copies.s3",
    "uvicorn",
    "uvicorn.protocols.http.h11_impl",
)
MAX_REQUEST_BYTES = 1 << 20
STREAMS = 3


@dataclass(frozen=True)
class Request:
    """What a child is to be.

    Attributes:
        module: run as `python -m` does.
        argv: its arguments.
        env: its whole environment.
        cwd: its folder.
        descriptors: its standard streams.
    """

    module: str
    argv: list[str]
    env: dict[str, str]
    cwd: str
    descriptors: list[int]


def main() -> None:
    """Serve; in a child: be what was asked for."""
    for name in PRELOADED:
        importlib.import_module(name)
    threads = len(os.listdir("/proc/self/task"))
    if threads != 1:
        raise RuntimeError(f"An imported module has started {threads - 1} threads, which a fork would lose.")
    gc.collect()
    gc.freeze()
    request = _serve(socket.socket(fileno=int(sys.argv[1])))
    if request is not None:
        _become(request)
        runpy.run_module(request.module, run_name="__main__", alter_sys=True)


def _serve(requests: socket.socket) -> Request | None:
    """Fork until the other end is closed. Returns None then, and in each child its request."""
    wake_up, wakes = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(wake_up, False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest, which ends this server
    children: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([requests, wake_up], [], [])
        if wake_up in ready:
            with contextlib.suppress(BlockingIOError):
                os.read(wake_up, 4096)
            _reap(children)
        if requests not in ready:
            continue
        message, descriptors = _receive(requests)
        if not message:
            return None
        *streams, told = descriptors
        pid = os.fork()
        if pid == 0:
            os.setsid()
            os.write(told, f"{os.getpid()}\n".encode())
            return Request(**json.loads(message), descriptors=streams)
        for descriptor in streams:
            os.close(descriptor)
        children[pid] = socket.socket(fileno=told)


def _receive(requests: socket.socket) -> tuple[bytes, list[int]]:
    message, descriptors, _, _ = socket.recv_fds(requests, MAX_REQUEST_BYTES, STREAMS + 1)
    return message, list(array.array("i", descriptors))


def _reap(children: dict[int, socket.socket]) -> None:
    with contextlib.suppress(ChildProcessError):
        while (ended := os.waitpid(-1, os.WNOHANG))[0]:
            pid, status = ended
            with children.pop(pid) as told, contextlib.suppress(BrokenPipeError):
                told.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


def _become(request: Request) -> None:
    """Look as if this process had just been started."""
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(request.descriptors):
        os.dup2(descriptor, number)
    os.closerange(STREAMS, os.sysconf("SC_OPEN_MAX"))
    sys.stdin = sys.__stdin__ = open(0, encoding="utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stdout = sys.__stdout__ = open(1, "w", encoding="utf-8", closefd=False)  # type: ignore[misc] # noqa: SIM115
    sys.stderr = sys.__stderr__ = open(2, "w", 1, encoding="utf-8", errors="backslashreplace", closefd=False)  # type: ignore[misc] # noqa: SIM115
    os.chdir(request.cwd)
    os.environ.clear()
    os.environ.update(request.env)
    time.tzset()
    path = [entry for entry in os.environ.get("PYTHONPATH", "").split(os.pathsep) if entry]
    sys.path[:] = [request.cwd, *path, *(entry for entry in sys.path if entry not in path)]
    importlib.invalidate_caches()
    sys.argv = [request.module, *request.argv]


def request_bytes(module: str, argv: list[str], env: dict[str, str], cwd: Path) -> bytes:
    """A request as the server reads it."""
    fields: dict[str, Any] = {"module": module, "argv": argv, "env": env, "cwd": str(cwd)}
    return json.dumps(fields).encode()


if __name__ == "__main__":
    main()
