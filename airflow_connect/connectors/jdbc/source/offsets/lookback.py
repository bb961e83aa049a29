"""Rows that were sent lately, so that a window of time can be read again without sending them twice.

A row is recognised by a hash of all its values, which include the primary key: 128 bits of BLAKE2b of the text that
`values/row_text.py` describes. The hashes of the window are kept in the table's offset, so they are committed together
with the rows. Only rows of which it is known whether they were sent can be in the window; it therefore begins after
`from_us`, the oldest time of which that is known: the position at which the look-back was switched on, the begin of the
last window, or the newest row that was forgotten because of the limit.

If the window has a new row with the time of remembered ones, those of them that it lacks are forgotten: the row may
have been changed without its time, and be changed back. Others stay: a replica that is behind does not have them yet.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.jdbc.source.offsets.positions import Position
from airflow_connect.connectors.jdbc.source.values.row_text import row_digest
from airflow_connect.errors import OffsetError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_ENTRY = struct.Struct(">q16s")
_BEFORE_ALL_US = -(1 << 62)
"""Before the time of any row, microseconds since the epoch."""


class SentRows:
    """The rows of one table's window."""

    def __init__(self, position: Position, window_us: int, limit: int) -> None:
        """Start from a committed position.

        Args:
            position: of the table.
            window_us: length of the window, microseconds.
            limit: largest number of rows to remember.

        Raises:
            OffsetError: the offset's list of rows is damaged.
        """
        self._window_us, self._limit = window_us, limit
        # If clocks skip its time, all rows of the skipped time are read again: instants have another order there.
        newest_us = position.timestamp_us if position.before_us is None else position.before_us
        # Without a position, no row was sent: all are new, whatever their time, and the window is whole.
        self._newest_us = _BEFORE_ALL_US if newest_us is None else newest_us
        self._from_us = self._newest_us if position.sent_from_us is None else position.sent_from_us
        self._sent = _unpacked(position.sent)
        self._lacking = set(self._sent)  # which the window has not shown yet
        self._known_us = frozenset(self._sent.values())
        self._renewed_us: set[int] = set()  # of new rows that have the time of remembered ones
        self._unhashed, self._unhashed_us = 0, 0
        self.forgotten = 0
        """Rows that were forgotten because of the limit, although they are in the window."""

    @property
    def begin_us(self) -> int | None:
        """Where reading begins, exclusive; None: at the first row."""
        if self._newest_us == _BEFORE_ALL_US:
            return None
        return min(self._newest_us, max(self._newest_us - self._window_us, self._from_us))

    def begin(self, position: Position) -> Position:
        """`position` as that after which rows are read: where the window begins."""
        return position.changed(timestamp_us=self.begin_us, local_us=None)

    @property
    def is_whole(self) -> bool:
        """Whether the window has its length: otherwise rows that are committed late are found in a part of it only."""
        return self._from_us <= self._newest_us - self._window_us

    def is_new(self, row: Sequence[Any], at_us: int) -> bool:
        """Whether a row was not sent yet; from now on it counts as sent."""
        return self._add(row_digest(row), at_us)

    def new_rows(
        self,
        at_us: NDArray[np.int64],
        reached_us: int,
        may_repeat: NDArray[np.bool_],
        digests: Callable[[NDArray[np.int64]], Sequence[bytes]],
    ) -> NDArray[np.bool_]:
        """`is_new` of consecutive rows, with a hash only of those that need one.

        A row with a time that no remembered row has was not sent. If it is before the window, or has so many newer ones
        after it that it will be forgotten at once, nothing of it must be remembered either.

        Args:
            at_us: the times of the rows, int64[n].
            reached_us: of `position`, which must be called next.
            may_repeat: which rows may be equal to another one of these, bool[n].
            digests: the hashes of the rows at some places.

        Returns:
            bool[n].
        """
        import numpy as np

        oldest_us = max(self._newest_us, reached_us) - self._window_us
        known = np.unique(np.fromiter(self._sent.values(), np.int64, len(self._sent)))
        is_hashed = np.isin(at_us, known) | may_repeat
        in_window = np.flatnonzero(at_us > oldest_us)
        # Equal rows count once, so there must be as many more.
        most = self._limit + int(np.count_nonzero(may_repeat))
        if len(in_window) > most:
            in_window = in_window[np.argsort(at_us[in_window], kind="stable")]
            forgotten, in_window = in_window[:-most], in_window[-most:]
            forgotten = forgotten[~is_hashed[forgotten]]
            if len(forgotten):
                self._unhashed, self._unhashed_us = len(forgotten), int(at_us[forgotten].max())
        is_hashed[in_window] = True
        is_new = np.ones(len(at_us), bool)
        places = np.flatnonzero(is_hashed)
        for place, digest in zip(places.tolist(), digests(places), strict=True):
            is_new[place] = self._add(digest, int(at_us[place]))
        return is_new

    def _add(self, digest: bytes, at_us: int) -> bool:
        if digest in self._sent:
            self._lacking.discard(digest)
            return False
        self._sent[digest] = at_us
        if at_us in self._known_us:
            self._renewed_us.add(at_us)
        return True

    def _forget_replaced(self, reached_us: int) -> None:
        """Forget the rows that the window lacks, of those times at which it has a new one, as far as it was read."""
        complete = {at for at in self._renewed_us if at <= reached_us}
        if not complete:
            return
        self._renewed_us -= complete
        for digest in [digest for digest in self._lacking if self._sent.get(digest) in complete]:
            del self._sent[digest]

    def position(self, reached_us: int) -> Position:
        """The position after all rows up to `reached_us`; it never moves back."""
        self._forget_replaced(reached_us)
        self._newest_us = max(self._newest_us, reached_us)
        oldest_us = self._newest_us - self._window_us
        if self._from_us <= oldest_us:
            self.forgotten = 0  # Those of earlier batches: the window has moved on, and is whole.
        self._from_us = max(self._from_us, oldest_us)  # Hashes before are dropped: a longer window must not go there.
        self._sent = {digest: at for digest, at in self._sent.items() if at > oldest_us}
        excess = len(self._sent) - self._limit
        if excess > 0:
            oldest = sorted(self._sent.items(), key=lambda entry: entry[1])[:excess]
            for digest, _ in oldest:
                del self._sent[digest]
            self._from_us = max(self._from_us, oldest[-1][1])
            self.forgotten += excess
        if self._unhashed:
            self._from_us = max(self._from_us, self._unhashed_us)
            self.forgotten += self._unhashed
            self._unhashed = 0
        packed = b"".join(_ENTRY.pack(at, digest) for digest, at in self._sent.items())
        return Position(
            timestamp_us=self._newest_us, sent=base64.b64encode(packed).decode("ascii"), sent_from_us=self._from_us
        )


def _unpacked(text: str) -> dict[bytes, int]:
    try:
        packed = base64.b64decode(text, validate=True)
        return {digest: at for at, digest in _ENTRY.iter_unpack(packed)}
    except (ValueError, struct.error):
        raise OffsetError(
            "The offset's list of rows for timestamp.lookback.ms is damaged.",
            code="offset.refused",
            suggestion="Remove lookback and lookback_from from the table's offset, and keep its timestamp.",
        ) from None
