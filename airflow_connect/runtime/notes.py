"""Sentences of a connector or task for the report of the run: each once, and not without end."""

from __future__ import annotations

import logging

MOST_NOTES = 20
"""Of one task, or of the connector; a run over 100,000 files must not have a report of 100,000 sentences."""

log = logging.getLogger(__name__)


class Notes:
    """Keeps the first sentences and counts the others."""

    def __init__(self) -> None:
        """None yet."""
        self._sentences: dict[str, None] = {}
        self._more = 0

    def add(self, sentence: str) -> None:
        """Log a sentence, and keep it unless there are enough; one that is kept already changes nothing."""
        if sentence in self._sentences:
            return
        log.warning("%s", sentence)
        if len(self._sentences) < MOST_NOTES:
            self._sentences[sentence] = None
        else:
            self._more += 1

    @property
    def sentences(self) -> tuple[str, ...]:
        """Those that were kept, in order, and how many were not."""
        more = (f"There were {self._more} more notes; the log has all of them.",) if self._more else ()
        return (*self._sentences, *more)
