"""A real HDFS: a NameNode and DataNodes, each a separate process, so that tests can stop one."""

from __future__ import annotations

import base64
import getpass
import hashlib
import http.client
import importlib.util
import json
import os
import subprocess
import tempfile
import time
import urllib.parse
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from airflow_connect.devstack.launching.errors import DevStackError
from airflow_connect.devstack.launching.java_server import JavaServer
from airflow_connect.devstack.launching.process import POLL_S, answers, log_tail
from airflow_connect.devstack.launching.running import Running
from airflow_connect.jvm.cache import locked
from airflow_connect.jvm.java import find_java
from tests.devstack.jars import LOCKS, fetch_jars

LOCK = "hdfs-3.5.0"
DEFAULT_HEAP_MB = 256
START_S = 120.0
ADMIN_S = 60.0
NAME_NODE = "org.apache.hadoop.hdfs.server.namenode.NameNode"
DATA_NODE = "org.apache.hadoop.hdfs.server.datanode.DataNode"
DFS_ADMIN = "org.apache.hadoop.hdfs.tools.DFSAdmin"
PYSPARK_JARS = (
    "hadoop-client-api-",
    "hadoop-client-runtime-",
    "jcl-over-slf4j-",
    "log4j-1.2-api-",
    "log4j-api-",
    "log4j-core-",
    "log4j-slf4j2-impl-",
    "slf4j-api-",
)
"""The jars of Hadoop and its logging that pyspark includes; the lock has the other jar."""

# What `hdfs namenode -format` of 3.5.0 writes. Writing it saves the start of another JVM. All names in it are
# fixed: only the ports distinguish clusters.
VERSION = """namespaceID=711825108
blockpoolID=BP-218877581-127.0.0.1-1795312575380
storageType=NAME_NODE
cTime=1795312575398
clusterID=CID-4a99ae2a-24a1-480a-894e-072be7645750
layoutVersion=-67
"""
IMAGE_NAME = "fsimage_0000000000000000000"
IMAGE = (
    "SERGU0lNRzEhCNStttMCEOgHGOgHIAAogICAgAQwAECAgICAgICAgIABHgoEIAEoAQoEIAIoAQoEIAMoAQoEIAQoAQoEIAUoAQYIgYAB"
    "EAEqCAIQgYABGgAqIAgAEP//////////fxj///////////8BIe0BAQAAAQAABAgAGAAICAAQABgAIAAGCAEQABgABAgCEAMMCIGAgIAC"
    "EgRyb290EgiBgICABBIKc3VwZXJncm91cNQBCAEQvf///w8iDQoHTlNfSU5GTxAiGAgiFAoORVJBU1VSRV9DT0RJTkcQHxgqIgsKBUlO"
    "T0RFEDIYSSIPCglJTk9ERV9ESVIQABh7Ih0KF0ZJTEVTX1VOREVSQ09OU1RSVUNUSU9OEAAYeyIOCghTTkFQU0hPVBAFGHsiFgoPSU5P"
    "REVfUkVGRVJFTkNFEAAYgAEiFQoOU0VDUkVUX01BTkFHRVIQCRiAASIUCg1DQUNIRV9NQU5BR0VSEAcYiQEiEwoMU1RSSU5HX1RBQkxF"
    "ECUYkAEAAADW"
)

PROPERTIES = {
    "dfs.replication": "1",
    # With small blocks, files of many blocks are fast to write.
    "dfs.namenode.fs-limits.min-block-size": "1024",
    # By default a lost DataNode is noticed after ten minutes; with these settings after twelve seconds.
    "dfs.heartbeat.interval": "1",
    "dfs.namenode.heartbeat.recheck-interval": "1000",
    "dfs.namenode.redundancy.interval.seconds": "1",
    # Safe mode ends as soon as the blocks are reported instead of half a minute later.
    "dfs.namenode.safemode.extension": "0",
    "dfs.namenode.handler.count": "10",
    "dfs.namenode.edekcacheloader.initial.delay.ms": "100000000",
    "dfs.namenode.audit.loggers": "org.apache.hadoop.hdfs.server.namenode.top.TopAuditLogger",
    # Its metrics are not there with this logger, and each look at the others would fill the log with that.
    "dfs.namenode.top.enabled": "false",
    "ipc.client.connect.retry.interval": "200",
    "ipc.client.connect.max.retries": "600",
}


