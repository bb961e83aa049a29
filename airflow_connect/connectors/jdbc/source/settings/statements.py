"""What the words of a statement are, without its comments, texts and quoted names."""

from __future__ import annotations

import re

_MARK = "\x01"
_COMMENT = r"/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)"
_STANDARD = re.compile(
    rf"--[^\n]*+|{_COMMENT}|(?<![\w$])\$(\w*+)\$(?:.*?\$\1\$|.*+)"
    # A text with backslashes of PostgreSQL; no other database has an E before a text.
    r"""|(?<![\w$])[eE]'(?:[^'\\]|\\.|'')*+(?:'|\Z)"""
    r"""|'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`(?:[^`]|``)*+(?:`|\Z)""",
    re.DOTALL,
)
_MYSQL = re.compile(
    # Two hyphens are a comment only before a blank: 5--1 is 6.
    rf"--(?=\s|\Z)[^\n]*+|#[^\n]*+|{_COMMENT}"
    r"""|'(?:[^'\\]|\\.|'')*+(?:'|\Z)|"(?:[^"\\]|\\.|"")*+(?:"|\Z)|`(?:[^`]|``)*+(?:`|\Z)""",
    re.DOTALL,
)
"""Of MySQL and MariaDB."""


def spelling(statement: str, *, database: str = "") -> list[str]:
    """The statement in pieces, which stay the same if only the white space between its words changes.

    Args:
        statement: of SQL.
        database: as for `without_texts`.
    """
    pieces, end = [], 0
    for found in (_MYSQL if database == "mysql" else _STANDARD).finditer(statement):
        pieces += [_spaced(statement[end : found.start()]), found[0]]
        end = found.end()
    pieces.append(_spaced(statement[end:]))
    return [pieces[0].lstrip(), *pieces[1:-1], pieces[-1].rstrip()] if len(pieces) > 1 else [pieces[0].strip()]


def _spaced(words: str) -> str:
    return re.sub(r"\s+", " ", words)


def without_texts(statement: str, comment: str = _MARK, *, database: str = "") -> str:
    """The statement with a mark in place of each text and quoted name, and with `comment` in place of each comment.

    Args:
        statement: of SQL.
        comment: what comments become.
        database: `mysql` for MySQL and MariaDB, where a backslash may stand before an apostrophe, and # begins a
            comment; any other one has the form of PostgreSQL and SQLite.
    """
    form = _MYSQL if database == "mysql" else _STANDARD
    return form.sub(lambda found: comment if found[0].startswith(("--", "/*", "#")) else _MARK, statement)
