"""What the words of a statement are, without its comments, texts and quoted names."""

from __future__ import annotations

import re

_MARK = "\x01"
_OTHERS = re.compile(
    r"""--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|\$(\w*+)\$(?:.*?\$\1\$|.*+)"""
    r"""|'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`(?:[^`]|``)*+(?:`|\Z)""",
    re.DOTALL,
)


def without_texts(statement: str, comment: str = _MARK) -> str:
    """The statement with a mark in place of each text and quoted name, and with `comment` in place of each comment."""
    return _OTHERS.sub(lambda found: comment if found[0].startswith(("--", "/*")) else _MARK, statement)
