"""A real YARN: a ResourceManager and a NodeManager, each a process of its own, on loopback."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Self

from airflow_connect.devstack.launching.process import Command, ServerProcess, free_ports
from airflow_connect.devstack.launching.running import Running
from airflow_connect.jvm.java import find_java
from airflow_connect.runtime.engine.gateway import spark_home
from tests.devstack.hdfs import class_path
from tests.devstack.jars import fetch_jars
from tests.support.processes.environments import changing

HOST = "127.0.0.1"
LOCK = "yarn-3.5.0"
"""What YARN needs beside the jars of HDFS, which hold its servers."""
JVM = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData", "-Xmx256m")
_PACKAGE = "org.apache.hadoop.yarn.server"
RESOURCE_MANAGER = f"{_PACKAGE}.resourcemanager.ResourceManager"
NODE_MANAGER = f"{_PACKAGE}.nodemanager.NodeManager"
_PORTS = {
    "yarn.resourcemanager.address": 0,
    "yarn.resourcemanager.scheduler.address": 1,
    "yarn.resourcemanager.resource-tracker.address": 2,
    "yarn.resourcemanager.admin.address": 3,
    "yarn.resourcemanager.webapp.address": 4,
    "yarn.nodemanager.address": 5,
    "yarn.nodemanager.localizer.address": 6,
    "yarn.nodemanager.webapp.address": 7,
}
_PROPERTIES = {
    "yarn.resourcemanager.scheduler.class": f"{_PACKAGE}.resourcemanager.scheduler.fifo.FifoScheduler",
    "yarn.nodemanager.hostname": HOST,
    "yarn.nodemanager.resource.memory-mb": "4096",
    "yarn.nodemanager.resource.cpu-vcores": "4",
    "yarn.scheduler.minimum-allocation-mb": "128",
    # A machine that runs tests may be short of disk and memory without being broken.
    "yarn.nodemanager.disk-health-checker.enable": "false",
    "yarn.nodemanager.vmem-check-enabled": "false",
    "yarn.nodemanager.pmem-check-enabled": "false",
    "yarn.nm.liveness-monitor.expiry-interval-ms": "60000",
}


class YarnCluster(Running):
    """A running cluster of one node.

    Attributes:
        conf_dir: what `HADOOP_CONF_DIR` of a client names.
        folder: everything that the cluster writes; containers run below it.
    """

    def __init__(self, changes: Mapping[str, str | None] | None) -> None:
        """Choose ports; use `start`."""
        self.folder = Path(tempfile.mkdtemp(prefix="yarn-"))
        self.conf_dir = self.folder / "conf"
        self._changes = changes
        self._servers: list[ServerProcess] = []

    @classmethod
    def start(cls, changes: Mapping[str, str | None] | None = None) -> Self:
        """Start; the node is registered when this returns.

        Args:
            changes: to the environment of the NodeManager, and so of containers; None removes a variable.
        """
        cluster = cls(changes)
        try:
            cluster._configure(free_ports(len(_PORTS)))
            cluster._launch("resourcemanager", RESOURCE_MANAGER, None, lambda: cluster._nodes() == 0)
            cluster._launch("nodemanager", NODE_MANAGER, changes, lambda: cluster._nodes() == 1)
        except BaseException:
            cluster.stop()
            raise
        return cluster

    def settings(self) -> dict[str, str]:
        """What a worker configuration says to use this cluster with little memory and without sending Spark's jars."""
        return {
            "spark.master": "yarn",
            "spark.yarn.jars": f"local:{spark_home()}/jars/*",
            "spark.yarn.stagingDir": (self.folder / "staging").as_uri(),
            "spark.yarn.am.memory": "512m",
            "spark.driver.host": HOST,
            "spark.driver.bindAddress": HOST,
            "spark.executor.instances": "1",
            "spark.executor.memory": "512m",
        }

    def stop(self) -> None:
        """End both, the node first, and remove what they wrote."""
        while self._servers:
            self._servers.pop().stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _configure(self, ports: list[int]) -> None:
        self.conf_dir.mkdir()
        for name in ("cluster", "node", "proxy", "static"):  # Pages that are not in the jar, and that no test needs.
            (self.folder / "webapps" / name).mkdir(parents=True)
        own = {
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.folder / "logs"),
        }
        addresses = {name: f"{HOST}:{ports[number]}" for name, number in _PORTS.items()}
        self._web = addresses["yarn.resourcemanager.webapp.address"]
        (self.conf_dir / "yarn-site.xml").write_text(_site({**_PROPERTIES, **own, **addresses}))
        scratch = {"fs.defaultFS": "file:///", "hadoop.tmp.dir": str(self.folder / "tmp")}
        (self.conf_dir / "core-site.xml").write_text(_site(scratch))

    def _launch(
        self, name: str, main: str, changes: Mapping[str, str | None] | None, is_ready: Callable[[], bool]
    ) -> None:
        jars = [*map(str, class_path()), *map(str, fetch_jars(LOCK))]
        flags = [*JVM, "-Dorg.apache.logging.log4j.level=INFO", "--add-opens=java.base/java.lang=ALL-UNNAMED"]
        where = os.pathsep.join([str(self.conf_dir), str(self.folder), *jars])
        command = Command(
            name=name,
            argv=[*changing(changes), str(find_java().executable), *flags, "-cp", where, main],
            log_path=self.folder / f"{name}.log",
            cleanup=[self.folder],
            stop_s=20.0,
            env={"HADOOP_CONF_DIR": str(self.conf_dir)},
        )
        self._servers.append(ServerProcess.start(command, is_ready))

    def _nodes(self) -> int:
        """How many nodes the ResourceManager counts on; -1 if it does not answer yet."""
        try:
            with urllib.request.urlopen(f"http://{self._web}/ws/v1/cluster/metrics", timeout=10) as answer:
                return int(json.load(answer)["clusterMetrics"]["activeNodes"])
        except (OSError, ValueError):
            return -1


def _site(properties: Mapping[str, str]) -> str:
    rows = "".join(f"<property><name>{k}</name><value>{v}</value></property>" for k, v in properties.items())
    return f"<configuration>{rows}</configuration>"
