"""Spark servers for tests: a standalone cluster of two workers, and Spark Connect. On loopback, gone with the test."""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from airflow_connect.devstack.launching.process import Command, ServerProcess, answers, free_ports
from airflow_connect.jvm.java import find_java, java_home
from airflow_connect.runtime.engine.gateway import class_data, module_options, spark_home, spark_jars
from airflow_connect.runtime.engine.session import DRIVER_MEMORY
from tests.support.processes.drivers import PROJECT
from tests.support.processes.environments import changing

HOST = "127.0.0.1"
JVM = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
WORKERS = 2


def _start(
    name: str,
    program: Sequence[str],
    folder: Path,
    is_ready: Callable[[], bool],
    flags: Sequence[str] = ("-Xmx192m",),
    changes: Mapping[str, str | None] | None = None,
) -> ServerProcess:
    """Start a main class of Spark with its arguments; `changes`: to its environment, None removes a variable.

    Not by `spark-class`, which would start a JVM only to ask it for this command line, and could not use the archive of
    classes: that is valid for the driver's class path.
    """
    environment = {
        "SPARK_HOME": str(spark_home()),
        "SPARK_SCALA_VERSION": "2.13",  # which spark-class finds out
        "JAVA_HOME": java_home(),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(PROJECT),
    }
    java = [str(find_java().executable), *JVM.split(), *flags, *_shared_classes()]
    command = Command(
        name=name,
        argv=[*changing(changes), *java, "-cp", _class_path(), *program],
        log_path=folder / f"{name}.log",
        cleanup=[folder],
        stop_s=10.0,
        env=environment,
    )
    return ServerProcess.start(command, is_ready)


def _class_path() -> str:
    return os.pathsep.join(map(str, spark_jars()))


def _shared_classes() -> list[str]:
    """Flags with which a JVM uses the archive of the driver's classes, if there is one."""
    archive = class_data(DRIVER_MEMORY)
    return archive.flags() if archive.exists else []


class _SparkServers:
    """Servers in one temporary folder; all end together."""

    def __init__(self) -> None:
        """Nothing runs yet."""
        self.folder = Path(tempfile.mkdtemp(prefix="spark-servers-"))
        self.servers: list[ServerProcess] = []

    def stop(self) -> None:
        """End every server, the last one first."""
        while self.servers:
            self.servers.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        """Return the running servers."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them."""
        self.stop()


class StandaloneCluster(_SparkServers):
    """A master and two workers with one core each."""

    def __init__(self, *, has_hosts: bool = False, changes: Mapping[str, str | None] | None = None) -> None:
        """Choose ports.

        Args:
            has_hosts: each worker has an address of its own, as if it were on another machine.
            changes: to the environment of workers, and so of executors; None removes a variable.
        """
        super().__init__()
        self._has_hosts = has_hosts
        self._changes = changes
        self._port, self._web_port = free_ports(2)

    @property
    def master(self) -> str:
        """`spark://host:port`."""
        return f"spark://{HOST}:{self._port}"

    @classmethod
    def start(cls, *, has_hosts: bool = False, changes: Mapping[str, str | None] | None = None) -> Self:
        """Start; every worker is registered when this returns."""
        cluster = cls(has_hosts=has_hosts, changes=changes)
        try:
            cluster._start_master()
            for number in range(WORKERS):
                cluster.start_worker(number)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def settings(self) -> dict[str, str]:
        """What a worker configuration says to use this cluster with little memory."""
        return {
            "spark.master": self.master,
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            # In front of what Spark adds: the archive is valid for class paths that begin with the driver's.
            "spark.executor.extraClassPath": _class_path(),
            "spark.executor.extraJavaOptions": " ".join([JVM, *_shared_classes()]),
        }

    def start_worker(self, number: int) -> ServerProcess:
        """Start a worker; it is registered when this returns."""
        alive = self.alive_workers()
        folder = self.worker_folder(number)
        # Spark starts a speculative copy of a task on another host only.
        host = f"127.0.0.{number + 1}" if self._has_hosts else HOST
        argv = ["org.apache.spark.deploy.worker.Worker", "--host", host, "--webui-port", "0"]
        argv += ["--cores", "1", "--memory", "1g", "--work-dir", str(folder), self.master]
        worker = _start(
            f"worker-{number}", argv, self.folder, lambda: self.alive_workers() > alive, changes=self._changes
        )
        self.servers.append(worker)
        return worker

    def worker_folder(self, number: int) -> Path:
        """Folder in which the executors of a worker run."""
        return self.folder / f"worker-{number}"

    def alive_workers(self) -> int:
        """How many workers the master counts on."""
        with urllib.request.urlopen(f"http://{HOST}:{self._web_port}/json/", timeout=10) as answer:
            return int(json.load(answer)["aliveworkers"])

    def _start_master(self) -> None:
        argv = ["org.apache.spark.deploy.master.Master", "--host", HOST]
        argv += ["--port", str(self._port), "--webui-port", str(self._web_port)]
        self.servers.append(_start("master", argv, self.folder, self._is_master_up))

    def _is_master_up(self) -> bool:
        try:
            return answers(self._port) and self.alive_workers() == 0
        except (OSError, ValueError):  # the port comes first, the pages follow one by one
            return False


class ConnectServer(_SparkServers):
    """A Spark Connect server with a local session of two cores."""

    def __init__(self) -> None:
        """Choose a port."""
        super().__init__()
        (self._port,) = free_ports(1)

    @property
    def remote(self) -> str:
        """`sc://host:port`."""
        return f"sc://{HOST}:{self._port}"

    @property
    def log(self) -> str:
        """What the server has said."""
        return (self.folder / "connect.log").read_text()

    @classmethod
    def start(cls) -> Self:
        """Start; it answers when this returns."""
        server = cls()
        try:
            server.launch()
        except BaseException:
            server.stop()
            raise
        return server

    def launch(self) -> None:
        """Start the server on its port, for the first time or again."""
        settings = {
            "spark.connect.grpc.binding.address": HOST,
            "spark.connect.grpc.binding.port": self._port,
            "spark.driver.bindAddress": HOST,
            "spark.driver.host": HOST,
            "spark.ui.enabled": "false",
            "spark.local.dir": self.folder,
            "spark.sql.warehouse.dir": self.folder / "warehouse",
        }
        argv = ["org.apache.spark.deploy.SparkSubmit"]
        argv += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "--master", "local[2,4]"]
        for key, value in settings.items():
            argv += ["--conf", f"{key}={value}"]
        argv.append("spark-internal")  # as spark-submit says for classes of Spark itself
        flags = ["-Xmx512m", *module_options(spark_home())]
        self.servers.append(_start("connect", argv, self.folder, lambda: answers(self._port), flags))

    def kill(self) -> None:
        """End the server as a crash would."""
        self.servers.pop().kill()
