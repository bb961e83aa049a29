"""The checkpoints that a mirror has written, as its topic still holds them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.connectors.mirror.protocol.records import Checkpoint
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of

FARTHEST_HEADER = "airflow_connect.farthest"
"""Header of a checkpoint: the largest offset that its group was told before, as decimal digits. The topic is compacted,
so the checkpoint that has told it may be gone. MirrorMaker 2 does not read it."""


class CheckpointHistory:
    """The checkpoints of all groups."""

    def __init__(self, records: Iterable[KafkaRecord] = ()) -> None:
        """`records`: of the topic, in its order."""
        self._last: dict[tuple[str, TopicPartition], Checkpoint] = {}
        self._farthest: dict[tuple[str, TopicPartition], int] = {}
        self._groups: set[str] = set()
        for record in records:
            if record.value is not None:
                one = Checkpoint.of(record.key, record.value)
                place = (one.group, one.topic_partition)
                self._last[place] = one
                self._groups.add(one.group)
                told = dict(record.headers).get(FARTHEST_HEADER) or b""
                before = int(told) if told.isdigit() else 0
                self._farthest[place] = max(one.downstream, before, self._farthest.get(place, 0))

    @classmethod
    def read(cls, admin: Admin, settings: Mapping[str, Any], topic: str) -> CheckpointHistory:
        """Read the topic to its end; it may be missing.

        Args:
            settings: of a consumer of the cluster that has the topic.

        Raises:
            DataError: a record is not a checkpoint.
            ConnectError: Kafka refused, or did not answer.
        """
        return cls(committed_records(settings, ranges_of(admin, topic, "topic with checkpoints")))

    def last(self, group: str, tp: TopicPartition) -> Checkpoint | None:
        """The last checkpoint of a group; `tp`: a partition of the mirror's target cluster."""
        return self._last.get((group, tp))

    def farthest(self, group: str, tp: TopicPartition) -> int | None:
        """The largest offset that a group was told in the mirror's target cluster; 0: none in this partition.

        None: the mirror has written no checkpoint of this group.
        """
        return self._farthest.get((group, tp), 0) if group in self._groups else None
