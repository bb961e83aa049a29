"""Blocks of lines of one file: their text in a column, the position after each, and the problems of invalid lines."""

from __future__ import annotations

import codecs
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from airflow_connect.connectors.file_stream.source.file_offsets import TAIL_BYTES, content_hash
from airflow_connect.connectors.file_stream.source.read.content import Content
from airflow_connect.connectors.file_stream.source.read.lines import (
    LineEnds,
    LineFormat,
    find_line_ends,
    invalid_text,
    line_texts,
)
from airflow_connect.errors import DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

REPLACE, FAIL, DEAD_LETTER, TRUNCATE = "replace", "fail", "dead_letter", "truncate"


class Change(IntFlag):
    """How the text of a line differs from what the file holds, as the configuration allows."""

    NONE = 0
    REPLACED = 1
    """Bytes that are not valid in the encoding became U+FFFD."""
    CUT = 2
    """The end of a line that is too long was left out."""


class LineRules(NamedTuple):
    """What to do with lines that are too long or invalid.

    Attributes:
        max_bytes: longest line, terminator excluded.
        too_long: FAIL, TRUNCATE or DEAD_LETTER.
        invalid_text: REPLACE, FAIL or DEAD_LETTER.
        block_bytes: read at once.
    """

    max_bytes: int = 1 << 20
    too_long: str = FAIL
    invalid_text: str = REPLACE
    block_bytes: int = 1 << 20


class Block(Protocol):
    """Consecutive lines, or events of several lines.

    `texts` holds the text of each, `nexts` the position after each; `flagged` the problems of some, and `changed` how
    the text of some was changed, by index.
    """

    texts: pa.StringArray
    nexts: NDArray[np.int64]
    flagged: Mapping[int, str]
    changed: Mapping[int, Change]
    is_last: bool

    def tail(self, index: int) -> str:
        """`FileOffset.tail` after a line."""


@dataclass(slots=True, eq=False)
class LineBlock:
    """See `Block`. `data` holds the bytes of the lines; they begin at position `start`."""

    texts: pa.StringArray
    nexts: NDArray[np.int64]
    data: bytes
    start: int
    flagged: Mapping[int, str] = field(default_factory=dict)
    is_last: bool = False
    changed: Mapping[int, Change] = field(default_factory=dict)

    def tail(self, index: int) -> str:
        """See `Block`."""
        end = int(self.nexts[index]) - self.start
        return content_hash(self.data[max(0, end - TAIL_BYTES) : end])


class _Texts(NamedTuple):
    """See `Block`."""

    texts: pa.StringArray
    flagged: Mapping[int, str]
    changed: Mapping[int, Change]


_Known = TypeVar("_Known", str, Change)


def _first(found: _Known) -> dict[int, _Known]:
    """What is known of the only line of a block."""
    return {0: found} if found else {}


