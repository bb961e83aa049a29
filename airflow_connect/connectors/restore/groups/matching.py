"""Which record of a restored topic is which record of the backup.

A restore gives records other offsets: gaps are not restored, and its transactions leave markers. But both have the same
records in the same order. So they are read side by side, and compared as they go: a record of the backup that the topic
no longer has (compaction, retention) is passed over, and one of the topic that the backup does not have is an error.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.restore.read.records import Records
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from airflow_connect.api.offsets import TopicPartition

AT_ONCE = 20_000
"""Records that are compared as columns at a time."""
COMPARED = ("key", "value", "headers")
FOREIGN = "restore.foreign_record"


def dropped(pieces: Iterator[Records], count: int) -> Iterator[Records]:
    """The records without the first `count`."""
    for piece in pieces:
        yield piece.slice(min(count, len(piece)), len(piece))
        count -= min(count, len(piece))


class Matching:
    """Reads a partition of the backup and one of a topic side by side.

    Attributes:
        passed_over: records of the backup that the topic no longer has, so far.
        after: the offset after the last record of the topic that was found in the backup; None: there is none yet.
    """

    def __init__(self, restored: TopicPartition, *, compares_times: bool) -> None:
        """`compares_times`: whether the restore has kept all timestamps."""
        self._restored = restored
        self._columns = (*COMPARED, "timestamp") if compares_times else COMPARED
        self.passed_over = 0
        self.after: int | None = None

    def pairs(
        self, backup: Iterator[Records], topic: Iterator[Records]
    ) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64]]]:
        """Offsets in the backup, and offsets in the topic, of the same records.

        Raises:
            DataError: the topic has a record that the backup does not have.
        """
        originals, copies = _Cursor(backup), _Cursor(topic)
        while copies.fill():
            if not originals.fill():
                raise self._foreign(copies)
            count = min(len(originals.records), len(copies.records), AT_ONCE)
            one, other = originals.records.slice(0, count), copies.records.slice(0, count)
            same = count if self._are_equal(one, other) else self._equal_head(one, other)
            if same:
                self.after = int(other.offsets[same - 1]) + 1
                yield one.offsets[:same], other.offsets[:same]
            originals.drop(same)
            copies.drop(same)
            if same < count:
                self._pass_over(originals, copies)

    def translated(
        self, wanted: Sequence[int], backup: Iterator[Records], topic: Iterator[Records]
    ) -> dict[int, int | None]:
        """The offset in the topic for each offset of the backup: of that record, or of the next one that is there.

        None: the topic has no such record, so the next record to read is the one after `after`.

        Raises:
            DataError: as `pairs`.
        """
        import numpy as np

        found: dict[int, int | None] = {}
        left = sorted(set(wanted))
        for originals, copies in self.pairs(backup, topic):
            while left and left[0] <= originals[-1]:
                offset = left.pop(0)
                found[offset] = int(copies[np.searchsorted(originals, offset)])
            if not left:
                break
        return {**found, **dict.fromkeys(left)}

    def _are_equal(self, one: Records, other: Records) -> bool:
        return all(one.columns[name].equals(other.columns[name]) for name in self._columns)

    def _equal_head(self, one: Records, other: Records) -> int:
        """The number of equal records before the first that differs: by halves, because most pieces are equal."""
        low, high = 0, len(one)
        while high - low > 1:
            middle = (low + high) // 2
            if self._are_equal(one.slice(low, middle), other.slice(low, middle)):
                low = middle
            else:
                high = middle
        return low

    def _pass_over(self, originals: _Cursor, copies: _Cursor) -> None:
        """Go to the record of the backup that is the next one of the topic."""
        while originals.fill():
            at = self._find(originals.records, copies.records.slice(0, 1))
            if at is not None:
                self.passed_over += at
                originals.drop(at)
                return
            self.passed_over += len(originals.records)
            originals.drop(len(originals.records))
        raise self._foreign(copies)

    def _find(self, records: Records, one: Records) -> int | None:
        """The first record that equals `one`, by its value first, because that differs most."""
        import numpy as np
        import pyarrow.compute as pc

        value: Any = one.columns["value"][0]
        column: Any = records.columns["value"]
        same: Any = pc.equal(column, value) if value.is_valid else column.is_null()
        for at in np.flatnonzero(pc.fill_null(same, False).to_numpy(zero_copy_only=False)):
            if self._are_equal(records.slice(int(at), int(at) + 1), one):
                return int(at)
        return None

    def _foreign(self, copies: _Cursor) -> DataError:
        return DataError(
            f"{self._restored}@{copies.records.offsets[0]} is not in the backup after the records before it. Another"
            " program has written to the topic, or the backup is not the one that was restored.",
            code="restore.foreign_record",
            suggestion="Offsets of groups can only be translated for a topic that holds nothing else than the backup."
            " Set them by hand, or restore to another topic.",
        )


class _Cursor:
    """Records that come next.

    Attributes:
        records: some of them; empty before `fill`.
    """

    def __init__(self, pieces: Iterator[Records]) -> None:
        import numpy as np

        self._pieces = pieces
        self.records = Records(np.zeros(0, np.int64), {})

    def fill(self) -> bool:
        """Read more if nothing is left; returns whether there is a record."""
        while not len(self.records):
            more = next(self._pieces, None)
            if more is None:
                return False
            self.records = more
        return True

    def drop(self, count: int) -> None:
        """Go on after `count` records."""
        self.records = self.records.slice(count, len(self.records))
