"""The copy of a source's offsets in the file of a standalone worker, and whether a worker has continued from it.

The offsets topic is authoritative, and the file is a copy, until a worker writes the file. To detect this, a connector
has one more entry in the file, `["airflow_connect",{"connector":"<name>"}]` -> `{"copy":"<SHA-256 of the others>"}`; a
worker keeps it like all entries. If the other entries still match the digest, the topic is as recent as the file or
more recent; otherwise the file is. The file is replaced as a whole, so entries and digest always belong together.

Source: org.apache.kafka.connect.storage.FileOffsetBackingStore, which loads every entry and writes all of them back.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from airflow_connect.kafka.state.offsets import java_offsets_file
from airflow_connect.kafka.state.offsets.offsets_topic import SourceOffsets

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition


class OffsetsFile:
    """The entries of one connector in one file."""

    def __init__(self, path: str, connector: str) -> None:
        """`path`: `offset.storage.file.filename`; nothing is read yet."""
        self._path = path
        self._connector = connector
        self._digest_key = _json(["airflow_connect", {"connector": connector}])

    def changes(self, offsets: SourceOffsets) -> list[tuple[SourcePartition, SourceOffset | None]]:
        """Changes that turn `offsets` of the topic into those of the file; empty if the topic is authoritative.

        The value is None for a source partition that the worker has deleted. A file without our digest counts only if
        the connector has no offsets in the topic.

        Raises:
            ConfigError, UnavailableError: it is not an offsets file, or cannot be read.
        """
        entries = java_offsets_file.read(self._path)
        own = self._own(entries)
        digest = entries.get(self._digest_key)
        if len(offsets) if digest is None else digest == _digest(own):
            return []
        found = SourceOffsets(self._connector)
        for key, value in own.items():
            found.take(key, value)
        deleted = [partition for partition, _ in offsets.items() if found.get(partition) is None]
        return [*found.items(), *((partition, None) for partition in deleted)]

    def copy(self, offsets: SourceOffsets) -> None:
        """Write offsets of the topic to the file, along with those of other connectors.

        Raises:
            ConfigError, UnavailableError: it is not an offsets file, or cannot be written.
        """
        before = java_offsets_file.read(self._path)
        own = {key: value for key, value in offsets.records() if value is not None}
        replaced = self._own(before)
        others = {key: value for key, value in before.items() if key not in replaced}
        entries = {**others, **own, self._digest_key: _digest(own)}
        if entries != before:
            java_offsets_file.write(self._path, entries)

    def _own(self, entries: Mapping[bytes, bytes]) -> dict[bytes, bytes]:
        offsets = SourceOffsets(self._connector)
        return {key: value for key, value in entries.items() if key != self._digest_key and offsets.is_own(key)}


def _digest(entries: Mapping[bytes, bytes]) -> bytes:
    text = _json([[key.decode("latin-1"), value.decode("latin-1")] for key, value in sorted(entries.items())])
    return _json({"copy": hashlib.sha256(text).hexdigest()})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
