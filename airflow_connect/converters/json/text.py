"""JSON text as Jackson reads and writes it: exact numbers, exact strings, what Jackson tolerates, its limits.

orjson is the fast parser, and `parse_exact` the slow one that handles the differences: integers beyond 64 bits,
numbers beyond a double, leading zeros, lone surrogates, a byte order mark, UTF-16 and UTF-32, an empty document and
text after the document. Both refuse the same documents: those with numbers of more than `MAX_NUMBER_DIGITS` digits, as
Jackson does, and those that are nested more than `MAX_DEPTH` levels.

Source: Jackson 2.21 as JsonConverter sets it up (leading zeros allowed, BigDecimal for fractions, default
StreamReadConstraints), recorded with Kafka Connect 4.3.1 in tests/data/numbers.jsonl.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

import orjson

from airflow_connect.converters.unread import MORE_TEXT, Unread
from airflow_connect.errors import DataError
from airflow_connect.java.numbers import parse_decimal, shown_number

MAX_DEPTH: Final = 254
"""Maximum nesting of lists and maps in a value, the same as orjson's. Jackson reads 1,000 levels; Python cannot."""
MAX_NUMBER_DIGITS: Final = 1000
"""Maximum number of digits of a number, including fraction and exponent (StreamReadConstraints)."""