class LineReader:
    """Reads the lines of one content in order."""

    def __init__(self, content: Content, name: str, start: int, form: LineFormat, rules: LineRules) -> None:
        """Nothing is read yet.

        Args:
            content: bytes from position `start`, where a line begins.
            name: of the file, for messages.
            start: see `content`.
            form: encoding and terminators of the text.
            rules: for lines that are too long or invalid.
        """
        self._content, self._name, self._form, self._rules = content, name, form, rules
        self._strict = replace(form, is_strict=True)
        self._position = start
        self._buffer = b""
        self._ended = False
        self._failure: DataError | None = None

    @property
    def position(self) -> int:
        """The position after the last line that was returned."""
        return self._position

    def next_block(self, *, takes_last: bool) -> LineBlock | None:
        """The next lines; None if nothing is left.

        Args:
            takes_last: a last line without a terminator counts as a line; otherwise it is left for later.

        Raises:
            DataError: a line is too long or invalid, and the rules make that an error.
        """
        while True:
            self._fill()
            found = find_line_ends(self._buffer, self._form, is_last=self._ended and takes_last)
            if len(found):
                return self._block_of(found, takes_last=takes_last)
            if self._ended:
                return self._last_line() if takes_last and self._buffer else None
            if len(self._buffer) > self._rules.max_bytes:
                return self._long_line(takes_last=takes_last)

    def _fill(self) -> None:
        if self._ended:
            return
        if self._failure is not None:
            raise self._failure
        data = self._content.read(self._rules.block_bytes)
        self._buffer = self._buffer + data if self._buffer else data
        try:
            # Read one block ahead, so that the last block is known to be the last.
            self._ended = not self._content.peek(1)
        except DataError as error:
            self._failure = error  # what was read before the failure is still valid

    def _block_of(self, found: LineEnds, *, takes_last: bool) -> LineBlock:
        import numpy as np

        consumed = found.consumed
        data, self._buffer = self._buffer[:consumed], self._buffer[consumed:]
        start, self._position = self._position, self._position + consumed
        read = self._texts(data, start, found)
        if consumed > self._rules.max_bytes and int(np.max(found.sizes())) > self._rules.max_bytes:
            read = self._shortened(data, start, found, read)
        is_last = self._ended and not (takes_last and self._buffer)
        return LineBlock(read.texts, found.nexts + start, data, start, read.flagged, is_last, read.changed)

    def _texts(self, data: bytes, start: int, found: LineEnds) -> _Texts:
        import numpy as np
        import pyarrow.compute as pc

        try:
            return _Texts(line_texts(data, found, self._strict), {}, {})
        except DataError:
            texts = line_texts(data, found, self._form)
        # Only these may have been invalid: in the others, nothing was replaced.
        candidates = np.flatnonzero(pc.match_substring(texts, "\ufffd").to_numpy(zero_copy_only=False))
        invalid = self._invalid_lines(data, start, found, candidates.tolist())
        if self._rules.invalid_text == REPLACE:
            return _Texts(texts, {}, dict.fromkeys(invalid, Change.REPLACED))
        return _Texts(texts, invalid, {})

    def _invalid_lines(self, data: bytes, start: int, found: LineEnds, candidates: list[int]) -> dict[int, str]:
        reasons = {}
        for index in candidates:
            begin, end = int(found.nexts[index - 1]) if index else 0, int(found.ends[index])
            try:
                self._strict.text(data[begin:end])
            except UnicodeDecodeError as error:
                reasons[index] = self._invalid(start + begin, error)
        return reasons

    def _shortened(self, data: bytes, start: int, found: LineEnds, read: _Texts) -> _Texts:
        import numpy as np
        import pyarrow as pa

        values: list[str] = read.texts.to_pylist()  # type: ignore[assignment]
        flagged, changed, sizes = dict(read.flagged), dict(read.changed), found.sizes()
        for index in np.flatnonzero(sizes > self._rules.max_bytes).tolist():
            size = int(sizes[index])
            begin = int(found.ends[index]) - size
            values[index], reason, change = self._head(data[begin:], start + begin, size)
            flagged.pop(index, None)
            changed.pop(index, None)
            if reason:
                flagged[index] = reason
            if change:
                changed[index] = change
        return _Texts(pa.array(values, pa.string()), flagged, changed)

    def _last_line(self) -> LineBlock:
        import numpy as np
        import pyarrow as pa

        data, self._buffer = self._buffer, b""
        start, self._position = self._position, self._position + len(data)
        text, reason, change = self._one_line(data, start, len(data))
        array = pa.array([text], pa.string())
        return LineBlock(array, np.array([self._position]), data, start, _first(reason), True, _first(change))

    def _one_line(self, data: bytes, start: int, size: int) -> tuple[str, str, Change]:
        """A single line: text, problem, change; `data` is all of it or its beginning."""
        if size > self._rules.max_bytes:
            return self._head(data, start, size)
        return self._text(data, start, is_whole=True)

    def _long_line(self, *, takes_last: bool) -> LineBlock | None:
        """A line that does not fit the buffer: its head is kept, the rest is skipped."""
        import numpy as np
        import pyarrow as pa

        head, start, unit = self._buffer[: self._rules.max_bytes], self._position, self._form.unit
        passed, tail = 0, b""
        while True:
            # Keep the last unit: it may be a carriage return that is followed by a line feed.
            keep = (len(self._buffer) // unit - 1) * unit
            tail = (tail + self._buffer[:keep])[-TAIL_BYTES:]
            passed, self._buffer = passed + keep, self._buffer[keep:]
            self._fill()
            found = find_line_ends(self._buffer, self._form, is_last=self._ended and takes_last)
            if len(found):
                size, end = passed + int(found.ends[0]), int(found.nexts[0])
                break
            if self._ended:
                if not takes_last:
                    return None
                size, end = passed + len(self._buffer), len(self._buffer)
                break
        before = (tail + self._buffer[:end])[-TAIL_BYTES:]
        self._buffer = self._buffer[end:]
        self._position = start + passed + end
        text, reason, change = self._one_line(head, start, size)
        nexts = np.array([self._position])
        is_last = self._ended and not self._buffer
        array = pa.array([text], pa.string())
        return LineBlock(array, nexts, before, self._position - len(before), _first(reason), is_last, _first(change))

    def _head(self, data: bytes, position: int, size: int) -> tuple[str, str, Change]:
        """The beginning of a line that is too long: text, problem, change. What follows is not looked at."""
        if self._rules.too_long == FAIL:
            raise self._at(
                position,
                self._too_long(size),
                "file.line_too_long",
                "Raise line.max.bytes, or set line.too.long to truncate or dead_letter.",
            )
        whole = self._rules.max_bytes - self._rules.max_bytes % self._form.unit
        text, reason, change = self._text(data[:whole], position, is_whole=False)
        if self._rules.too_long == DEAD_LETTER:
            return text, self._too_long(size), Change.NONE
        return text, reason, Change.NONE if reason else change | Change.CUT

    def _text(self, data: bytes, position: int, *, is_whole: bool) -> tuple[str, str, Change]:
        """Text, problem and change of one line; a character that the cut of an incomplete one splits is dropped."""
        try:
            return codecs.getincrementaldecoder(self._form.encoding)("strict").decode(data, is_whole), "", Change.NONE
        except UnicodeDecodeError as error:
            reason = self._invalid(position, error)
        text = codecs.getincrementaldecoder(self._form.encoding)("replace").decode(data, is_whole)
        return (text, "", Change.REPLACED) if self._rules.invalid_text == REPLACE else (text, reason, Change.NONE)

    def _invalid(self, position: int, error: UnicodeDecodeError) -> str:
        """What is wrong with a line that begins at `position`; raises it if the rules make it an error."""
        reason = invalid_text(self._form, error)
        if self._rules.invalid_text == FAIL:
            raise self._at(position, reason.message, reason.code, reason.suggestion) from error
        return reason.message

    def _too_long(self, size: int) -> str:
        return f"The line has {size} bytes, but line.max.bytes is {self._rules.max_bytes}."

    def _at(self, position: int, message: str, code: str, suggestion: str) -> DataError:
        return DataError(f"{self._name} at byte {position}: {message}", code=code, suggestion=suggestion)
