"""HDFS as a store: temporary files are staged, renaming them publishes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from airflow_connect.stores.hdfs.settings import JVM, HdfsSettings

if TYPE_CHECKING:
    from airflow_connect.api.sink_roles import StartJvm
    from airflow_connect.stores.hdfs.files import HdfsFiles
    from airflow_connect.stores.hdfs.publish import HdfsPublisher
    from airflow_connect.stores.hdfs.staging import HdfsStager


@dataclass(frozen=True, slots=True)
class HdfsStore:
    """A directory of an HDFS.

    Attributes:
        settings: address, login, sizes.
        start_jvm: if `settings.publisher` is `jvm`: see `RoleContext`; None on executors.
    """

    settings: HdfsSettings
    start_jvm: StartJvm | None = None

    @property
    def name(self) -> str:
        """The URL without a trailing slash: `hdfs://host:8020/base`."""
        return self.settings.url.rstrip("/")

    def stager(self, run_id: str) -> HdfsStager:
        """Stages temporary files; HDFS stores only a file's bytes, so `run_id` is not kept."""
        from airflow_connect.stores.hdfs.staging import HdfsStager

        return HdfsStager(self.settings)

    def publisher(self, *, probe_prefix: str, overwrite: bool) -> HdfsPublisher:
        """Renames them."""
        from airflow_connect.stores.hdfs.publish import HdfsPublisher

        files = self.driver_files()
        return HdfsPublisher(self.settings, probe_prefix=probe_prefix, overwrite=overwrite, files=files)

    def driver_files(self) -> HdfsFiles:
        """The driver's access to files: with hdfs-native, or Hadoop's own client; nothing is sent or started yet."""
        from airflow_connect.stores.hdfs.files import HdfsFiles

        if self.settings.publisher != JVM:
            return HdfsFiles(self.settings)
        from airflow_connect.stores.hdfs.jvm import JvmConnection

        return HdfsFiles(self.settings, connection=JvmConnection(self.settings, self.start_jvm))
