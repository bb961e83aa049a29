"""The control topic of Apache's Iceberg sink: what its tasks have written, and what its coordinator has committed.

Tasks write files, and announce them in the control topic in the transaction that commits their offsets. The
coordinator, which runs in one of the tasks, reads the topic as the group `<group>-coord`, commits files to tables, and
then its own position. So files are final once that position is behind their announcement.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from airflow_connect.api.offsets import OffsetRange, TopicPartition
from airflow_connect.connectors.java.iceberg_events import (
    COMMIT_COMPLETE,
    COMMIT_TO_TABLE,
    DATA_COMPLETE,
    DATA_WRITTEN,
    ControlEvent,
    Table,
    control_event,
)
from airflow_connect.kafka.admin import consumer_group, new_topics
from airflow_connect.kafka.clients.short_lived import Admin, admin_client
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of


@dataclass(frozen=True, slots=True)
class Placed:
    """An event of the connector, and where it is."""

    partition: int
    offset: int
    timestamp: int
    event: ControlEvent

    def follows(self, other: Placed) -> bool:
        """Whether it was written after another one. Only between partitions, clocks of several machines decide."""
        if self.partition == other.partition:
            return self.offset > other.offset
        return self.timestamp >= other.timestamp


@dataclass
class ControlTopic:
    """The control topic, as one connector sees it.

    Attributes:
        client: librdkafka settings of a consumer.
        name: the topic.
        group: the consumer group of the connector.
    """

    client: Mapping[str, Any] = field(repr=False)
    name: str
    group: str

    @cached_property
    def admin(self) -> Admin:
        """An admin client."""
        return admin_client(self.client)

    @property
    def coordinator(self) -> str:
        """The consumer group of the plugin's coordinator."""
        return f"{self.group}-coord"

    def ranges(self) -> dict[int, OffsetRange]:
        """What the topic holds, by partition; {}: it does not exist."""
        return {r.partition: r for r in ranges_of(self.admin, self.name, "control topic")}

    def topic_id(self) -> str:
        """Kafka's id of the topic."""
        return new_topics.topic_id(self.admin, self.name)

    def create(self) -> None:
        """Create the topic, with one partition and the broker's replication factor."""
        new_topics.create(self.admin, self.name, 1, -1, config_path="iceberg.control.topic")

    def committed(self) -> dict[int, int]:
        """The coordinator's position in each partition that has one."""
        tps = [TopicPartition(self.name, number) for number in self.ranges()]
        found = consumer_group.read_committed_offsets(self.admin, self.coordinator, tps)
        return {tp.partition: offset for tp, offset in found.items()}

    def commit(self, positions: Mapping[int, int]) -> None:
        """Set the coordinator's position.

        Raises:
            NotStoppedError: a coordinator is running, or was killed a moment ago.
        """
        offsets = {TopicPartition(self.name, number): offset for number, offset in positions.items()}
        consumer_group.alter_offsets(self.admin, self.coordinator, offsets)

    def events(self, starts: Mapping[int, int]) -> Iterator[Placed]:
        """Events of this connector from `starts` on; where a partition has none, from its beginning."""
        ranges = [
            OffsetRange(r.topic, r.partition, max(r.start, starts.get(r.partition, r.start)), r.end)
            for r in self.ranges().values()
        ]
        filled = [r for r in ranges if r.start < r.end]
        for record in committed_records(self.client, filled) if filled else ():
            event = control_event(record.value or b"")
            if event.group == self.group:
                yield Placed(record.partition, record.offset, record.timestamp or 0, event)

    def close(self) -> None:
        """Close the client; the next use makes another one."""
        admin = self.__dict__.pop("admin", None)
        if admin is not None:
            admin.close()


class TaskOfControlTopic:
    """Whether the coordinator has committed what one task has written; see `Written`."""

    def __init__(self, control: ControlTopic, state: Mapping[str, Any]) -> None:
        """`state`: what the driver has found at the plan (`ControlRun.for_tasks`)."""
        self._control = control
        self._next = {int(number): offset for number, offset in state["starts"].items()}
        self._earlier = {int(number): offset for number, offset in state["open"].items()}
        self._announced: dict[TopicPartition, tuple[int, int, int]] = {}
        """For each partition: the offset that it is complete up to, and where that was announced."""

    def is_done(self, last: Mapping[TopicPartition, int]) -> bool:
        """Whether everything up to `last`, and what an earlier run has left, is committed."""
        for placed in self._control.events(self._next):
            self._next[placed.partition] = placed.offset + 1
            if placed.event.kind == DATA_COMPLETE:
                self._learn(placed, last)
        needed = dict(self._earlier)
        for tp, offset in last.items():
            end, partition, at = self._announced.get(tp, (-1, 0, 0))
            if end <= offset:
                return False
            needed[partition] = max(at + 1, needed.get(partition, 0))
        committed = self._control.committed() if needed else {}
        return all(committed.get(partition, -1) >= position for partition, position in needed.items())

    def _learn(self, placed: Placed, last: Mapping[TopicPartition, int]) -> None:
        for tp, end in placed.event.ends.items():
            known = self._announced.get(tp)
            if tp in last and end is not None and (known is None or known[0] <= last[tp]):
                self._announced[tp] = (end, placed.partition, placed.offset)

    def close(self) -> None:
        """Close its client."""
        self._control.close()


@dataclass(frozen=True)
class Announced:
    """What was written to tables since a position, and what became of it.

    Attributes:
        written: announcements of files.
        commits: of each table, the last commit in each partition of the topic.
        completed: the last end of a commit in each partition.
    """

    written: tuple[Placed, ...] = ()
    commits: Mapping[Table, Mapping[int, Placed]] = field(default_factory=dict)
    completed: Mapping[int, Placed] = field(default_factory=dict)

    @classmethod
    def of(cls, control: ControlTopic, starts: Mapping[int, int]) -> Announced:
        """Read the topic from `starts` on."""
        written: list[Placed] = []
        commits: dict[Table, dict[int, Placed]] = {}
        completed: dict[int, Placed] = {}
        for placed in control.events(starts):
            kind, table = placed.event.kind, placed.event.table
            if kind == DATA_WRITTEN and placed.event.files:
                written.append(placed)
            elif kind == COMMIT_TO_TABLE and table is not None:
                commits.setdefault(table, {})[placed.partition] = placed
            elif kind == COMMIT_COMPLETE:
                completed[placed.partition] = placed
        return cls(tuple(written), commits, completed)

    def left_out(self) -> tuple[Placed, ...]:
        """Announcements of files whose table was not committed to after them."""
        return tuple(
            placed
            for placed in self.written
            if (table := placed.event.table) is not None
            and not any(commit.follows(placed) for commit in self.commits.get(table, {}).values())
        )

    def incomplete(self) -> tuple[Placed, ...]:
        """Announcements after which no commit has ended."""
        return tuple(one for one in self.written if not any(end.follows(one) for end in self.completed.values()))

    def ends(self) -> dict[int, int]:
        """The position behind the last announcement, by partition."""
        found: dict[int, int] = {}
        for placed in self.written:
            found[placed.partition] = max(placed.offset + 1, found.get(placed.partition, 0))
        return found
