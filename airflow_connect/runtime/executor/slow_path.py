"""Which stage keeps records out of columns, for the report: record by record takes several times as long."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from airflow_connect.runtime.reporting.notes import Notes

WORTH_A_NOTE = 100_000
"""Records of a task that went one by one. Fewer take less than a few seconds, and some null values are normal."""


class SlowPath:
    """Counts the records of a task that are processed one by one, by the stage that is the reason."""

    def __init__(self) -> None:
        """Nothing was counted yet; without a reason, nothing is."""
        self._counts: Counter[str] = Counter()
        self._reason = ""

    def because_of(self, stage: str) -> None:
        """From now on, `stage` is the reason: words that follow "because of"."""
        self._reason = stage

    def add(self, records: int) -> None:
        """Count records with the reason of now."""
        if self._reason:
            self._counts[self._reason] += records

    def tell(self, notes: Notes) -> None:
        """Add a note for each reason, if together they were many records."""
        if self._counts.total() < WORTH_A_NOTE:
            return
        for reason, number in self._counts.most_common():
            notes.count(f"Records that were processed one by one instead of in columns, because of {reason}:", number)
