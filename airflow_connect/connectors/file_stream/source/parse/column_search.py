"""Searches a regular expression in a column of lines: all groups at once, or a few at a time, whichever is faster.

If every next character leaves only one way to continue, RE2 finds groups in one pass, but only up to four of them
(`Prog::kMaxOnePassCapture`). With more groups it needs slower passes. Two searches, each for half of the groups, then
take less time than one search for all; for other expressions they take twice as long. RE2 does not tell which kind an
expression is, so both ways are timed on some of the first lines. Both find the same groups.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from airflow_connect.connectors.file_stream.source.parse.re2_patterns import re2_text
from airflow_connect.java.patterns.compiled import JavaPattern

if TYPE_CHECKING:
    import pyarrow as pa

_GROUPS_AT_ONCE = 4
_SAMPLE_LINES = 500
_Searches = tuple[tuple[str, tuple[str, ...]], ...]
"""Expressions that find all groups together, and which of them each one finds."""


class ColumnSearch:
    """Finds the groups of one pattern that `common_groups` allows."""

    def __init__(self, pattern: JavaPattern) -> None:
        """Nothing is timed before the first lines arrive."""
        names = tuple(pattern.names)
        self._ways: list[_Searches] = [((re2_text(pattern.root, names), names),)]
        divided = split_by_groups(pattern)
        if len(divided) > 1:
            self._ways.append(divided)

    def groups(self, lines: pa.StringArray) -> dict[str, pa.Array[Any]] | None:
        """Text of each group in each line; None if a line does not match."""
        if len(self._ways) > 1:
            sample: Any = lines.slice(0, _SAMPLE_LINES)
            if _found(sample, self._ways[0]) is None:  # this also compiles the expression, so the timing excludes it
                return None
            self._ways = [min(self._ways, key=lambda way: _seconds(sample, way))]
        return _found(lines, self._ways[0])


def split_by_groups(pattern: JavaPattern) -> _Searches:
    """The same expression several times, each capturing only a few of its groups."""
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
