"""Facts about topics and groups, for connectors that keep them: see `airflow_connect.api.cluster_facts`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import Future
from functools import partial
from typing import Any

from confluent_kafka import ConsumerGroupTopicPartitions
from confluent_kafka import TopicPartition as _Partition

from airflow_connect.api.cluster_facts import GroupOffset, TopicFacts
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.kafka.admin import topics as topic_lists
from airflow_connect.kafka.admin.consumer_group import all_groups
from airflow_connect.kafka.admin.copied_settings import topic_settings
from airflow_connect.kafka.clients.asking import ask
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, Admin, admin_client, translate

GROUPS_AT_ONCE = 50
"""Requests that wait for their coordinators at the same time; each is one OffsetFetch of one group."""


class AskedCluster:
    """Implements `ClusterFacts`; the client is opened by the first question."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        """`settings`: of an admin client."""
        self._settings = settings
        self._admin: Admin | None = None

    @property
    def _client(self) -> Admin:
        if self._admin is None:
            self._admin = admin_client(self._settings)
        return self._admin

    @property
    def cluster_id(self) -> str:
        """Kafka's id of the cluster."""
        return str(self._client.cluster_id(API_TIMEOUT_S))

    def topics(self, names: Collection[str]) -> Mapping[str, TopicFacts]:
        """See `ClusterFacts`."""
        existing = sorted(set(names) & set(topic_lists.all_names(self._client)))
        described = topic_lists.described(self._client, existing)
        settings = topic_settings(self._client, existing)
        return {
            name: TopicFacts(
                topic_id=str(found.topic_id),
                partitions=len(found.partitions),
                replication_factor=len(found.partitions[0].replicas),
                settings={
                    one.name: one.value
                    for one in settings[name]
                    if one.is_copyable and not one.is_default and one.value is not None
                },
            )
            for name, found in described.items()
        }

    def group_offsets(self, topics: Collection[str]) -> Mapping[str, Mapping[TopicPartition, GroupOffset]]:
        """See `ClusterFacts`."""
        described = topic_lists.described(self._client, sorted(topics))
        wanted = [_Partition(name, number) for name, one in described.items() for number in range(len(one.partitions))]
        groups = all_groups(self._client) if wanted else []
        found = {}
        for start in range(0, len(groups), GROUPS_AT_ONCE):
            request = partial(_fetch, groups[start : start + GROUPS_AT_ONCE], wanted)
            for group, answer in ask(self._client, request, "reading the committed offsets of group").items():
                if committed := _committed(group, answer.topic_partitions or ()):
                    found[group] = committed
        return found


def _fetch(
    groups: Iterable[str], wanted: list[_Partition], client: Admin, timeout_s: float
) -> Mapping[str, Future[ConsumerGroupTopicPartitions]]:
    return {
        group: client.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(group, wanted)], request_timeout=timeout_s
        )[group]
        for group in groups
    }


def _committed(group: str, answer: Iterable[_Partition]) -> dict[TopicPartition, GroupOffset]:
    """The partitions that have an offset; raises what Kafka says about one that may not be read."""
    found = {}
    for tp in answer:
        if tp.error is not None:
            raise translate(tp.error, f"reading the committed offsets of group {group} for {tp.topic}-{tp.partition}")
        if tp.offset >= 0:
            found[TopicPartition(tp.topic, tp.partition)] = GroupOffset(tp.offset, tp.metadata or "")
    return found
