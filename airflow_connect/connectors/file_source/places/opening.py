"""Which place a name belongs to; one object per place, kept for as long as its user needs it."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urlsplit

from airflow_connect.api.errors import ConfigError
from airflow_connect.connectors.file_source.places import hdfs, local, s3
from airflow_connect.connectors.file_source.places.place import Place
from airflow_connect.stores.s3_settings import S3Settings


class Places:
    """Opens places when the first name of them comes."""

    def __init__(self, s3_settings: Callable[[str], S3Settings], hadoop_conf_dir: str = "") -> None:
        """Nothing is opened yet.

        Args:
            s3_settings: settings of a bucket by its name.
            hadoop_conf_dir: see `HdfsPlace`.
        """
        self._s3_settings, self._hadoop_conf_dir = s3_settings, hadoop_conf_dir
        self._open: dict[str, Place] = {}

    def of(self, name: str) -> Place:
        """The place of `name`.

        Raises:
            ConfigError: nothing reads such URLs.
        """
        root = root_of(name)
        place = self._open.get(root)
        if place is None:
            place = self._open[root] = self._opened(root)
        return place

    def close(self) -> None:
        """Close all of them."""
        for place in self._open.values():
            place.close()
        self._open.clear()

    def _opened(self, root: str) -> Place:
        if root.startswith(s3.SCHEME):
            return s3.S3Place(self._s3_settings(root.removeprefix(s3.SCHEME).rstrip("/")))
        if root.startswith(hdfs.SCHEME):
            return hdfs.HdfsPlace(root, self._hadoop_conf_dir)
        return local.LocalPlace()


def root_of(name: str) -> str:
    """`s3://bucket/`, `hdfs://host:port`, or "" for a path of this machine.

    Raises:
        ConfigError: another scheme, or no bucket.
    """
    scheme, separator, _ = name.partition("://")
    if not separator or "/" in scheme or name.startswith(local.SCHEME):
        return ""
    host = urlsplit(name).netloc
    if name.startswith(s3.SCHEME) and host:
        return f"{s3.SCHEME}{host}/"
    if name.startswith(hdfs.SCHEME):
        return f"{hdfs.SCHEME}{host}"
    raise ConfigError(
        f"{name} is no address of a file that can be read.",
        config_path="file",
        suggestion="Write a path, file:///path, s3://bucket/key, or hdfs://host:port/path.",
    )
