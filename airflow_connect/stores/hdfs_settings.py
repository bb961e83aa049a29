"""Where an HDFS is and how to log in; sizes and bounds of what a run does there."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from airflow_connect.api.config_values import shortened
from airflow_connect.api.errors import ConfigError
from airflow_connect.stores.hdfs_answers import ANSWER_S

SCHEMES = ("hdfs", "viewfs")
FIRST_RETRY_S = 10.0
"""Seconds that the first requests of a run are repeated: a wrong address is told before anything is copied."""
NATIVE, JVM = "native", "jvm"
"""`HdfsSettings.publisher`."""

CLIENT_PROPERTIES = {
    # hdfs-native's defaults, Hadoop's own, try one call for minutes before anybody hears of it. A second is enough to
    # find the active NameNode of two; patience is `retry_s`, which knows more kinds of trouble.
    "dfs.client.failover.max.attempts": "6",
    "dfs.client.failover.sleep.base.millis": "50",
    "dfs.client.failover.sleep.max.millis": "500",
}


@dataclass(frozen=True, slots=True)
class HdfsSettings:
    """An HDFS.

    Attributes:
        url: `hdfs://host:port`, or `hdfs://service` where `conf_dir` knows the name service; a path behind it is the
            directory that all keys are relative to (`store.url`).
        conf_dir: folder with `core-site.xml` and `hdfs-site.xml`, the same on every machine (`hadoop.conf.dir`); ""
            takes the environment's HADOOP_CONF_DIR or HADOOP_HOME.
        principal: Kerberos principal, or "" (`connect.hdfs.principal`).
        keytab: file with its key (`connect.hdfs.keytab`); "" uses the tickets that are there.
        piece_bytes: a file that holds more than this and is not closed yet begins to be written.
        max_streams: how many files of a task may be written while they still grow; the others wait on local disk.
        write_threads: how many files of a task are written and closed at once.
        write_buffer_bytes: bytes of memory that files may take which wait for these threads or are being written, the
            client's own copies included.
        publish_threads: how many files are renamed at once.
        publisher: who publishes: hdfs-native, or Hadoop's own client in a JVM of the driver (`hdfs.publisher`).
        namenode_principal: Kerberos principal of the NameNode, or "" (`hdfs.namenode.principal`); only Java's client
            asks for it.
        retry_s: seconds that one request is repeated while HDFS cannot do it: a NameNode restarts, safe mode, a
            failover, no DataNode with room.
        answer_s: seconds that HDFS may take for one answer, as `ipc.client.rpc-timeout.ms` of Java's client; then
            nothing is asked again.
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

    def __post_init__(self) -> None:
        """Check the address.

        Raises:
            ConfigError: `store.url` is none of an HDFS.
        """
        parts = urlsplit(self.url)
        if parts.scheme not in SCHEMES or not parts.netloc:
            raise ConfigError(
                f"store.url is {shortened(self.url)!r}, which is no address of an HDFS.",
                code="hdfs.url",
                config_path="store.url",
                suggestion="Write hdfs://host:port, or hdfs://service and name the folder that describes the service in"
                " hadoop.conf.dir.",
            )

    def check_conf_dir(self) -> None:
        """Refuse a `hadoop.conf.dir` that is not on this machine.

        Raises:
            ConfigError: with the path.
        """
        if self.conf_dir and not os.path.isdir(self.conf_dir):
            raise ConfigError(
                f"hadoop.conf.dir is {self.conf_dir}, which is no folder on this machine.",
                code="hdfs.conf_dir",
                config_path="hadoop.conf.dir",
                suggestion="It must be there on the machine of the driver and on every executor.",
            )

    @property
    def address(self) -> str:
        """The URL without its path: `hdfs://host:8020`."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}"

    def path(self, key: str) -> str:
        """The path inside HDFS of a key: `/base/topics/t/f.avro`."""
        base = urlsplit(self.url).path.strip("/")
        return f"/{base}/{key}" if base else f"/{key}"

    def key(self, path: str) -> str:
        """Inverse of `path`."""
        return path.removeprefix(self.path(""))


__all__ = ["CLIENT_PROPERTIES", "JVM", "NATIVE", "HdfsSettings"]
