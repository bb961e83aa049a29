"""Sets the settings of topics again that were kept away while records were restored: a step that can be repeated."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from airflow_connect.api.offsets import TopicPartition, is_other_topic
from airflow_connect.connectors.restore.keys import RETENTION, RestoreKeys
from airflow_connect.connectors.restore.remembered import Remembered
from airflow_connect.connectors.restore.target import RETENTION_MS, TIMESTAMP_TYPE, deletes_before
from airflow_connect.counting import plural
from airflow_connect.errors import ConnectError, OffsetError
from airflow_connect.kafka.admin import watermarks
from airflow_connect.kafka.admin.topic_settings import change, settings_of
from airflow_connect.kafka.admin.topics import all_names, resolve_topics
from airflow_connect.kafka.clients.short_lived import Admin


@dataclass(slots=True)
class TopicSettings:
    """The settings of one topic.

    Attributes:
        topic: that records were restored to.
        settings: that it gets.
        before: what it has, of the same settings; {} if it could not be read.
        deleted_soon: records that Kafka deletes soon with the new settings.
        is_done: whether the topic has them.
        failure: why it did not get them.
    """

    topic: str
    settings: Mapping[str, str]
    before: Mapping[str, str] = field(default_factory=dict)
    deleted_soon: int = 0
    is_done: bool = False
    failure: ConnectError | None = None

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form."""
        return {
            "topic": self.topic,
            "settings": dict(self.settings),
            "before": dict(self.before),
            "deletedSoon": self.deleted_soon,
            "isDone": self.is_done,
            "failure": None if self.failure is None else self.failure.to_json(),
        }


@dataclass(frozen=True, slots=True)
class PutBack:
    """How settings are set.

    Attributes:
        admin: of the cluster of the restored topics.
        accepted: `accept.loss`.
        now_ms: milliseconds since the epoch.
        only_shows: change nothing.
    """

    admin: Admin
    accepted: tuple[str, ...]
    now_ms: int
    only_shows: bool = False

    def of(self, wanted: Iterable[Remembered]) -> list[TopicSettings]:
        """Set those of each topic; one that cannot get them does not stop the others.

        Raises:
            UnavailableError, AccessError: Kafka does not answer, or refuses to list topics.
        """
        there = set(all_names(self.admin))
        found = []
        for one in sorted(wanted):
            state = TopicSettings(one.topic, one.settings)
            try:
                self._set(one, state, exists=one.topic in there)
            except ConnectError as error:
                state.failure = error
            found.append(state)
        return found

    def _set(self, one: Remembered, state: TopicSettings, *, exists: bool) -> None:
        info = resolve_topics(self.admin, [one.topic], None)[one.topic] if exists else None
        if info is None or is_other_topic(one.topic_id, info.topic_id):
            what = "does not exist any more" if info is None else "was recreated"
            raise OffsetError(
                f"{one.topic} {what} since records were restored to it.",
                code="restore.other_topic",
                suggestion="Restore it again, with the connector's offsets deleted, or set its settings by hand.",
            )
        now = settings_of(self.admin, [one.topic])[one.topic]
        state.before = {name: now.get(name, "") for name in one.settings}
        if state.before == one.settings:
            state.is_done = True
            return
        then = {**now, **one.settings}
        # Restored records keep their timestamps, whatever type the topic's get now.
        cut = deletes_before({**then, TIMESTAMP_TYPE: "CreateTime"}, self.now_ms)
        tps = [TopicPartition(one.topic, number) for number in range(info.partitions)]
        state.deleted_soon = self._older(tps, cut) if cut > 0 else 0
        if state.deleted_soon and RETENTION not in self.accepted:
            raise OffsetError(
                f"{one.topic} would get {RETENTION_MS}={then[RETENTION_MS]}, and Kafka would delete"
                f" {plural(state.deleted_soon, 'restored record')} soon, because they are older (gaps between offsets"
                " count).",
                code="restore.retention",
                suggestion=f"Set {RestoreKeys.accepted}={RETENTION} if that is meant, or set the settings of the topic"
                " by hand.",
            )
        if not self.only_shows:
            change(self.admin, one.topic, one.settings)
            state.is_done = True

    def _older(self, tps: list[TopicPartition], cut_ms: int) -> int:
        """Offsets before the first record of each partition that is kept."""
        low = watermarks.earliest_offsets(self.admin, tps)
        end = watermarks.latest_offsets(self.admin, tps, watermarks.READ_UNCOMMITTED)
        first = watermarks.offsets_for_timestamp(self.admin, tps, cut_ms)
        kept = {tp: end[tp] if first[tp] is None else int(first[tp] or 0) for tp in tps}
        return sum(max(0, kept[tp] - low[tp]) for tp in tps)
