"""Points in time as text, whole columns at once, for patterns whose fields all have a fixed width.

Only what Arrow's own `strftime` and `strptime` write and read as Java does goes this way: four-digit years of the
Gregorian calendar, numbers of two or three digits, text in between. Everything that was read is written again and
compared. So text that Java rolls over (31 April) or ignores (at the end) is processed record by record.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.converters.java_text import MS_PER_DAY, epoch_day

if TYPE_CHECKING:
    import pyarrow as pa

    from airflow_connect.transforms.simple_date_format import SimpleDateFormat

_DIRECTIVES = {"yyyy": "%Y", "MM": "%m", "dd": "%d", "HH": "%H", "mm": "%M", "ss": "%S"}
_MILLISECONDS = "SSS"
_DAY = frozenset(("yyyy", "MM", "dd"))
_FIRST_MS = epoch_day(1583, 1, 1) * MS_PER_DAY
_BEHIND_LAST_MS = epoch_day(10_000, 1, 1) * MS_PER_DAY
_SEPARATOR = "\x1f"  # does not occur in vectorizable patterns


@dataclass(slots=True)
class _Piece:
    """Fields and text between two fields of milliseconds, which `strftime` does not know; or such a field."""

    directives: str = ""
    expression: str = ""
    is_milliseconds: bool = False


def texts_of(instants: pa.Array[Any], pattern: SimpleDateFormat) -> pa.Array[Any] | None:
    """Text of instants; None if records must be processed one by one.

    Args:
        instants: int64, milliseconds since 1970-01-01T00:00:00Z, nulls allowed.
        pattern: how the text looks.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = _parts(pattern)
    if parts is None or not _are_within(instants):
        return None
    thousand = pa.scalar(1000, pa.int64())
    quotient = pc.divide(instants, thousand)
    rest = pc.subtract(instants, pc.multiply(quotient, thousand))
    # Arrow divides towards zero; the second of an instant before 1970 is the one below.
    is_before = pc.less(rest, pa.scalar(0, pa.int64()))
    seconds = pc.if_else(is_before, pc.subtract(quotient, pa.scalar(1, pa.int64())), quotient)
    milliseconds = pc.if_else(is_before, pc.add(rest, thousand), rest)
    moments = seconds.cast(pa.timestamp("s"))
    columns: list[Any] = [
        pc.utf8_lpad(milliseconds.cast(pa.string()), 3, padding="0")
        if part.is_milliseconds
        else pc.strftime(moments, format=part.directives)
        for part in parts
    ]
    texts: pa.Array[Any] = pc.binary_join_element_wise(*columns, "") if len(columns) > 1 else columns[0]
    return texts


def instants_of(texts: pa.Array[Any], pattern: SimpleDateFormat) -> pa.Array[Any] | None:
    """Milliseconds since 1970-01-01T00:00:00Z of text; None if records must be processed one by one.

    Args:
        texts: string, nulls allowed.
        pattern: how the text looks.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    parts = _parts(pattern)
    if parts is None or not {letters for letters, _ in pattern.runs()} >= _DAY:
        return None
    expression = "".join(f"(?P<part{index}>{part.expression})" for index, part in enumerate(parts))
    found: Any = pc.extract_regex(texts, f"^{expression}$")
    if found.null_count != texts.null_count:
        return None
    columns = list(zip(found.flatten(), parts, strict=True))
    text = pc.binary_join_element_wise(*[column for column, part in columns if not part.is_milliseconds], _SEPARATOR)
    layout = _SEPARATOR.join(part.directives for part in parts if not part.is_milliseconds)
    moments = pc.strptime(text, format=layout, unit="s", error_is_null=True)
    instants: Any = pc.multiply(moments.cast(pa.int64()), pa.scalar(1000, pa.int64()))
    for column, part in columns:
        if part.is_milliseconds:
            instants = pc.add(instants, column.cast(pa.int64()))
    again = texts_of(instants, pattern)
    if again is None or not again.equals(texts):
        return None
    read: pa.Array[Any] = instants
    return read


def _parts(pattern: SimpleDateFormat) -> list[_Piece] | None:
    """The output of a pattern; None if it is not vectorizable.

    Not vectorizable: a field that occurs twice, of which Java uses the later one, and digits as text, which Java reads
    as part of the number before them.
    """
    parts, letters_seen = [_Piece()], []
    for letters, literal in pattern.runs():
        if letters == _MILLISECONDS:
            parts += [_Piece(expression="[0-9]{3}", is_milliseconds=True), _Piece()]
        elif letters in _DIRECTIVES:
            parts[-1].directives += _DIRECTIVES[letters]
            parts[-1].expression += f"[0-9]{{{len(letters)}}}"
        elif letters or re.search(r"[^ -~]|[0-9]", literal):
            return None
        else:
            parts[-1].directives += literal.replace("%", "%%")
            parts[-1].expression += re.escape(literal)
        letters_seen += [letters] if letters else []
    if not letters_seen or len(set(letters_seen)) < len(letters_seen):
        return None
    return [part for part in parts if part.expression]


def _are_within(instants: pa.Array[Any]) -> bool:
    """Whether all of them are of years with four digits, in the calendar that Java and Arrow share."""
    import pyarrow.compute as pc

    bounds: Any = pc.min_max(instants).as_py()
    lowest, highest = bounds["min"], bounds["max"]
    return lowest is None or (lowest >= _FIRST_MS and highest < _BEHIND_LAST_MS)
