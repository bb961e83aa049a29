"""Which file system a name belongs to; one open object per file system."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from airflow_connect.errors import ConfigError
from airflow_connect.stores.file_system import FileSystem
from airflow_connect.stores.hdfs import file_system as hdfs
from airflow_connect.stores.local import file_system as local
from airflow_connect.stores.s3 import file_system as s3
from airflow_connect.stores.s3.settings import S3Settings


class FileSystems:
    """Opens each file system when it is first needed."""

    def __init__(self, s3_settings: Callable[[str], S3Settings], hadoop_conf_dir: str = "") -> None:
        """Nothing is opened yet.

        Args:
            s3_settings: settings of a bucket by its name.
            hadoop_conf_dir: see `HdfsFileSystem`.
        """
        self._s3_settings, self._hadoop_conf_dir = s3_settings, hadoop_conf_dir
        self._open: dict[str, FileSystem] = {}

    def of(self, name: str) -> FileSystem:
        """The file system of `name`.

        Raises:
            ConfigError: the URL is not supported.
        """
        root = root_of(name)
        file_system = self._open.get(root)
        if file_system is None:
            file_system = self._open[root] = self._opened(root)
        return file_system

    def close(self) -> None:
        """Close all of them."""
        for file_system in self._open.values():
            file_system.close()
        self._open.clear()

    def _opened(self, root: str) -> FileSystem:
        if root.startswith(s3.SCHEME):
            return s3.S3FileSystem(self._s3_settings(root.removeprefix(s3.SCHEME).rstrip("/")))
        if root.startswith(hdfs.SCHEME):
            return hdfs.HdfsFileSystem(root, self._hadoop_conf_dir)
        return local.LocalFileSystem()


def root_of(name: str) -> str:
    """`s3://bucket/`, `hdfs://host:port`, or "" for a local path.

    Raises:
        ConfigError: an unknown scheme, or a missing bucket.
    """
    scheme, separator, _ = name.partition("://")
    if name.startswith("file:") and (not name.startswith(local.SCHEME) or local.host_of(name)):
        raise ConfigError(
            f"{name} is not the URL of a file on this machine: three slashes come before its path.",
            config_path="file",
            suggestion="Write the path itself, or file:///path.",
        )
    if not separator or "/" in scheme or name.startswith(local.SCHEME):
        return ""
    host = urlsplit(name).netloc
    if name.startswith(s3.SCHEME) and host:
        return f"{s3.SCHEME}{host}/"
    if name.startswith(hdfs.SCHEME):
        return f"{hdfs.SCHEME}{host}"
    raise ConfigError(
        f"{name} is not the address of a file that can be read.",
        config_path="file",
        suggestion="Write a path, file:///path, s3://bucket/key, or hdfs://host:port/path.",
    )
