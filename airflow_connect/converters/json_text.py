"""JSON text as Jackson reads and writes it: exact numbers, exact strings, and what Jackson tolerates.

orjson is the fast way and `parse_exact` the slow one that knows the differences:
integers beyond 64 bits, numbers beyond a double, leading zeros, lone surrogates, a byte order mark, UTF-16
and UTF-32, an empty document and text after the document. Source: Jackson 2 as JsonConverter sets it up
(leading zeros allowed, BigDecimal for fractions), recorded against Kafka Connect 4.3.1.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from json.encoder import encode_basestring
from typing import Any, Final

import orjson

from airflow_connect.api.errors import DataError

# Part of every double from 2^63 on as orjson writes it, as in 9.3e+18; should a version leave out the plus,
# any e.
HUGE_DOUBLE: Final = b"e+" if b"e+" in orjson.dumps(2.0**63) else b"e"
# 20 digits and more, or 19 digits from 92... on: may be 2^63 or larger.
_OVERFLOW: Final = re.compile(rb"[0-9]{20}|9[2-9][0-9]{17}").search
# A string, or a number with zeros in front; the zeros are dropped, the string is kept.
_LEADING_ZEROS: Final = re.compile(r'("(?:[^"\\]|\\.)*")|(?<![\w.+])(-?)0+(?=[0-9])', re.DOTALL)
_BLANKS: Final = " \t\r\n"
_NUMBERS: Final = (int, float, Decimal)
_LITERALS: Final = (bool, type(None))
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


def may_overflow(data: bytes) -> bool:
    """Whether the JSON text `data` may hold an integer outside of [-2^63, 2^63); a False is sure."""
    return _OVERFLOW(data) is not None


def parse_fast(data: bytes) -> Any:
    """Parse a document with orjson: integers below 2^64 are exact, fractions are doubles.

    Raises:
        ValueError: `data` is not JSON to orjson, or an integer may have become a double. `parse_exact` knows.
    """
    value = orjson.loads(data)
    if len(data) > 18:
        try:
            # Writing costs less than looking for long numbers in the text.
            written = orjson.dumps(value)
        except TypeError as error:
            raise ValueError("nested too deeply to be looked through") from error
        if HUGE_DOUBLE in written:
            raise ValueError("a number may have lost digits")
    return value


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"Non-standard token '{name}'")


EXACT_DECODER: Final = json.JSONDecoder(parse_float=Decimal, parse_constant=_refuse_constant)


def parse_exact(data: bytes) -> Any:
    """Parse a document with exact numbers: fractions become Decimal, integers keep all digits.

    Returns:
        The value; `MISSING` for an empty document. Text after the document is ignored, as Jackson's readTree
        does.

    Raises:
        DataError: not JSON.
    """
    try:
        return _decode(_text_of(data).strip(_BLANKS))[0]
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DataError(
            f"Converting byte[] to Kafka Connect data failed due to serialization error: {reason}.",
            suggestion="Choose the converter that fits the topic, or set errors.tolerance.",
        ) from error


def parse_fragment(data: bytes) -> Any:
    """As `parse_exact` for bytes that must be one UTF-8 document and nothing else.

    Raises:
        ValueError, RecursionError: they are not.
    """
    value, rest = _decode(data.decode("utf-8").strip(_BLANKS))
    if rest or value is MISSING:
        raise ValueError("not exactly one JSON document")
    return value


def _text_of(data: bytes) -> str:
    return data.decode(json.detect_encoding(data), "strict").removeprefix("\ufeff")


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
    if rest and kind in _NUMBERS and rest[0] not in _BLANKS:
        cleaned = _without_leading_zeros(text)
        if cleaned != text:
            return _decode(cleaned)
        # Jackson wants a blank after a number at the root; what follows other documents it never looks at.
        raise ValueError(f"Unexpected character {rest[0]!r} after the number that ends at character {end}")
    if rest and kind in _LITERALS and (rest[0].isalnum() or rest[0] in "_$"):
        raise ValueError(f"Unrecognized token {text[: end + 1]!r}")
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
