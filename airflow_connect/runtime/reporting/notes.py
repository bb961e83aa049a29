"""Notes of a connector or task for the report of the run: each only once, and a limited number.

Equal sentences may be about different records, so the report says how many tasks reported one that has numbers.
"""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from airflow_connect.counting import counted, format_count
from airflow_connect.runtime.reporting.texts import one_line

MOST_NOTES = 20
"""Maximum per task or connector: the report of a run over 100,000 files must not have 100,000 sentences."""

_NUMBERED = re.compile(r"(.+:) (\d{1,3}(?:,\d{3})*)\.", re.DOTALL)
"""What `Notes.count` makes."""

log = logging.getLogger(__name__)


class Notes:
    """Keeps the first sentences and counts the others."""

    def __init__(self) -> None:
        """Starts without notes."""
        self._sentences: Counter[str] = Counter()
        self._more = 0
        self._numbers: Counter[str] = Counter()
        self._hashes: set[int] = set()
        self._said_before: set[int] = set()

    def begin_again(self) -> None:
        """The same is looked at once more: sentences that were added so far are not counted, or kept, again."""
        self._said_before |= self._hashes

    def add(self, sentence: str) -> None:
        """Log a sentence, and keep it unless there are too many. Names in it may have control characters."""
        sentence = one_line(sentence)
        if hash(sentence) in self._said_before:
            return
        self._hashes.add(hash(sentence))
        if sentence in self._sentences:
            self._sentences[sentence] += 1
            return
        log.warning("%s", sentence)
        if len(self._sentences) < MOST_NOTES:
            self._sentences[sentence] = 1
        else:
            self._more += 1

    def count(self, sentence: str, number: int) -> None:
        """Add to the number at the end of a note; `sentence` ends before it, with a colon."""
        sentence = one_line(sentence)
        if sentence not in self._numbers:
            log.warning("%s %s so far.", sentence, format_count(number))
        self._numbers[sentence] += number

    @property
    def sentences(self) -> tuple[str, ...]:
        """The kept notes, in order, and the number of others."""
        kept = [_with_count(sentence, times, "This was noted {} times.") for sentence, times in self._sentences.items()]
        numbers = [f"{sentence} {format_count(number)}." for sentence, number in self._numbers.items()]
        return (*kept, *numbers[:MOST_NOTES], *_rest(self._more + len(numbers[MOST_NOTES:])))


def of_tasks(notes: Iterable[Sequence[str]], most: int = MOST_NOTES) -> list[str]:
    """The notes of several tasks, at most `most` and the number of the others.

    Notes that differ only in the number at their end, after a colon, become one note with the sum.

    Args:
        notes: of each task.
        most: how many sentences are kept.
    """
    times_of: Counter[str] = Counter()
    sums: Counter[str] = Counter()
    for one in notes:
        for sentence in dict.fromkeys(one):
            numbered = _NUMBERED.fullmatch(sentence)
            if numbered is None:
                times_of[sentence] += 1
            else:
                sums[numbered[1]] += int(numbered[2].replace(",", ""))
    every = [
        _with_count(sentence, tasks, "{} tasks report this, each about its own records.")
        for sentence, tasks in times_of.items()
    ]
    every += [f"{sentence} {format_count(number)}." for sentence, number in sums.items()]
    return [*every[:most], *_rest(len(every) - most)]


def _with_count(sentence: str, times: int, text: str) -> str:
    has_number = any(character.isdecimal() for character in sentence)
    return f"{sentence} {text.format(times)}" if times > 1 and has_number else sentence


def _rest(more: int) -> list[str]:
    beginning = "There was" if more == 1 else "There were"
    return [f"{beginning} {counted(more, 'more note')}; the log has all of them."] if more > 0 else []