class _HdfsServer(JavaServer):
    """What the two kinds of node share: class path, configuration, logging."""

    lock_name = LOCK
    locks = LOCKS
    main_class: str

    def __init__(self, data_dir: Path | None, properties: Mapping[str, str], heap_mb: int) -> None:
        super().__init__(data_dir, heap_mb)
        self._properties = dict(properties)

    def start(self) -> None:
        """Start on free ports; returns when the node listens."""
        self._start_on_free_ports()

    def reconfigure(self, **properties: str) -> None:
        """Change properties for the next `restart`; `_` means `.`."""
        self._properties.update({key.replace("_", "."): value for key, value in properties.items()})

    def _is_ready(self) -> bool:
        # A DataNode ends if another process has taken the last of its ports after it has bound the first.
        return all(map(answers, self.ports))

    def _class_path(self) -> list[Path]:
        return class_path()

    def _flags(self) -> list[str]:
        # The property gives each kind of node its own archive of class data.
        return [*super()._flags(), "-Dorg.apache.logging.log4j.level=INFO", f"-Dnode={self.main_class}"]

    def _addresses(self) -> Mapping[str, str]:
        raise NotImplementedError

    def _program(self) -> Sequence[str]:
        scratch = self.data_dir / "tmp"
        scratch.mkdir(exist_ok=True)
        merged = {**PROPERTIES, "hadoop.tmp.dir": str(scratch), **self._addresses(), **self._properties}
        settings = [part for key, value in merged.items() for part in ("-D", f"{key}={value}")]
        return [f"-Djava.io.tmpdir={scratch}", self.main_class, *settings]


class NameNode(_HdfsServer):
    """The node that manages names. `restart()` keeps address and files; safe mode lasts until DataNodes report."""

    name = "HDFS NameNode 3.5.0"
    main_class = NAME_NODE
    port_count = 2

    @property
    def url(self) -> str:
        """Return `hdfs://127.0.0.1:<port>`."""
        return f"hdfs://127.0.0.1:{self.ports[0]}"

    @property
    def web(self) -> str:
        """Return `127.0.0.1:<port>` of WebHDFS and of the metrics."""
        return f"127.0.0.1:{self.ports[1]}"

    def _addresses(self) -> Mapping[str, str]:
        names = self.data_dir / "names"
        _format(names)
        return {
            "fs.defaultFS": self.url,
            "dfs.namenode.rpc-address": self.url.removeprefix("hdfs://"),
            "dfs.namenode.http-address": self.web,
            "dfs.namenode.name.dir": names.as_uri(),
        }


class DataNode(_HdfsServer):
    """A node that holds blocks. `kill()` ends it, `restart()` starts it again with its blocks."""

    name = "HDFS DataNode 3.5.0"
    main_class = DATA_NODE
    port_count = 3

    def __init__(self, data_dir: Path | None, name_node: NameNode, properties: Mapping[str, str], heap_mb: int) -> None:
        super().__init__(data_dir, properties, heap_mb)
        self._name_node = name_node

    def _addresses(self) -> Mapping[str, str]:
        keys = ("dfs.datanode.address", "dfs.datanode.http.address", "dfs.datanode.ipc.address")
        return {
            "fs.defaultFS": self._name_node.url,
            "dfs.namenode.rpc-address": self._name_node.url.removeprefix("hdfs://"),
            "dfs.datanode.data.dir": (self.data_dir / "blocks").as_uri(),
            **{key: f"127.0.0.1:{port}" for key, port in zip(keys, self.ports, strict=True)},
        }


