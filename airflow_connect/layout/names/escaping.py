"""Record values inside directory names: harmless values stay verbatim, harmful ones are percent-escaped.

Kafka Connect's sinks put field values into object keys unchanged, so a value `a/../../b` leads out of `topics.dir`.
Here the following are written as `%XX` (upper-case UTF-8 bytes), and everything else stays unchanged:

* `/` and the backslash, which some stores and operating systems treat as a separator;
* control characters (C0, DEL, C1), lone surrogates, U+FFFE and U+FFFF, which S3 and XML cannot carry;
* the first character of every directory delimiter, so that directories of several fields stay distinct;
* the whole values `.` and `..`;
* other characters that the file system forbids: `:` in HDFS, as `%3A`;
* `%` if the following text would otherwise look like one of these escapes: `%2F` becomes `%252F`, while `100%` and
  `%20` stay.

`unescape` is the exact inverse, so no two texts share a directory. A null value is the text `null`, as in Confluent's
partitioner, so these two do.
"""

from __future__ import annotations

import re
from functools import lru_cache

from airflow_connect.errors import ConfigError

_HARMFUL = r"\x00-\x1f\x7f-\x9f/\\\ud800-\udfff\ufffe\uffff"
_ESCAPE_TAILS = (
    r"2F|5C|25|2E|7F|[01][0-9A-F]"  # slash, backslash, percent, dot, DEL, C0
    r"|C2%[89][0-9A-F]"  # C1
    r"|ED%[AB][0-9A-F]%[89AB][0-9A-F]"  # lone surrogates, in the bytes of "surrogatepass"
    r"|EF%BF%B[EF]"  # U+FFFE, U+FFFF
)


def escape(value: str, delimiter: str = "/", forbidden: str = "") -> str:
    """`value` as it appears in a directory name.

    Args:
        value: any text, including lone surrogates.
        delimiter: `directory.delim`; must pass `check_delimiter`.
        forbidden: other characters that names must not contain.

    Returns:
        `value` itself if it is harmless.
    """
    if value in (".", ".."):
        return "%2E" * len(value)
    # Include the delimiter that will follow: with "--", a value that ends in "-" would move the boundary.
    text = value + delimiter
    parts, end = [], 0
    for match in _harmful_character(delimiter, forbidden).finditer(text):
        if match.start() >= len(value):
            break
        parts += [text[end : match.start()], _percent(match.group())]
        end = match.end()
    return "".join(parts) + value[end:] if parts else value


def unescape(text: str, delimiter: str = "/", forbidden: str = "") -> str:
    """The value whose `escape` is `text`."""
    return _escapes(delimiter, forbidden).sub(_decoded, text)


def check_delimiter(delimiter: str, config_path: str) -> str:
    """`delimiter`, unless names built with it would be ambiguous.

    Raises:
        ConfigError: it is blank, or contains a letter, digit or `%`, which occur in escapes and offsets.
    """
    if not delimiter.strip() or re.search("[A-Za-z0-9%]", delimiter):
        raise ConfigError(
            f"{config_path}={delimiter!r} cannot separate the parts of an object name.",
            code="layout.bad_delimiter",
            suggestion="Use punctuation such as '/', '_' or '+'.",
            config_path=config_path,
        )
    return delimiter


def escaped_pattern(delimiter: str, forbidden: str = "") -> str:
    """Regular expression of every text that `escape` can return; it never spans a `delimiter`."""
    return f"(?:(?!{re.escape(delimiter)})[^{_HARMFUL}{re.escape(forbidden)}])*?"


@lru_cache(maxsize=16)
def _harmful_character(delimiter: str, forbidden: str) -> re.Pattern[str]:
    harmful = _HARMFUL + re.escape(forbidden)
    return re.compile(rf"(?s)[{harmful}]|%(?={_tails(delimiter, forbidden)})|(?={re.escape(delimiter)}).")


@lru_cache(maxsize=16)
def _escapes(delimiter: str, forbidden: str) -> re.Pattern[str]:
    return re.compile(f"(?:%(?:{_tails(delimiter, forbidden)}))+")


def _tails(delimiter: str, forbidden: str) -> str:
    return "|".join([_ESCAPE_TAILS, *(_percent(character)[1:] for character in (delimiter[0], *forbidden))])


def _percent(text: str) -> str:
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "surrogatepass"))


def _decoded(match: re.Match[str]) -> str:
    return bytes.fromhex(match.group().replace("%", "")).decode("utf-8", "surrogatepass")
