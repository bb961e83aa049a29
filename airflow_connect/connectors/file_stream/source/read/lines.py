"""From bytes to lines: where lines end, and their text as an Arrow column, without one Python object per line.

The terminators are those of the real FileStreamSourceTask: a line feed, a carriage return with a line feed, and a lone
carriage return. A carriage return at the end of the available bytes is left for later: a line feed may follow.
"""

from __future__ import annotations

import codecs
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from airflow_connect.errors import ConfigError, DataError

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_LINE_FEED, _CARRIAGE_RETURN = 10, 13
_UTF8_NAMES = frozenset({"utf-8", "ascii"})
_UNITS = {"utf-16": 2, "utf-32": 4}
_NOT_FOR_FILES = frozenset({"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"})


@dataclass(frozen=True, slots=True)
class LineFormat:
    """How text is encoded in a file.

    Attributes:
        encoding: Python's name of the encoding, as `codecs` normalises it.
        unit: bytes of the smallest unit of the encoding: 1, or 2 and 4 for UTF-16 and UTF-32.
        dtype: NumPy's type of such a unit.
        any_terminator: all three terminators of Kafka Connect count; otherwise only the line feed.
        is_strict: bytes that are not valid in the encoding are an error; otherwise they become U+FFFD.
    """

    encoding: str = "utf-8"
    unit: int = 1
    dtype: str = "u1"
    any_terminator: bool = True
    is_strict: bool = False

    @classmethod
    def of(cls, encoding: str, *, any_terminator: bool = True, is_strict: bool = False) -> LineFormat:
        """The format of an encoding by its usual name.

        Raises:
            ConfigError: the encoding is unknown, or line ends cannot be found in it.
        """
        try:
            name = codecs.lookup(encoding).name
        except LookupError as error:
            raise _refused(encoding, "is not a text encoding that Python knows") from error
        if name in _NOT_FOR_FILES:
            raise _refused(encoding, "is a notation for text, not an encoding of files")
        if name[:6] not in _UNITS and _terminators(encoding) != b"\n\r":
            # EBCDIC, for example: the bytes of a line feed mean something else there.
            raise _refused(encoding, "does not write a line feed and a carriage return as ASCII does")
        unit = _UNITS.get(name[:6], 1)
        # Java's UTF-16 and UTF-32 are big-endian if the file does not begin with a byte order mark.
        order = "<" if name.endswith("-le") else ">"
        return cls(name, unit, f"{order}u{unit}", any_terminator, is_strict)

    def at_start(self, head: bytes) -> tuple[LineFormat, int]:
        """The format of a file that begins with `head`, and how many bytes its byte order mark takes.

        In UTF-8 the mark is part of the text, as in Java, unless the encoding is `utf-8-sig`.
        """
        if self.encoding == "utf-8-sig":
            return self._named("utf-8"), 3 if head.startswith(codecs.BOM_UTF8) else 0
        if self.encoding in ("utf-16", "utf-32"):
            little = codecs.BOM_UTF16_LE if self.unit == 2 else codecs.BOM_UTF32_LE
            big = codecs.BOM_UTF16_BE if self.unit == 2 else codecs.BOM_UTF32_BE
            if head.startswith(little):
                return self._named(f"{self.encoding}-le"), self.unit
            return self._named(f"{self.encoding}-be"), self.unit if head.startswith(big) else 0
        return self, 0

    def _named(self, encoding: str) -> LineFormat:
        return LineFormat.of(encoding, any_terminator=self.any_terminator, is_strict=self.is_strict)

    @property
    def is_utf8(self) -> bool:
        """Whether the bytes are already UTF-8."""
        return self.encoding in _UTF8_NAMES

    def text(self, data: bytes) -> str:
        """Bytes of whole lines as text; raises UnicodeDecodeError if strict."""
        return data.decode(self.encoding, "strict" if self.is_strict else "replace")


@dataclass(frozen=True, slots=True, eq=False)
class LineEnds:
    """Where lines end in a block of bytes.

    Attributes:
        ends: int64[n], bytes from the block's start to the end of each line, terminator excluded.
        nexts: int64[n], bytes from the block's start to the beginning of the following line.
    """

    ends: NDArray[np.int64]
    nexts: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def consumed(self) -> int:
        """Number of bytes that the lines occupy."""
        return int(self.nexts[-1]) if len(self.nexts) else 0

    def sizes(self) -> NDArray[np.int64]:
        """int64[n]: bytes of each line, terminator excluded."""
        import numpy as np

        starts = np.concatenate((np.zeros(1, np.int64), self.nexts[:-1]))
        return self.ends - starts


