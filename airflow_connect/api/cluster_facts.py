"""What a connector may ask about the Kafka cluster of its run: settings of topics, and offsets of consumer groups."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from airflow_connect.api.offsets import TopicPartition


@dataclass(frozen=True, slots=True)
class TopicFacts:
    """What is needed to create a topic again.

    Attributes:
        topic_id: Kafka's id.
        partitions: how many.
        replication_factor: replicas of its first partition.
        settings: those that are not a default of Kafka: set for the topic, or for the brokers by a request. Without
            secrets, and without those of a broker's own file.
    """

    topic_id: str
    partitions: int
    replication_factor: int
    settings: Mapping[str, str] = field(default_factory=dict)


class TopicChange(NamedTuple):
    """A topic that is not what it was at the last commit of the connector.

    Attributes:
        topic: in Kafka.
        partitions_before, partitions: how many it had, and has.
        is_recreated: whether it was deleted and created again.
    """

    topic: str
    partitions_before: int
    partitions: int
    is_recreated: bool


class GroupOffset(NamedTuple):
    """What a consumer group has committed for a partition: the next offset, and the text that it stored with it."""

    offset: int
    metadata: str


class ClusterFacts(Protocol):
    """Asks Kafka; nothing is kept between two calls. Each method raises `ConnectError` if Kafka refuses or is away."""

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""

    def topics(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        """Facts about topics; those that do not exist are left out."""

    def group_offsets(self, topics: Collection[str]) -> Mapping[str, Mapping[TopicPartition, GroupOffset]]:
        """For each consumer group that has committed an offset in one of the topics: its offsets there.

        Groups that the principal may not see are left out: Kafka does not list them. Offsets of open transactions do
        not count.
        """
