"""How far a dead letter queue has been replayed: everything below an offset, except for skipped ranges.

Letters that filters skip must stay available. So the group stores the skipped ranges below the offset as the metadata
of that offset. Both are committed in the transaction that writes the replayed records.
"""

from __future__ import annotations

from dataclasses import dataclass

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.errors import ConfigError, StateError

NOTE_CHARACTERS = 4000
"""Kafka's `offset.metadata.max.bytes` is 4096 by default."""
_VERSION = "passed-over/1 "


@dataclass(frozen=True, slots=True)
class ReplayPosition:
    """The replayed part of one partition of the queue.

    Attributes:
        offset: everything below is replayed, except `passed_over`.
        passed_over: half-open ranges of offsets below `offset`, ascending.
    """

    offset: int
    passed_over: tuple[tuple[int, int], ...] = ()

    @property
    def first(self) -> int:
        """The first offset that is not replayed."""
        return self.passed_over[0][0] if self.passed_over else self.offset

    def is_replayed(self, offset: int) -> bool:
        """Whether the letter at `offset` was replayed."""
        return offset < self.offset and not any(start <= offset < end for start, end in self.passed_over)

    def note(self, tp: TopicPartition) -> str:
        """The position as metadata of the committed offset: ranges as distances, in base 10.

        Raises:
            ConfigError: there are too many ranges for Kafka's metadata.
        """
        if not self.passed_over:
            return ""
        words, at = [], 0
        for start, end in self.passed_over:
            words.append(f"{start - at}+{end - start}")
            at = end
        text = _VERSION + ",".join(words)
        if len(text) > NOTE_CHARACTERS:
            raise ConfigError(
                f"The filters skip {len(self.passed_over)} separate ranges of {tp.topic}-{tp.partition}, more "
                "than Kafka can store with an offset.",
                code="replay.scattered",
                suggestion="Nothing was replayed in this step. Replay without filters, or with wider ones.",
            )
        return text

    @classmethod
    def parse(cls, offset: int, note: str, tp: TopicPartition) -> ReplayPosition:
        """Inverse of `note`.

        Raises:
            StateError: the note is not one of ours.
        """
        if not note:
            return cls(offset)
        ranges, at = [], 0
        try:
            if not note.startswith(_VERSION):
                raise ValueError(note)
            for word in note.removeprefix(_VERSION).split(","):
                distance, length = map(int, word.split("+"))
                ranges.append((at + distance, at + distance + length))
                at += distance + length
        except ValueError as error:
            raise StateError(
                f"The replay position of {tp.topic}-{tp.partition} has a note that cannot be read: {note[:60]!r}.",
                suggestion="Another program commits offsets of this group. Delete the group to begin from the start.",
            ) from error
        return cls(offset, tuple(ranges))


class ReplayProgress:
    """Tracks the replay of one partition of the queue from the first letter that is not replayed, in order."""

    def __init__(self, position: ReplayPosition) -> None:
        """`position`: the result of earlier replays."""
        self._before = position
        self._offset = position.offset
        self._seen = 0
        self._passed_over: list[tuple[int, int]] = []
        self._is_passing_over = False

    def passed_over(self, offset: int) -> None:
        """The letter at `offset` stays available."""
        if self._is_passing_over:  # Offsets between two letters hold no letters: transaction markers, compaction.
            self._passed_over[-1] = (self._passed_over[-1][0], offset + 1)
        else:
            self._passed_over.append((offset, offset + 1))
        self._is_passing_over = True
        self._seen = offset + 1

    def replayed(self, offset: int) -> None:
        """The letter at `offset` is replayed, now or before."""
        self._offset = max(self._offset, offset + 1)
        self._is_passing_over = False
        self._seen = offset + 1

    def position(self) -> ReplayPosition:
        """The new position; letters after the last replayed one need not be listed."""
        below = [(start, end) for start, end in self._passed_over if start < self._offset]
        # Letters that earlier replays have skipped, and that this one has not reached yet, are still available.
        below += [(max(start, self._seen), end) for start, end in self._before.passed_over if end > self._seen]
        return ReplayPosition(self._offset, tuple(below))
