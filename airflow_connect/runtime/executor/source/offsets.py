"""The offsets of one source task: committed ones, those waiting for the next commit, and those for the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.documents.source_run import SHOWN_OFFSETS, OffsetMove
from airflow_connect.kafka.state.offsets.offsets_topic import identity
from airflow_connect.runtime.committed_offsets import CommittedOffsets

if TYPE_CHECKING:
    from airflow_connect.api.source import SourceOffset, SourcePartition
    from airflow_connect.kafka.clients.short_lived import Admin
    from airflow_connect.kafka.state.offsets.offsets_topic import OffsetRecord, SourceOffsets
    from airflow_connect.kafka.state.offsets.offsets_view import OffsetsView


@dataclass(frozen=True, slots=True)
class HandedOffsets:
    """The offsets that the driver has given to a task, and how to read others.

    Attributes:
        view: of the given offsets.
        admin, settings: for reading.
    """

    view: OffsetsView
    admin: Admin
    settings: Mapping[str, Any]

    def read(self) -> SourceOffsets:
        """The given offsets, and those written since."""
        return self.view.read(self.admin, self.settings)

    def read_all(self) -> SourceOffsets:
        """Every offset of the connector."""
        return self.view.read_all(self.admin, self.settings)

    def tells(self, who: str) -> bool:
        """Whether `read` is complete for the source partition with this identity."""
        return self.view.tells(who)


class TaskOffsets(CommittedOffsets):
    """The committed offsets of a task, and what it has read since.

    If the driver did not expect a source partition, it is looked up in the topics before its offset is read or
    written, because an offset must be written under its existing key.
    """

    def __init__(self, handed: HandedOffsets) -> None:
        """`handed`: read at the task's first request, which is after its producer fenced others."""
        super().__init__(handed.read)
        self._handed = handed
        self._is_complete = handed.view.is_complete
        self._waiting: dict[str, tuple[SourcePartition, SourceOffset]] = {}
        self._last: tuple[SourcePartition, str] | None = None
        self._moved: dict[str, OffsetMove] = {}
        self._count: set[str] = set()

    def offset(self, partition: SourcePartition) -> SourceOffset | None:
        """See `OffsetReader`."""
        return self.offsets([partition])[0]

    def offsets(self, partitions: Iterable[SourcePartition]) -> list[SourceOffset | None]:
        """See `OffsetReader`."""
        asked = list(partitions)
        self._look_up(asked)
        return super().offsets(asked)

    def committed(self) -> Iterable[tuple[SourcePartition, SourceOffset]]:
        """See `OffsetReader`."""
        self._read_rest()
        return super().committed()

    def reached(self, partition: SourcePartition, offset: SourceOffset) -> None:
        """A record was read; once it is committed, reading resumes at `offset`."""
        # Most records have the same object as the previous one, whose text is known.
        if self._last is not None and self._last[0] is partition:
            who = self._last[1]
        else:
            who = identity(partition)
            self._last = (partition, who)
        self._waiting[who] = (partition, offset)

    def take_waiting(self) -> list[OffsetRecord]:
        """Records that commit the offsets reached so far; from now on they count as committed."""
        records = []
        self._look_up(partition for partition, _ in self._waiting.values())
        for who, (partition, offset) in self._waiting.items():
            before = self._stored.get(partition)
            records.append(self._stored.record(partition, offset))
            self._note(who, partition, before, offset)
        self._waiting.clear()
        return records

    def forget_waiting(self) -> None:
        """Drop the offsets since the last commit; their records will be read again."""
        self._waiting.clear()

    @property
    def partitions(self) -> int:
        """Source partitions whose offset was committed."""
        return len(self._count)

    @property
    def moves(self) -> tuple[OffsetMove, ...]:
        """The first of them, with their offset at the start and now."""
        return tuple(self._moved.values())

    def _look_up(self, partitions: Iterable[SourcePartition]) -> None:
        """Make sure that the offsets of source partitions are known, or known to be missing."""
        stored = self._stored
        if not self._is_complete and any(
            not self._handed.tells(who) and not stored.holds(who) for who in map(identity, partitions)
        ):
            self._read_rest()

    def _read_rest(self) -> None:
        if not self._is_complete:
            # The offsets here are newer: only this task writes them, and its last unit may still be in flight.
            self._stored.take_missing(self._handed.read_all())
            self._is_complete = True

    def _note(self, who: str, partition: SourcePartition, before: SourceOffset | None, after: SourceOffset) -> None:
        self._count.add(who)
        known = self._moved.get(who)
        if known is None and len(self._moved) >= SHOWN_OFFSETS:
            return
        first = known.before if known else (None if before is None else dict(before))
        self._moved[who] = OffsetMove(dict(partition), first, dict(after))