def find_line_ends(data: bytes | memoryview, form: LineFormat, *, is_last: bool) -> LineEnds:
    """The terminated lines at the start of `data`.

    Args:
        data: begins where a line begins.
        form: encoding and terminators; an incomplete unit at the end is ignored.
        is_last: nothing follows: a carriage return at the end is a terminator.
    """
    import numpy as np

    usable = len(data) - len(data) % form.unit
    units = np.frombuffer(data, dtype=form.dtype, count=usable // form.unit)
    feeds = np.flatnonzero(units == _LINE_FEED).astype(np.int64, copy=False)
    ends, nexts = feeds, feeds + 1
    if form.any_terminator:
        returns = np.flatnonzero(units == _CARRIAGE_RETURN).astype(np.int64, copy=False)
        if len(returns):
            ends, nexts = _with_returns(feeds, returns, len(units), is_last=is_last)
    if form.unit > 1:
        ends, nexts = ends * form.unit, nexts * form.unit
    return LineEnds(ends, nexts)


def _with_returns(
    feeds: NDArray[np.int64], returns: NDArray[np.int64], count: int, *, is_last: bool
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Line feeds and carriage returns merged; a pair counts as one terminator."""
    import numpy as np

    if int(returns[-1]) == count - 1 and not is_last:
        returns = returns[:-1]
    paired = np.isin(returns + 1, feeds, assume_unique=True)
    second_halves = np.isin(feeds - 1, returns[paired], assume_unique=True)
    ends = np.concatenate((feeds[~second_halves], returns))
    nexts = np.concatenate((feeds[~second_halves] + 1, returns + 1 + paired))
    order = np.argsort(ends, kind="stable")
    return ends[order], nexts[order]


def line_texts(data: bytes, found: LineEnds, form: LineFormat) -> pa.StringArray:
    """The text of the lines that `find_line_ends` found in `data`, in UTF-8.

    Raises:
        DataError: the bytes are not valid in the encoding, and `form` is strict.
    """
    block = data if len(data) == found.consumed else data[: found.consumed]
    if form.is_utf8 and (array := _from_utf8(block, found, form)) is not None:
        return array
    try:
        text = form.text(block).encode("utf-8", "replace")
    except UnicodeDecodeError as error:
        raise invalid_text(form, error) from error
    # Decoding keeps terminators, so the lines stay the same.
    plain = LineFormat(any_terminator=form.any_terminator)
    again = find_line_ends(text, plain, is_last=True)
    array = _from_utf8(text, again, plain)
    if array is None or len(array) != len(found):  # pragma: no cover (an encoding that hides terminators)
        return _one_by_one(block, found, form)
    return array


def _from_utf8(data: bytes, found: LineEnds, form: LineFormat) -> pa.StringArray | None:
    """A column over one copy of the bytes without terminators; None if they are not UTF-8."""
    import numpy as np
    import pyarrow as pa

    count = len(found)
    if not count:
        return pa.array([], pa.string())
    # Removing a single character is three times as fast as looking up each one.
    is_mixed = form.any_terminator and b"\r" in data
    joined = data.translate(None, b"\r\n") if is_mixed else data.replace(b"\n", b"")
    offsets = np.zeros(count + 1, np.int32)
    np.cumsum(found.sizes(), out=offsets[1:])
    shown: Any = offsets
    buffers = [None, pa.py_buffer(shown), pa.py_buffer(joined)]
    array: Any = pa.Array.from_buffers(pa.string(), count, buffers)
    if not joined.isascii():
        if form.encoding == "ascii":
            return None
        try:
            array.validate(full=True)
        except pa.ArrowInvalid:
            return None
    return cast("pa.StringArray", array)


def _one_by_one(data: bytes, found: LineEnds, form: LineFormat) -> pa.StringArray:
    import pyarrow as pa

    texts, start = [], 0
    for end, following in zip(found.ends.tolist(), found.nexts.tolist(), strict=True):
        texts.append(form.text(data[start:end]))
        start = following
    return pa.array(texts, pa.string())


def invalid_text(form: LineFormat, error: Any) -> DataError:
    """The error for bytes that are not valid in their encoding."""
    return DataError(
        f"A line is not valid {form.encoding}: {error.reason} at byte {error.start} of the line.",
        code="file.invalid_text",
        suggestion="Set file.encoding to the file's encoding, or invalid.text to replace or dead_letter.",
    )


def _refused(encoding: str, why: str) -> ConfigError:
    return ConfigError(
        f"file.encoding is {encoding!r}, which {why}.",
        config_path="file.encoding",
        suggestion="Use a name such as UTF-8, ISO-8859-1, windows-1252 or UTF-16.",
    )


def _terminators(encoding: str) -> bytes:
    """A line feed and a carriage return, encoded; empty for codecs that are not text encodings, such as base64."""
    try:
        return "\n\r".encode(encoding).removeprefix(codecs.BOM_UTF8)
    except (LookupError, UnicodeError):
        return b""
