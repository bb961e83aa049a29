"""A real Apache Kafka Connect worker with MirrorMaker 2's connectors."""

from __future__ import annotations

from pathlib import Path

from tests.devstack.connect_worker import ConnectWorker
from tests.devstack.jars import fetch_jars

MIRROR_LOCK = "kafka-mirror-4.3.1"


class MirrorWorker(ConnectWorker):
    """A `ConnectWorker` that also has `MirrorSourceConnector` and its companions."""

    name = "Kafka Connect 4.3.1 with MirrorMaker 2"

    def _class_path(self) -> list[Path]:
        """Return the worker's jars and MirrorMaker 2's."""
        return [*super()._class_path(), *fetch_jars(MIRROR_LOCK)]
