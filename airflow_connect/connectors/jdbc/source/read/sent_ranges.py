"""Mode bulk with `bulk.changed.only`: of which ranges rows were sent since the last complete run.

The hashes of ranges are written when a table is complete. A run that ends before has sent rows of which they know
nothing: if these change back, the hash of the last complete run fits again, although the topic has other rows. So the
keys of a range are kept before its first row is sent, and its hash does not count until a run is complete.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Sequence

from airflow_connect.api.source import SourceOffset, SourcePartition
from airflow_connect.errors import OffsetError

RANGES, SENT = "ranges", "sent"
EVERYTHING = (-(1 << 63), (1 << 63) - 1)
"""All keys, for a run that sends all rows."""
_MOST_AHEAD = 64
_PAIR = struct.Struct(">qq")


def sent_partition(partition: SourcePartition) -> SourcePartition:
    """The source partition with the marks of the table whose partition this is."""
    return {**partition, RANGES: SENT}


def sent_of(offset: SourceOffset | None, where: str) -> list[tuple[int, int]]:
    """The marks in a committed offset: the largest key of the first and of the last of consecutive ranges.

    Raises:
        OffsetError: it is damaged.
    """
    text = (offset or {}).get(SENT, "")
    try:
        return [(first, last) for first, last in _PAIR.iter_unpack(base64.b64decode(text, validate=True))]
    except (TypeError, ValueError, struct.error):
        raise OffsetError(
            f"The offset of {where} with the ranges that were sent for bulk.changed.only is damaged.",
            code="offset.refused",
            suggestion=f"Delete all offsets of {where}, so that the next run sends the whole table.",
        ) from None


def sent_offset(marks: Sequence[tuple[int, int]]) -> SourceOffset:
    """The offset with these marks."""
    return {SENT: base64.b64encode(b"".join(_PAIR.pack(*pair) for pair in marks)).decode("ascii")}


class SentRanges:
    """The marks of one table.

    Attributes:
        marks: those of earlier runs and of this one.
        is_changed: whether there are some that are not kept yet.
    """

    def __init__(self, known: Sequence[int], marks: Sequence[tuple[int, int]]) -> None:
        """`known`: the largest keys of the ranges of the last complete run; `marks`: of the runs since."""
        self._known, self._before = known, tuple(marks)
        self.marks = list(marks)
        self.is_changed = False
        self._marked_upto = 0
        self._ahead = 1

    def was_sent(self, place: int) -> bool:
        """Whether an earlier run has sent rows of a known range, and was not complete: its hash does not count."""
        last = self._known[place]
        return any(first <= last <= end for first, end in self._before)

    def mark(self, place: int) -> None:
        """Rows of a known range are to be sent.

        If one range after the other was changed, marks are written ahead, so that few are written: for up to 64
        ranges. If this run is not complete, the next one sends these again, also those without a change.
        """
        if place < self._marked_upto or self.was_sent(place):
            return
        follows = place > 0 and place == self._marked_upto
        self._ahead = min(2 * self._ahead, _MOST_AHEAD) if follows else 1
        self._marked_upto = min(place + self._ahead, len(self._known))
        first = self._known[place]
        if follows and self.marks and self.marks[-1][1] == self._known[place - 1]:
            first, _ = self.marks.pop()
        self.marks.append((first, self._known[self._marked_upto - 1]))
        self.is_changed = True