class HdfsCluster(Running):
    """A running cluster.

    Attributes:
        namenode: `.url`, `.pid`, `.kill()`, `.restart()`.
        datanodes: each with `.pid`, `.kill()`, `.restart()`.
    """

    def __init__(self, data_dir: Path | None, datanodes: int, properties: Mapping[str, str], heap_mb: int) -> None:
        """Prepare a cluster; use `start`."""
        self.namenode = NameNode(data_dir and data_dir / "namenode", properties, heap_mb)
        self.datanodes = [
            DataNode(data_dir and data_dir / f"datanode-{number}", self.namenode, properties, heap_mb)
            for number in range(datanodes)
        ]

    @classmethod
    def start(
        cls,
        data_dir: Path | None = None,
        datanodes: int = 1,
        properties: Mapping[str, str] | None = None,
        heap_mb: int = DEFAULT_HEAP_MB,
    ) -> Self:
        """Start a cluster on free ports and return when files can be written.

        Args:
            data_dir: where its data is kept; a temporary folder, removed by `stop()`, unless given.
            datanodes: how many.
            properties: of hdfs-site.xml, for all nodes; they take precedence over PROPERTIES.
            heap_mb: largest Java heap of each node in MiB.

        Raises:
            DevStackError: no Java, no jars, or a node did not come up (with the end of its log).
        """
        cluster = cls(data_dir, datanodes, properties or {}, heap_mb)
        try:
            cluster._start_nodes()
        except BaseException:
            cluster.stop()
            raise
        return cluster

    @property
    def url(self) -> str:
        """Return `hdfs://127.0.0.1:<port>`."""
        return self.namenode.url

    @property
    def pid(self) -> int:
        """Return the process id of the NameNode."""
        return self.namenode.pid

    @property
    def is_running(self) -> bool:
        """Return whether every node is alive."""
        return all(node.is_running for node in (self.namenode, *self.datanodes))

    def restart(self) -> None:
        """End all nodes and start them again with their ports and data; usable when this returns."""
        self._at_once([node.restart for node in (self.namenode, *self.datanodes)])
        self.wait_until_writable()

    def stop(self) -> None:
        """End all nodes; the data is removed too, unless the caller gave the folder."""
        self._at_once([node.stop for node in (*self.datanodes, self.namenode)])

    def discard(self) -> None:
        """End all nodes without an orderly shutdown; the data is removed too, unless the caller gave the folder."""
        self._at_once([node.discard for node in (*self.datanodes, self.namenode)])

    def metrics(self) -> Mapping[str, Any]:
        """Return the NameNode's own view: FSState, NumLiveDataNodes, CapacityTotal, FilesTotal, ...

        Raises:
            DevStackError: it does not answer.
        """
        reply = self._ask("GET", "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
        if not reply["beans"]:
            raise DevStackError("The NameNode is still starting.", code="devstack.stopped")
        return dict(reply["beans"][0])

    def wait_until_writable(self, live: int | None = None) -> None:
        """Return when the NameNode is out of safe mode and `live` DataNodes (all, unless given) have room.

        Raises:
            DevStackError: not within two minutes; with the end of each node's log.
        """
        wanted = len(self.datanodes) if live is None else live
        deadline = time.monotonic() + START_S
        while not self._is_writable(wanted):
            if time.monotonic() > deadline:
                raise DevStackError(
                    f"HDFS was not usable within {START_S:.0f} s. {self._state()}",
                    code="devstack.start",
                    suggestion="Start it again; if it fails the same way, the logs show the reason.",
                )
            time.sleep(POLL_S * 5)

    def _state(self) -> str:
        """Return what each node says of itself, with the end of its log."""
        try:
            found = self.metrics()
            told = f"{found['FSState']}, {found['NumLiveDataNodes']} live DataNodes, {found['CapacityTotal']} B"
        except (DevStackError, OSError) as error:
            told = str(error)
        nodes = (self.namenode, *self.datanodes)
        ends = [
            f"{node.name}, {'alive' if node.is_running else 'ended'}:\n{log_tail(node.log_path)}\n" for node in nodes
        ]
        return f"The NameNode says: {told}. The ends of the logs:\n" + "\n".join(ends)

    def wait_until_dead(self, count: int = 1) -> None:
        """Return when the NameNode has noticed that `count` DataNodes are gone.

        Raises:
            DevStackError: not within two minutes.
        """
        deadline = time.monotonic() + START_S
        while self.metrics()["NumDeadDataNodes"] < count:
            if time.monotonic() > deadline:
                raise DevStackError("The NameNode does not notice that a DataNode is gone.", code="devstack.start")
            time.sleep(POLL_S * 5)

    def admin(self, *arguments: str) -> str:
        """Run `hdfs dfsadmin` with arguments such as `-safemode enter`; returns what it printed (a JVM: seconds).

        Raises:
            DevStackError: it failed, with its output.
        """
        java, jars = find_java(), os.pathsep.join(map(str, class_path()))
        settings = ["-D", f"fs.defaultFS={self.url}"]
        argv = [str(java.executable), "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx128m", "-cp", jars]
        done = subprocess.run(
            [*argv, DFS_ADMIN, *settings, *arguments], check=False, capture_output=True, text=True, timeout=ADMIN_S
        )
        if done.returncode:
            raise DevStackError(
                f"dfsadmin {' '.join(arguments)} failed: {done.stdout}{done.stderr}", code="devstack.hdfs"
            )
        return done.stdout

    def set_quota(self, path: str, *, names: int | None = None, space_bytes: int | None = None) -> None:
        """Limit the number of names in a directory (itself included), or its bytes (open blocks count in full).

        -1 removes a limit.
        """
        wanted = {"namespacequota": names, "storagespacequota": space_bytes}
        limits = "".join(f"&{key}={value}" for key, value in wanted.items() if value is not None)
        self._web("PUT", path, f"op=SETQUOTA{limits}")

    def set_permission(self, path: str, octal: str) -> None:
        """`chmod`."""
        self._web("PUT", path, f"op=SETPERMISSION&permission={octal}")

    def set_owner(self, path: str, owner: str) -> None:
        """`chown`."""
        self._web("PUT", path, f"op=SETOWNER&owner={owner}")

    def _start_nodes(self) -> None:
        told = self.url
        self._at_once([self.namenode.start, *(node.start for node in self.datanodes)])
        if self.url != told:  # another process took its port at the last moment
            self._at_once([node.restart for node in self.datanodes])
        self.wait_until_writable()

    def _is_writable(self, live: int) -> bool:
        if not self.namenode.is_running:
            return False
        try:
            found = self.metrics()
        except (DevStackError, OSError):
            return False
        return (
            found["FSState"] == "Operational"
            and found["NumLiveDataNodes"] >= live
            and (found["CapacityTotal"] > 0 or not live)
        )

    def _web(self, method: str, path: str, query: str) -> None:
        user = urllib.parse.quote(getpass.getuser())  # the user who starts a NameNode is its superuser
        self._ask(method, f"/webhdfs/v1{urllib.parse.quote(path)}?user.name={user}&{query}")

    def _ask(self, method: str, target: str) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.namenode.ports[1], timeout=10)
        try:
            connection.request(method, target)
            reply = connection.getresponse()
            body = reply.read()
        finally:
            connection.close()
        if reply.status != http.HTTPStatus.OK:
            text = body.decode("utf-8", "replace")
            raise DevStackError(
                f"The NameNode answered {method} {target} with {reply.status}: {text}", code="devstack.hdfs"
            )
        return json.loads(body) if body else {}

    @staticmethod
    def _at_once(steps: Sequence[Callable[[], None]]) -> None:
        with ThreadPoolExecutor(len(steps)) as pool:
            for done in [pool.submit(step) for step in steps]:
                done.result()


