"""Events of several lines, such as stack traces: a line that belongs to its neighbour is joined with it.

The rules are those of Logstash's multiline codec: a pattern, whether it is negated, and which neighbour a line belongs
to. An event that would be too large is split at the limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from airflow_connect.connectors.file_stream.source.read.line_reader import Block, Change, LineReader
from airflow_connect.java.patterns.compiled import JavaPattern

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray


class MultilineRules(NamedTuple):
    """Which lines belong together.

    Attributes:
        pattern: searched for in each line.
        negate: lines without a match are joined, instead of those with one.
        joins_next: a joined line belongs to the next line; otherwise to the previous one.
        max_lines, max_bytes: limits of an event; bytes in UTF-8.
    """

    pattern: JavaPattern
    negate: bool = False
    joins_next: bool = False
    max_lines: int = 500
    max_bytes: int = 1 << 20

    def joins(self, line: str) -> bool:
        """Whether a line belongs to a neighbour."""
        return (self.pattern.search(line) is not None) != self.negate


@dataclass(slots=True, eq=False)
class EventBlock:
    """See `Block`."""

    texts: pa.StringArray
    nexts: NDArray[np.int64]
    tails: list[str]
    flagged: Mapping[int, str] = field(default_factory=dict)
    is_last: bool = False
    changed: Mapping[int, Change] = field(default_factory=dict)

    def tail(self, index: int) -> str:
        """See `Block`."""
        return self.tails[index]


@dataclass(slots=True)
class _Event:
    """Lines that belong together so far."""

    lines: list[str] = field(default_factory=list)
    size_bytes: int = 0
    reason: str = ""
    change: Change = Change.NONE
    end: int = 0
    tail: str = ""

    def add(self, line: str, reason: str, change: Change) -> None:
        self.lines.append(line)
        self.size_bytes += len(line.encode()) + 1
        self.reason = self.reason or reason
        self.change |= change


class EventReader:
    """Reads events; has the interface of LineReader."""

    def __init__(self, lines: LineReader, rules: MultilineRules) -> None:
        """Nothing is read yet."""
        self._lines, self._rules = lines, rules
        self._open = _Event()
        self._done: list[_Event] = []
        self._ended = False

    def next_block(self, *, takes_last: bool) -> EventBlock | None:
        """The next events; None if nothing is left.

        The last event of a file may continue in lines that are not written yet: it is left for later unless
        `takes_last`.
        """
        while not self._ended and not self._done:
            block = self._lines.next_block(takes_last=takes_last)
            if block is None or block.is_last:
                self._ended = True
            if block is not None:
                self._take(block)
            if self._ended and takes_last and self._open.lines:
                self._close()
        if not self._done:
            return None
        done, self._done = self._done, []
        return _block_of(done, is_last=self._ended)

    def _take(self, block: Block) -> None:
        texts: list[str] = block.texts.to_pylist()  # type: ignore[assignment]
        rules = self._rules
        ends: list[int] = block.nexts.tolist()
        for index, line in enumerate(texts):
            joins = rules.joins(line)
            if not rules.joins_next and not joins and self._open.lines:
                self._close()
            if self._open.lines and self._open.size_bytes + len(line) > rules.max_bytes:
                self._close()
            self._open.add(line, block.flagged.get(index, ""), block.changed.get(index, Change.NONE))
            self._open.end, self._open.tail = ends[index], block.tail(index)
            if (rules.joins_next and not joins) or len(self._open.lines) >= rules.max_lines:
                self._close()

    def _close(self) -> None:
        self._done.append(self._open)
        self._open = _Event()


def _block_of(events: list[_Event], *, is_last: bool) -> EventBlock:
    import numpy as np
    import pyarrow as pa

    return EventBlock(
        pa.array(["\n".join(event.lines) for event in events], pa.string()),
        np.array([event.end for event in events], np.int64),
        [event.tail for event in events],
        {index: event.reason for index, event in enumerate(events) if event.reason},
        is_last,
        {index: event.change for index, event in enumerate(events) if event.change and not event.reason},
    )
