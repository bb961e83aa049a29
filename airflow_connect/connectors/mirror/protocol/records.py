"""Records of MirrorMaker 2's own topics.

Source: org.apache.kafka.connect.mirror.{OffsetSync,Checkpoint,Heartbeat}: fields of Kafka's protocol one after the
other, big-endian; a STRING is its length as INT16 and UTF-8. Compared with records of the real MirrorMaker 2 4.3.1.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import DataError

VERSION = 0
"""Of the values of checkpoints and heartbeats."""


class OffsetSync(NamedTuple):
    """A record of the source cluster and its copy.

    Attributes:
        topic_partition: of the source cluster.
        upstream: offset of the record.
        downstream: offset of its copy.
    """

    topic_partition: TopicPartition
    upstream: int
    downstream: int

    def key(self) -> bytes:
        """Key of the record."""
        return _string(self.topic_partition.topic) + struct.pack(">i", self.topic_partition.partition)

    def value(self) -> bytes:
        """Value of the record."""
        return struct.pack(">qq", self.upstream, self.downstream)

    @classmethod
    def of(cls, key: bytes | None, value: bytes | None) -> OffsetSync:
        """Read a record.

        Raises:
            DataError: it is not an offset sync.
        """
        try:
            topic, rest = _taken(key or b"")
            (partition,) = struct.unpack_from(">i", rest)
            return cls(TopicPartition(topic, partition), *struct.unpack_from(">qq", value or b""))
        except (struct.error, UnicodeDecodeError) as error:
            raise _unreadable("an offset sync", key) from error


class Checkpoint(NamedTuple):
    """A translated offset of a consumer group.

    Attributes:
        topic_partition: of the target cluster.
        upstream: the next offset of the group in the source cluster.
        downstream: the same in the target cluster.
        metadata: what the group has stored with its offset.
    """

    group: str
    topic_partition: TopicPartition
    upstream: int
    downstream: int
    metadata: str

    def key(self) -> bytes:
        """Key of the record."""
        tp = self.topic_partition
        return _string(self.group) + _string(tp.topic) + struct.pack(">i", tp.partition)

    def value(self) -> bytes:
        """Value of the record."""
        return struct.pack(">hqq", VERSION, self.upstream, self.downstream) + _string(self.metadata)

    @classmethod
    def of(cls, key: bytes | None, value: bytes | None) -> Checkpoint:
        """Read a record.

        Raises:
            DataError: it is not a checkpoint.
        """
        try:
            group, rest = _taken(key or b"")
            topic, rest = _taken(rest)
            (partition,) = struct.unpack_from(">i", rest)
            _, upstream, downstream = struct.unpack_from(">hqq", value or b"")
            metadata, _ = _taken((value or b"")[18:])
        except (struct.error, UnicodeDecodeError) as error:
            raise _unreadable("a checkpoint", key) from error
        return cls(group, TopicPartition(topic, partition), upstream, downstream, metadata)


class Heartbeat(NamedTuple):
    """A sign of life of a mirror from `source` to `target`, at `timestamp` (milliseconds since the epoch)."""

    source: str
    target: str
    timestamp: int

    def key(self) -> bytes:
        """Key of the record."""
        return _string(self.source) + _string(self.target)

    def value(self) -> bytes:
        """Value of the record."""
        return struct.pack(">hq", VERSION, self.timestamp)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack(">h", len(data)) + data


def _taken(data: bytes) -> tuple[str, bytes]:
    """The string at the beginning, and the rest."""
    (length,) = struct.unpack_from(">h", data)
    end = 2 + length
    if length < 0 or len(data) < end:
        raise struct.error("the string is longer than the data")
    return data[2:end].decode(), data[end:]


def _unreadable(what: str, key: bytes | None) -> DataError:
    return DataError(
        f"A record is not {what} of MirrorMaker 2; its key is {key!r}.",
        suggestion="Something else writes to MirrorMaker 2's internal topic. Delete the record or the topic.",
    )
