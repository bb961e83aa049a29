"""Where an HDFS is, how to log in, and the sizes and limits for a run."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from airflow_connect.api.config.values import shortened
from airflow_connect.errors import ConfigError
from airflow_connect.stores.hdfs.request_timeouts import ANSWER_S, FIRST_ANSWER_S

SCHEMES = ("hdfs", "viewfs")
FIRST_RETRY_S = 10.0
"""Seconds that the first requests of a run are retried: a wrong address is reported before anything is copied."""
NATIVE, JVM = "native", "jvm"
"""`HdfsSettings.publisher`."""

CLIENT_PROPERTIES = {
    # hdfs-native's defaults, those of Hadoop, retry one call for minutes without reporting anything. A second is enough
    # to find the active NameNode of two; `retry_s` handles the rest, and more kinds of failures.
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.base.millis": "50",
    "dfs.client.failover.sleep.max.millis": "500",
}


@dataclass(frozen=True, slots=True)
class HdfsSettings:
    """An HDFS.

    Attributes:
        url: `hdfs://host:port`, or `hdfs://service` if `conf_dir` defines the name service; a path after it is the
            directory that all keys are relative to (`store.url`).
        conf_dir: folder with `core-site.xml` and `hdfs-site.xml`, the same on every machine (`hadoop.conf.dir`); ""
            uses HADOOP_CONF_DIR or HADOOP_HOME from the environment.
        principal: Kerberos principal, or "" (`connect.hdfs.principal`).
        keytab: file with its key (`connect.hdfs.keytab`); "" uses existing tickets.
        piece_bytes: an open file with more bytes than this is written while it grows.
        max_streams: how many files of a task may be written while they grow; the others wait on local disk.
        write_threads: how many files of a task are written and closed at once.
        write_buffer_bytes: bytes of memory for files that wait for these threads or are being written, including the
            client's own copies.
        publish_threads: how many files are renamed at once.
        publisher: which client publishes: hdfs-native, or Hadoop's own client in a JVM of the driver
            (`hdfs.publisher`).
        namenode_principal: Kerberos principal of the NameNode, or "" (`hdfs.namenode.principal`); only Java's client
            needs it.
        retry_s: seconds that one request is retried during a temporary failure: a NameNode restart, safe mode, a
            failover, no DataNode with free space.
        answer_s: seconds that HDFS may take for one answer, like `ipc.client.rpc-timeout.ms` of Java's client; after
            that there are no retries.
        first_answer_s: the same for the first request of a run, and for each NameNode of a name service when a process
            first checks which of them answer.
    """

    url: str
    conf_dir: str = ""
    principal: str = ""
    keytab: str = field(default="", repr=False)
    piece_bytes: int = 16 << 20
    max_streams: int = 32
    write_threads: int = 64
    write_buffer_bytes: int = 128 << 20
    publish_threads: int = 16
    publisher: str = NATIVE
    namenode_principal: str = ""
    retry_s: float = 120.0
    answer_s: float = ANSWER_S
    first_answer_s: float = FIRST_ANSWER_S

    def __post_init__(self) -> None:
        """Check the address.

        Raises:
            ConfigError: `store.url` is not the address of an HDFS.
        """
        parts = urlsplit(self.url)
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise ConfigError(
                f"store.url is {shortened(self.url)!r}, which is not the address of an HDFS.",
                code="hdfs.url",
                config_path="store.url",
                suggestion="Write hdfs://host:port, or hdfs://service and specify the folder that describes the"
                " service in"
                " hadoop.conf.dir.",
            )

    def check_conf_dir(self) -> None:
        """Reject a `hadoop.conf.dir` that does not exist on this machine.

        Raises:
            ConfigError: with the path.
        """
        if self.conf_dir and not os.path.isdir(self.conf_dir):
            raise ConfigError(
                f"hadoop.conf.dir is {self.conf_dir}, which is not a folder on this machine.",
                code="hdfs.conf_dir",
                config_path="hadoop.conf.dir",
                suggestion="It must exist on the machine of the driver and on every executor.",
            )

    @property
    def address(self) -> str:
        """The URL without its path: `hdfs://host:8020`."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def path(self, key: str) -> str:
        """The path of a key inside HDFS: `/base/topics/t/f.avro`."""
        base = urlsplit(self.url).path.strip("/")
        return f"/{base}/{key}" if base else f"/{key}"

    def key(self, path: str) -> str:
        """Inverse of `path`."""
        return path.removeprefix(self.path(""))


__all__ = ["CLIENT_PROPERTIES", "JVM", "NATIVE", "HdfsSettings"]
