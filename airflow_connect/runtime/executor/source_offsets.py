"""The offsets of one source task: what is committed, what waits for the next commit, what is reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from airflow_connect.api.source_documents import SHOWN_OFFSETS, OffsetMove
from airflow_connect.kafka.offsets_topic import identity
from airflow_connect.runtime.committed_offsets import CommittedOffsets

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.kafka.offsets_topic import OffsetRecord, SourceOffsets


class TaskOffsets(CommittedOffsets):
    """The committed offsets of a task, and the book of what it has read since."""

    def __init__(self, read: Callable[[], SourceOffsets]) -> None:
        """`read`: reads the topics; called when the task first asks, which is after its producer fenced others."""
        super().__init__(read)
        self._waiting: dict[str, tuple[SourcePartition, SourceOffset]] = {}
        self._last: tuple[SourcePartition, str] | None = None
        self._moved: dict[str, OffsetMove] = {}
        self._count: set[str] = set()

    def reached(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """A record was read; reading goes on at `offset` once it is committed."""
        # Most records come from the same object as the one before: its text is known.
        if self._last is not None and self._last[0] is partition:
            who = self._last[1]
        else:
            who = identity(partition)
            self._last = (partition, who)
        self._waiting[who] = (partition, offset)

    def take_waiting(self) -> list[OffsetRecord]:
        """Records that make the offsets reached so far the committed ones; they count as committed from now on."""
        records = []
        for who, (partition, offset) in self._waiting.items():
            before = self._stored.get(partition)
            records.append(self._stored.record(partition, offset))
            self._note(who, partition, before, offset)
        self._waiting.clear()
        return records

    def forget_waiting(self) -> None:
        """Offsets since the last commit are given up: their records come again."""
        self._waiting.clear()

    @property
    def partitions(self) -> int:
        """Source partitions whose offset was committed."""
        return len(self._count)

    @property
    def moves(self) -> tuple[OffsetMove, ...]:
        """The first of them, with the offset at the start and now."""
        return tuple(self._moved.values())

    def _note(self, who: str, partition: SourcePartition, before: SourceOffset | None, after: SourceOffset) -> None:
        self._count.add(who)
        known = self._moved.get(who)
        if known is None and len(self._moved) >= SHOWN_OFFSETS:
            return
        first = known.before if known else (None if before is None else dict(before))
        self._moved[who] = OffsetMove(dict(partition), first, dict(after))
