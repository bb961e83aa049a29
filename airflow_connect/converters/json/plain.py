"""Plain JSON messages, without an envelope, as schemaless values."""

from __future__ import annotations

from typing import Any

import orjson

from airflow_connect.converters.json.reader import schemaless_payload
from airflow_connect.converters.json.text import (
    MAX_DEPTH,
    MAX_NUMBER_DIGITS,
    has_huge_double,
    has_long_number,
    is_deeper,
    may_overflow,
    parse_exact,
    too_deep,
)
from airflow_connect.converters.unread import Unread

# How much shorter a number with too many digits becomes as a double, which has at most 25 characters.
_MUCH_SHORTER = MAX_NUMBER_DIGITS - 25


def plain_json(data: bytes, *, is_strict: bool = False, unread: Unread | None = None) -> Any:
    """A message of plain JSON (`schemas.enable=false`) as a schemaless value.

    An empty message is None. Integers beyond 64 bits wrap and numbers beyond a double are infinite, as in
    Connect; `is_strict` refuses both. `unread` is told about them, and about text after the document.

    Raises:
        DataError: not JSON, beyond a limit of `json_text`, or such a number.
    """
    try:
        value = orjson.loads(data)
        # orjson reads integers beyond 64 bits as a double or an unsigned number. Writing the value again is the
        # cheapest way to exclude them: integers beyond 53 bits fail, large doubles are found by `has_huge_double`.
        if len(data) < 19:
            return value
        written = orjson.dumps(value, None, orjson.OPT_STRICT_INTEGER)
        # A number with too many digits would have become much shorter. Only a document full of exponents could hide it.
        is_as_long = len(data) - len(written) < _MUCH_SHORTER or not has_long_number(data)
        if is_as_long and not has_huge_double(written):
            return value
    except (orjson.JSONDecodeError, orjson.JSONEncodeError):
        pass
    if may_overflow(data):
        return _exact(data, is_strict=is_strict, unread=unread)
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError:
        return _exact(data, is_strict=is_strict, unread=unread)
    if is_deeper(value, MAX_DEPTH):
        raise too_deep()
    return value


def _exact(data: bytes, *, is_strict: bool, unread: Unread | None) -> Any:
    node = parse_exact(data, is_strict=is_strict, unread=unread)
    return schemaless_payload(node, is_strict=is_strict, unread=unread)
