"""Runs of a local sink on the real broker, and what its directory holds afterwards."""

from __future__ import annotations

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.copies.s3 import Sink


@dataclass
class LocalSink(Sink):
    """One local sink connector of a test; its directory is `bucket`.

    What an S3 sink calls uploads are temporary files here.
    """

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": "LocalSinkConnector",
            "tasks.max": "2",
            "topics": self.topic,
            "store.url": f"file://{self.bucket}",
            "format.class": "JsonFormat",
            "flush.size": "1000",
            **self.config,
        }
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def keys(self) -> list[str]:
        """Names of all visible files, sorted."""
        return [name for name in self._names() if "+tmp" not in name.split("/")]

    def uploads(self) -> list[str]:
        """Names of temporary files."""
        return [name for name in self._names() if "+tmp" in name.split("/")]

    def body(self, key: str) -> bytes:
        """A file's bytes."""
        return (Path(self.bucket) / key).read_bytes()

    def _names(self) -> list[str]:
        root = Path(self.bucket)
        return sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())


def local_sink(kafka: Any, root: Path, topic: str, **config: str) -> LocalSink:
    """A connector that writes below `root`."""
    settings = {key.replace("_", "."): value for key, value in config.items()}
    return LocalSink(kafka, None, str(root), f"sink-{uuid.uuid4().hex[:8]}", topic, settings)  # type: ignore[arg-type]