def class_path() -> list[Path]:
    """Return the jars of Hadoop: pyspark's, the lock's, and a jar with only the web pages.

    Raises:
        DevStackError: pyspark is not installed, or the lock cannot be fetched.
    """
    (jar,) = fetch_jars(LOCK)
    spec = importlib.util.find_spec("pyspark")  # found, not imported
    folder = Path(spec.origin).parent / "jars" if spec and spec.origin else Path()
    found = [path for name in PYSPARK_JARS for path in folder.glob(f"{name}*.jar")]
    if len(found) < len(PYSPARK_JARS):
        raise DevStackError(
            "HDFS runs on the jars in the Python package pyspark, which is not installed.",
            code="devstack.hadoop",
            suggestion="Install airflow-connect[demo].",
        )
    return [_web_pages(jar), jar, *sorted(found)]


def _web_pages(jar: Path) -> Path:
    """Return a jar with only the web pages, created once.

    Jetty unpacks the jar in which it finds them: with the whole jar, every start takes 20 s longer.
    """
    pages = jar.parent.with_name(f"{jar.parent.name}-webapps.jar")
    if not pages.exists():
        with locked(pages.name):
            if not pages.exists():
                descriptor, draft = tempfile.mkstemp(dir=pages.parent, prefix=f".{pages.name}-")
                with (
                    zipfile.ZipFile(jar) as whole,
                    os.fdopen(descriptor, "wb") as out,
                    zipfile.ZipFile(out, "w") as part,
                ):
                    for entry in whole.infolist():
                        if entry.filename.startswith("webapps/"):
                            part.writestr(entry, whole.read(entry))
                os.rename(draft, pages)
    return pages


def _format(folder: Path) -> None:
    """Write the files of an empty NameNode, unless the folder already has them."""
    current = folder / "current"
    if (current / "VERSION").exists():
        return
    current.mkdir(parents=True, exist_ok=True)
    image = base64.b64decode(IMAGE)
    (current / IMAGE_NAME).write_bytes(image)
    (current / f"{IMAGE_NAME}.md5").write_text(f"{hashlib.md5(image).hexdigest()} *{IMAGE_NAME}\n")
    (current / "seen_txid").write_text("0\n")
    (current / "VERSION").write_text(VERSION)
