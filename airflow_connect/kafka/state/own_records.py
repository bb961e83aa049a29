"""The positions of one connector's records in a partition of a state topic that connectors share."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.kafka.state.bookmarks import LogMark

LONG = 5_000
"""Minimum number of offsets that rewriting records must save."""
OFFSETS_A_RECORD = 1_000
"""Minimum saving per rewritten record: with it, the rewrites of 200 connectors let a topic grow by at most a fifth."""


class OwnRecords:
    """The connector's valid records in one partition, in the order of reading.

    Attributes:
        last: offset of the last record that was read, of any connector; None: there was none.
    """

    __slots__ = ("_again", "_between", "_covered", "_is_confirmed", "_is_other_log", "_live", "_mark", "last")

    def __init__(self, mark: LogMark | None = None) -> None:
        """`mark`: where reading begins, and the state of the log when that was recorded."""
        self._live: dict[bytes, tuple[int, bytes]] = {}
        self._mark = mark
        self._is_confirmed = self._is_other_log = False
        self._again: dict[bytes, bytes] = {}
        self._between: dict[bytes, bytes | None] = {}
        self._covered: dict[bytes, bytes | None] = {}
        self.last: int | None = None

    def passed(self, offset: int, epoch: int) -> None:
        """A record of any connector was read, written by the leader of `epoch`."""
        self.last = offset
        if self._mark is not None and offset < self._mark.end:
            self._is_confirmed = True
            self._is_other_log |= epoch > self._mark.epoch

    def take(self, key: bytes, value: bytes | None, offset: int) -> None:
        """A record of the connector was read."""
        if key in self._again:
            self._compare(key, value)
        if value is None:
            self._live.pop(key, None)
        else:
            self._live[key] = offset, value

    def write_again(self, key: bytes, value: bytes) -> None:
        """A record is going to be rewritten."""
        self._again[key] = value

    def take_covered(self) -> dict[bytes, bytes | None]:
        """What others wrote, or deleted (None), just before a rewritten record."""
        covered, self._covered = self._covered, {}
        self._again.clear()
        self._between.clear()
        return covered

    def _compare(self, key: bytes, value: bytes | None) -> None:
        if value != self._again[key]:
            self._between[key] = value
            self._covered.pop(key, None)
        elif key in self._between:
            self._covered[key] = self._between[key]

    @property
    def first(self) -> int | None:
        """Offset of the first valid record; None: there is none."""
        return min((offset for offset, _ in self._live.values()), default=None)

    @property
    def confirms_mark(self) -> bool:
        """Whether the log up to the end of the mark is unchanged.

        A log that loses its end in an unclean leader election continues with a higher leader epoch (KIP-320), which
        its new records show. If no record remains between the mark and its end, the answer is unknown.
        """
        return self._is_confirmed and not self._is_other_log

    def holding_back(self, end: int) -> list[tuple[bytes, bytes]]:
        """Keys and values of the few oldest records, oldest first, if reading could begin much later without them.

        Args:
            end: of the partition.
        """
        in_order = sorted(self._live.items(), key=lambda item: item[1][0])
        starts = [offset for _, (offset, _) in in_order] + [end]
        best, most = 0, 0
        for count in range(1, len(starts)):
            saved = starts[count] - starts[0]
            gain = saved - count * OFFSETS_A_RECORD
            if saved >= LONG and gain > most:
                best, most = count, gain
        return [(key, value) for key, (_, value) in in_order[:best]]
