"""Runs of an HDFS sink on the real broker and a real HDFS, and what its directory holds afterwards."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from typing import Any

from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files
from tests.support.copies.s3 import Sink

LARGE_PIECES = 2


@dataclass
class HdfsSink(Sink):
    """One HDFS sink connector of a test; its directory is `bucket`.

    What an S3 sink calls uploads are temporary files here.
    """

    hdfs: HdfsCluster | None = None

    @property
    def base(self) -> str:
        """URL of the directory that all keys are relative to."""
        assert self.hdfs is not None
        return f"{self.hdfs.url}/{self.bucket}"

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration as people write it for Confluent's sink; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "store.url": self.base,
            "format.class": "io.confluent.connect.hdfs.json.JsonFormat",
            "flush.size": "1000",
            **self.config,
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def keys(self) -> list[str]:
        """Names of all visible files, sorted."""
        return sorted(name for name in hdfs_files.all_files(self.base) if not _is_temporary(name))

    def body(self, key: str) -> bytes:
        """A file's bytes."""
        return hdfs_files.get(f"{self.base}/{key}")

    def uploads(self) -> list[str]:
        """Names of temporary files."""
        return sorted(name for name in hdfs_files.all_files(self.base) if _is_temporary(name))

    def identities(self) -> dict[str, tuple[str, str]]:
        """Size and time of last change of every visible file."""
        found = hdfs_files.listed(self.base)
        return {name: facts for name, facts in found.items() if not _is_temporary(name)}

    def settings_for_pieces(self, piece_bytes: int) -> dict[str, str]:
        """The sink has no key for it; see `tests.crash.run_in_process`."""
        return {}

    def most_pieces(self) -> int:
        """A file's blocks are not what it was written in; that pieces were sent is seen in the unit tests."""
        return LARGE_PIECES

    def remove_all(self) -> None:
        """Delete everything that the sink wrote."""
        hdfs, base = hdfs_files.split(self.base)
        hdfs.delete(base, True)


def hdfs_sink(kafka: Any, hdfs: HdfsCluster, topic: str, **config: str) -> HdfsSink:
    """A connector with a directory of its own."""
    name = f"sink-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return HdfsSink(kafka, None, name, name, topic, settings, hdfs=hdfs)  # type: ignore[arg-type]


def _is_temporary(name: str) -> bool:
    return "+tmp" in name.split("/")
