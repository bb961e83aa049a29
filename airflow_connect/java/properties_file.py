"""Java's .properties text: configurations of connectors and workers, files of config providers.

Source of the grammar: java.util.Properties.load (Java 17). Errors name the file and the line, but never the text,
which may be a secret.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from airflow_connect.errors import ConfigError

_BLANKS = " \t\f"
_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_LINE_END = re.compile(r"\r\n|\r|\n")
_KEY = re.compile(r"((?:[^\\=: \t\f]|\\.)*)[ \t\f]*(?:[=:][ \t\f]*)?", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9A-Fa-f]{4}|.)", re.DOTALL)


def decode(content: bytes) -> str:
    """UTF-8, with or without byte order mark; otherwise ISO-8859-1, Java's former encoding."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return content.decode("iso-8859-1")


def parse_properties(text: str, source: str = "properties") -> dict[str, str]:
    r"""Keys and values of Java properties text; the last value of a repeated key counts.

    Args:
        text: decoded content.
        source: file name for messages.

    Raises:
        ConfigError: a `\u` is not followed by four hexadecimal digits.
    """
    return {key: value for key, value, _ in property_lines(text, source)}


def property_lines(text: str, source: str = "properties") -> Iterator[tuple[str, str, int]]:
    """Key, value and first line of each property, in their order; see `parse_properties`."""
    for number, line in _logical_lines(text):
        match = _KEY.match(line)
        key, value = (match.group(1), line[match.end() :]) if match else (line, "")
        yield _unescape(key, source, number), _unescape(value, source, number), number


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Lines without comments and blanks, continuation joined, each with the number of its first line."""
    pending, first = "", 0
    for number, natural in enumerate(_LINE_END.split(text), 1):
        line = natural.lstrip(_BLANKS)
        if not first:
            if not line or line[0] in "#!":
                continue
            first = number
        pending += line
        if _is_continued(line):
            pending = pending[:-1]
            continue
        yield first, pending
        pending, first = "", 0
    if first:
        yield first, pending


def _is_continued(line: str) -> bool:
    """An odd number of backslashes at the end: the last one is not an escaped backslash."""
    return (len(line) - len(line.rstrip("\\"))) % 2 == 1


def _unescape(text: str, source: str, number: int) -> str:
    if "\\" not in text:
        return text

    def replace(match: re.Match[str]) -> str:
        escaped = match.group(1)
        if len(escaped) == 5:
            return chr(int(escaped[1:], 16))
        if escaped == "u":
            raise ConfigError(
                f"{source}, line {number}: \\u is not followed by four hexadecimal digits.",
                code="config.file_invalid",
                suggestion="Write a backslash as two backslashes.",
            )
        return _ESCAPES.get(escaped, escaped)

    replaced = _ESCAPE.sub(replace, text)
    # Characters beyond U+FFFF are written as two \\u escapes, a surrogate pair.
    return replaced.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
