"""A regular expression in a column of lines: all groups at once, or a few at a time, whichever is quicker.

Where every next character leaves one way to go on, RE2 finds groups while it reads, but only up to four of them
(`Prog::kMaxOnePassCapture`); for more it reads again and goes back. Two searches for a half of the groups each then
take less time than one for all; for other expressions they take twice as long. RE2 does not say of which kind an
expression is, so both ways are tried with some of the first lines. They find the same.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_connect.api.java_patterns.compiled import JavaPattern
from airflow_connect.connectors.file_source.re2_patterns import re2_text

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPS_AT_ONCE = 4
_SAMPLE_LINES = 500
_Searches = tuple[tuple[str, tuple[str, ...]], ...]
"""Expressions that find all groups together, and which of them each one finds."""


class ColumnSearch:
    """Finds the groups of one pattern that `common_groups` allows."""

    def __init__(self, pattern: JavaPattern) -> None:
        """Nothing is tried before the first lines come."""
        names = tuple(pattern.names)
        self._ways: list[_Searches] = [((re2_text(pattern.root, names), names),)]
        divided = few_groups_each(pattern)
        if len(divided) > 1:
            self._ways.append(divided)

    def groups(self, lines: pa.StringArray) -> dict[str, pa.Array[Any]] | None:
        """Text of each group in each line; None when a line does not match."""
        if len(self._ways) > 1:
            sample: Any = lines.slice(0, _SAMPLE_LINES)
            if _found(sample, self._ways[0]) is None:  # which also compiles, outside of what is measured
                return None
            self._ways = [min(self._ways, key=lambda way: _seconds(sample, way))]
        return _found(lines, self._ways[0])


def few_groups_each(pattern: JavaPattern) -> _Searches:
    """The same expression several times, each with a few of its groups and the others without a name."""
    names = tuple(pattern.names)
    parts = [names[start : start + _GROUPS_AT_ONCE] for start in range(0, len(names), _GROUPS_AT_ONCE)]
    return tuple((re2_text(pattern.root, kept), kept) for kept in parts)


def _seconds(lines: Any, searches: _Searches) -> float:
    """Processor time of the second of two searches."""
    _found(lines, searches)
    started = time.thread_time()
    _found(lines, searches)
    return time.thread_time() - started


def _found(lines: Any, searches: _Searches) -> dict[str, pa.Array[Any]] | None:
    import pyarrow.compute as pc

    found: dict[str, Any] = {}
    for expression, names in searches:
        part: Any = pc.extract_regex(lines, expression)
        if part.null_count:
            return None
        found.update((name, part.field(name)) for name in names)
    return found
