"""What the words of a statement are, without its comments, texts and quoted names."""

from __future__ import annotations

import re

_OTHERS = re.compile(
    r"""--[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/|\Z)|\$(\w*+)\$(?:.*?\$\1\$|.*+)"""
    r"""|'(?:[^']|'')*+(?:'|\Z)|"(?:[^"]|"")*+(?:"|\Z)|`(?:[^`]|``)*+(?:`|\Z)""",
    re.DOTALL,
)


def without_texts(statement: str) -> str:
    """The statement with a mark in place of each comment, text and quoted name."""
    return _OTHERS.sub("\x01", statement)
