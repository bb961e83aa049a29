"""How often a table is read from its beginning, as mode bulk does when its connection was lost."""

from __future__ import annotations

MOST_RESTARTS = 3


class Restarts:
    """Of one table in one task.

    Attributes:
        useless: how many attempts have ended no further than the one that came furthest, since that one.
    """

    def __init__(self) -> None:
        """Nothing was read yet."""
        self._rows = self._furthest = self.useless = 0

    def read(self, rows: int) -> None:
        """Rows of this attempt were sent."""
        self._rows += rows

    def failed(self) -> int:
        """The attempt has ended; returns how many rows it has sent, which the next one sends again."""
        rows, self._rows = self._rows, 0
        if rows > self._furthest:
            self.useless = 0
        elif rows:
            self.useless += 1
        self._furthest = max(rows, self._furthest)
        return rows