# Part of every double from 2^63 on as orjson writes it, as in 9.3e+18; should a version leave out the plus,
# any e.
HUGE_DOUBLE: Final = b"e+" if b"e+" in orjson.dumps(2.0**63) else b"e"
# 20 digits and more, or 19 digits from 92... on: may be 2^63 or larger.
_OVERFLOW: Final = re.compile(rb"[0-9]{20}|9[2-9][0-9]{17}").search
# A number of more than 1,000 digits has a third of them in a row: before the point, after it or in its exponent.
_ROW_OF_DIGITS: Final = MAX_NUMBER_DIGITS // 3
_LONG_ROW: Final = re.compile(rb"[0-9]{%d}" % _ROW_OF_DIGITS).search
# Such a row has 20 digits among every 16th byte. Fewer would be found in ordinary records: prices, coordinates and
# times have a digit in most places, and the search of every byte costs a hundred times as much as this one.
_STEP: Final = 16
_SAMPLED_ROW: Final = b"0" * (_ROW_OF_DIGITS // _STEP)
_DIGITS_TO_ZERO: Final = bytes(0x30 if chr(code) in "0123456789" else 0x20 for code in range(256))
# A string, or a number with leading zeros; the zeros are dropped, the string is kept. An unterminated string is kept
# too: searching for an end from each of its quotation marks would take forever.
_LEADING_ZEROS: Final = re.compile(r'("(?:[^"\\]++|\\.)*+(?:"|\\?\Z))|(?<![\w.+])(-?)0+(?=[0-9])', re.DOTALL)
_NO_DIGITS: Final = str.maketrans("", "", "+-.eE")
_BLANKS: Final = " \t\r\n"
_NEEDS_JACKSON_ESCAPE: Final = re.compile('["\\\\\x00-\x1f\ud800-\udfff\U00010000-\U0010ffff]')
_SHORT_ESCAPES: Final = {
    '"': '\\"',
    "\\": "\\\\",
    "\b": "\\b",
    "\t": "\\t",
    "\n": "\\n",
    "\f": "\\f",
    "\r": "\\r",
}


class MissingValue:
    """Jackson's MissingNode: the document was empty."""


MISSING: Final = MissingValue()
_LITERALS: Final = (bool, type(None))


class VanishedNumber(float):
    """A number such as 1e-9999999999, which is 0 as a double and has an exponent that no Decimal holds.

    Jackson refuses it; orjson does not, and searching each message for it would be too expensive.
    """


NUMBERS: Final = (int, float, Decimal, VanishedNumber)


class InexactNumberError(ValueError):
    """A double in place of a number whose digits matter: parse the document again with `parse_exact`."""


def may_overflow(data: bytes) -> bool:
    """Whether the JSON text `data` may contain an integer outside of [-2^63, 2^63); False is certain."""
    return _OVERFLOW(data) is not None


def has_huge_double(text: bytes) -> bool:
    """Whether `text`, written by orjson, may contain a double from 2^63 on; False is certain."""
    # One letter is found 20 times as fast as two, and most records have none of it.
    return HUGE_DOUBLE[-1:] in text and HUGE_DOUBLE in text


def has_long_number(data: bytes) -> bool:
    """Whether the JSON text `data` may contain a number of more than `MAX_NUMBER_DIGITS` digits; False is certain."""
    return _SAMPLED_ROW in data[::_STEP].translate(_DIGITS_TO_ZERO) and _LONG_ROW(data) is not None


def is_deeper(node: Any, levels: int) -> bool:
    """Whether lists and maps of a parsed document are nested more than `levels` times."""
    level = [node] if type(node) in (dict, list) else []
    for _ in range(levels):
        if not level:
            return False
        level = [
            item
            for node in level
            for item in (node.values() if type(node) is dict else node)
            if type(item) is dict or type(item) is list
        ]
    return bool(level)


def too_deep() -> DataError:
    """The error for a value that is nested too deeply."""
    return DataError(
        f"The value is nested too deeply: lists and maps may be nested {MAX_DEPTH} times.",
        suggestion="Pass the record through with ByteArrayConverter, or set errors.tolerance.",
    )


def parse_fast(data: bytes) -> Any:
    """Parse a document with orjson: integers below 2^64 are exact, all other numbers are doubles.

    A double with a fraction was truncated correctly; for any other, the original digits are unknown.

    Raises:
        ValueError: orjson does not accept `data`, or it is beyond a limit. `parse_exact` decides.
    """
    value = orjson.loads(data)
    if len(data) > MAX_NUMBER_DIGITS and has_long_number(data):
        raise ValueError("a number may have too many digits")
    if data.count(b"[") + data.count(b"{") > MAX_DEPTH and is_deeper(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"Non-standard token '{name}'")


def _integer(text: str) -> int:
    if len(text) > MAX_NUMBER_DIGITS and len(text.lstrip("-")) > MAX_NUMBER_DIGITS:
        raise _too_long(len(text.lstrip("-")))
    return int(text)


def _fraction(text: str) -> Decimal | VanishedNumber:
    # Shorter text has no exponent that Java refuses.
    if len(text) >= 12 and ("e" in text or "E" in text):
        try:
            parse_decimal(text)
        except ValueError:
            if len(text) > MAX_NUMBER_DIGITS or float(text) != 0:
                raise
            return VanishedNumber(text)
    if len(text) > MAX_NUMBER_DIGITS and (digits := len(text.translate(_NO_DIGITS))) > MAX_NUMBER_DIGITS:
        raise _too_long(digits)
    return Decimal(text)


def _too_long(digits: int) -> ValueError:
    return ValueError(f"Number value length ({digits}) exceeds the maximum allowed ({MAX_NUMBER_DIGITS})")


EXACT_DECODER: Final = json.JSONDecoder(parse_float=_fraction, parse_int=_integer, parse_constant=_refuse_constant)


def parse_exact(data: bytes, *, is_strict: bool = False, unread: Unread | None = None) -> Any:
    """Parse a document with exact numbers: fractions become Decimal, integers keep all digits.

    Args:
        data: the document.
        is_strict: refuse text after the document, which Jackson's readTree ignores.
        unread: is told about such text; None: nobody is.

    Returns:
        The value, which may be nested more than `MAX_DEPTH` levels; `MISSING` for an empty document.

    Raises:
        DataError: not JSON, or `is_strict` and text follows the document.
    """
    try:
        value, rest = _decode(_text_of(data).strip(_BLANKS))
        if is_strict and rest:
            raise _more_text(rest)
        if rest and unread is not None:
            unread.add(MORE_TEXT)
        return value
    except RecursionError as error:
        raise too_deep() from error
    except ValueError as error:
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {_shown(error)}.",
            suggestion="Choose the converter that fits the topic, or set errors.tolerance.",
        ) from error


def _more_text(rest: str) -> DataError:
    return DataError(
        f"The message has text after its JSON document (length: {len(rest)}).",
        code="data.json_type",
        suggestion="Correct the producer: a message is one document. Without strict.types=true only the first one is"
        " read, as in Kafka Connect.",
    )


