"""Notes of a connector or task for the report of the run: each only once, and a limited number."""

from __future__ import annotations

import logging

MOST_NOTES = 20
"""Maximum per task or connector: the report of a run over 100,000 files must not have 100,000 sentences."""

log = logging.getLogger(__name__)


class Notes:
    """Keeps the first sentences and counts the others."""

    def __init__(self) -> None:
        """Starts without notes."""
        self._sentences: dict[str, None] = {}
        self._more = 0

    def add(self, sentence: str) -> None:
        """Log a sentence, and keep it unless it is already kept or there are too many."""
        if sentence in self._sentences:
            return
        log.warning("%s", sentence)
        if len(self._sentences) < MOST_NOTES:
            self._sentences[sentence] = None
        else:
            self._more += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """The kept notes, in order, and the number of others."""
        more = (f"There were {self._more} more notes; the log has all of them.",) if self._more else ()
        return (*self._sentences, *more)
