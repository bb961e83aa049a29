"""Our own state: one compact topic, one partition per connector, read and written under transactions.

All records of a connector are in partition murmur2(connector) % partitions, so a run reads a single partition. Other
connectors share that partition. While another connector's transaction is open, the last stable offset does not move,
and hides what *this* connector has committed after it. Therefore `read` does not stop at the last stable offset but at
the high watermark, and waits for the other transaction (milliseconds; at most its transaction timeout, if its producer
crashed).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConfigError
from airflow_connect.kafka.admin.new_topics import partition_count
from airflow_connect.kafka.admin.watermarks import READ_UNCOMMITTED, earliest_offsets, latest_offsets
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.state import compacted_topics
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.kafka.state.murmur2 import partition_for
from airflow_connect.kafka.state.state_documents import decode_document, document_names, encode_document, parse_key
from airflow_connect.kafka.state.topic_upkeep import Upkeep


@dataclass(frozen=True, slots=True)
class RunsTopic:
    """The runs topic as it exists."""

    name: str
    partitions: int

    def partition_of(self, connector: str) -> int:
        """Partition that holds every record of a connector."""
        return partition_for(connector.encode(), self.partitions)

    def place_of(self, connector: str) -> TopicPartition:
        """That partition as a topic-partition."""
        return TopicPartition(self.name, self.partition_of(connector))


@dataclass(slots=True)
class ConnectorRecords:
    """Records of one connector, as far as they were read.

    Attributes:
        values: latest value by key.
        offsets: the offset of each of them.
        deleted: keys whose latest record is a tombstone.
        end: high watermark up to which the partition was read.
    """

    connector: str
    values: dict[str, bytes] = field(default_factory=dict)
    offsets: dict[str, int] = field(default_factory=dict)
    deleted: set[str] = field(default_factory=set)
    end: int = 0

    def take(self, key: bytes | None, value: bytes | None, offset: int) -> None:
        """Apply one record of the partition; those of other connectors are ignored."""
        text = (key or b"").decode("utf-8", "replace")
        parts = parse_key(text)
        if not parts or parts[1] != self.connector:
            return
        if value is None:
            self.values.pop(text, None)
            self.offsets.pop(text, None)
            self.deleted.add(text)
        else:
            self.values[text], self.offsets[text] = value, offset
            self.deleted.discard(text)


def ensure(
    admin: Admin, name: str, partitions: int, replication_factor: int, upkeep: Upkeep | None = None
) -> RunsTopic:
    """Find the runs topic, or create it; about 4 ms if it exists.

    Args:
        partitions: as configured. An existing topic must have exactly as many: a connector's records are
        found by the hash of its name modulo this number, so adding partitions would hide them.
        replication_factor: for a new topic; -1 uses the broker's default.
        upkeep: what keeps it small.

    Raises:
        ConfigError: cleanup.policy is not exactly `compact`, or the number of partitions is different.
        AccessError: it does not exist and may not be created.
    """
    wanted = CompactedTopic(name, partitions, replication_factor, "runs.storage.topic", upkeep or Upkeep())
    _refuse_other_number(name, compacted_topics.ensure(admin, wanted), partitions)
    return RunsTopic(name, partitions)


def check(admin: Admin, name: str, partitions: int) -> None:
    """As `ensure`, but creates and changes nothing, and a topic that does not exist is in order.

    Raises:
        ConfigError: as of `ensure`.
    """
    found = compacted_topics.check(admin, CompactedTopic(name, partitions, -1, "runs.storage.topic"))
    if found is not None:
        _refuse_other_number(name, found, partitions)


def _refuse_other_number(name: str, found: int, partitions: int) -> None:
    if found != partitions:
        raise ConfigError(
            f"The runs topic {name} has {found} partitions, but {partitions} are configured.",
            suggestion="A connector's state is found by the number of partitions: set it to the number with "
            "which the topic was created, and never add partitions to this topic.",
            config_path="runs.storage.partitions",
        )


def find(admin: Admin, name: str) -> RunsTopic | None:
    """The runs topic as it exists, or None; creates nothing."""
    partitions = partition_count(admin, name)
    return None if partitions is None else RunsTopic(name, partitions)


def extent(admin: Admin, place: TopicPartition) -> tuple[int, int]:
    """First offset and high watermark of a partition."""
    low = earliest_offsets(admin, [place])[place]
    return low, latest_offsets(admin, [place], READ_UNCOMMITTED)[place]


def read(admin: Admin, settings: Mapping[str, Any], topic: RunsTopic, connector: str) -> dict[str, bytes]:
    """Latest committed records of a connector, by key, from the beginning of the log. Call it after fencing.

    Raises:
        UnavailableError: a transaction of another connector stays open in the partition, or Kafka does not
        answer.
    """
    return read_from(admin, settings, topic, connector, 0).values


def read_from(
    admin: Admin, settings: Mapping[str, Any], topic: RunsTopic, connector: str, start: int
) -> ConnectorRecords:
    """Latest committed records of a connector at or after `start`; about 15 ms if they are few.

    Raises:
        UnavailableError: as `read`.
    """
    place = topic.place_of(connector)
    found = ConnectorRecords(connector, end=latest_offsets(admin, [place], READ_UNCOMMITTED)[place])
    compacted_topics.read_to(
        settings,
        {place: start},
        {place: found.end},
        lambda record: found.take(record.key(), record.value(), int(record.offset() or 0)),
    )
    return found


__all__ = ["RunsTopic", "decode_document", "document_names", "encode_document", "ensure", "read"]