def parse_bounded(data: bytes, *, is_strict: bool = False, unread: Unread | None = None) -> Any:
    """As `parse_exact`, and not more than `MAX_DEPTH` levels deep.

    Raises:
        DataError: not JSON, or nested too deeply.
    """
    value = parse_exact(data, is_strict=is_strict, unread=unread)
    if is_deeper(value, MAX_DEPTH):
        raise too_deep()
    return value


def parse_fragment(data: bytes) -> Any:
    """As `parse_bounded` for bytes that must be one UTF-8 document and nothing else.

    Raises:
        ValueError, RecursionError: they are not.
    """
    value, rest = _decode(data.decode("utf-8").strip(_BLANKS))
    if rest or value is MISSING:
        raise ValueError("not exactly one JSON document")
    if is_deeper(value, MAX_DEPTH):
        raise ValueError("nested too deeply")
    return value


def _shown(error: ValueError) -> str:
    # The text of UnicodeDecodeError may contain the whole message.
    return str(error.reason) if isinstance(error, UnicodeDecodeError) else str(error)


def _text_of(data: bytes) -> str:
    """The text, without one byte order mark; detects the encoding like Jackson's ByteSourceJsonBootstrapper.

    A mark is only looked for in four bytes or more, so that a message of nothing but the mark of UTF-8 or UTF-16 is
    broken. A second mark is a character like any other.
    """
    start = data[:4]
    if len(start) == 4:
        if start in (b"\0\0\xfe\xff", b"\xff\xfe\0\0"):
            return _utf32(data[4:], start[0] == 0)
        if start[:3] == b"\xef\xbb\xbf":
            return data[3:].decode("utf-8")
        if start[:2] in (b"\xfe\xff", b"\xff\xfe"):
            return _utf16(data[2:], start[0] == 0xFE)
        if start[:3] == b"\0\0\0" or start[1:] == b"\0\0\0":
            return _utf32(data, start[0] == 0)
    if len(start) >= 2 and (start[0] == 0) != (start[1] == 0):
        return _utf16(data, start[0] == 0)
    return data.decode("utf-8")


def _utf16(data: bytes, is_big: bool) -> str:
    # Java's InputStreamReader replaces malformed UTF-16 by U+FFFD.
    return data.decode("utf-16-be" if is_big else "utf-16-le", "replace")


def _utf32(data: bytes, is_big: bool) -> str:
    return data.decode("utf-32-be" if is_big else "utf-32-le")


def _decode(text: str) -> tuple[Any, str]:
    """The first document in `text` and what follows it."""
    if not text:
        return MISSING, ""
    try:
        value, end = EXACT_DECODER.raw_decode(text)
    except ValueError:
        cleaned = _without_leading_zeros(text)
        if cleaned == text:
            raise
        return _decode(cleaned)
    rest = text[end:]
    kind = type(value)
    if rest and kind in NUMBERS and rest[0] not in _BLANKS:
        cleaned = _without_leading_zeros(text)
        if cleaned != text:
            return _decode(cleaned)
        # Jackson requires a blank after a number at the root; it ignores text after other documents.
        raise ValueError(f"Unexpected character {rest[0]!r} after the number that ends at character {end}")
    if rest and kind in _LITERALS and (rest[0].isalnum() or rest[0] in "_$"):
        raise ValueError(f"Unrecognized token {shown_number(text[: end + 1])!r}")
    return value, rest


def _without_leading_zeros(text: str) -> str:
    return _LEADING_ZEROS.sub(lambda m: m[1] or m[2] or "", text)


def _escape(match: re.Match[str]) -> str:
    char = match[0]
    short = _SHORT_ESCAPES.get(char)
    if short is not None:
        return short
    code = ord(char)
    if code <= 0xFFFF:
        return f"\\u{code:04X}"
    # Jackson writes the two halves of a surrogate pair one by one.
    code -= 0x10000
    return f"\\u{0xD800 + (code >> 10):04X}\\u{0xDC00 + (code & 0x3FF):04X}"


def string_text(value: str) -> str:
    """A JSON string as Jackson writes it: characters beyond the BMP and controls as upper case escapes."""
    if value.isascii() and value.isprintable():
        return encode_basestring(value)
    return '"' + _NEEDS_JACKSON_ESCAPE.sub(_escape, value) + '"'
