"""Nodes of a pattern in the syntax of the `regex` package, version 1."""

from __future__ import annotations

from airflow_connect.java.patterns.char_sets import CharSet
from airflow_connect.java.patterns.nodes import (
    Anchor,
    BackReference,
    Chars,
    Choice,
    Group,
    Node,
    Pattern,
    Repeat,
    Sequence,
    Special,
    parts_of,
)
from airflow_connect.java.patterns.properties import LINE_ENDS, escape_class

_LINE_END = r"\r\n|[\n\x0b\f\r\x85\u2028\u2029]"
_NEVER = "(?!)"
_NOT_INSIDE_CRLF = r"(?<!\r(?=\n))"


class Written:
    """A pattern as text.

    Attributes:
        text: for `regex`, version 1.
        is_ascii: it may be compiled with the ASCII flag: it has no Unicode property and no Unicode letter case.
    """

    def __init__(self, pattern: Pattern) -> None:
        """Write `pattern`."""
        self._groups = pattern.groups
        self.is_ascii = not _needs_unicode(pattern.root)
        self.text = self._written(pattern.root)

    def _written(self, node: Node) -> str:
        if isinstance(node, Chars):
            return node.chars.written()
        if isinstance(node, Sequence):
            return "".join(self._part(part) for part in node.parts)
        if isinstance(node, Choice):
            return "|".join(self._written(branch) for branch in node.branches)
        if isinstance(node, Group):
            opening = f"(?P<{node.name}>" if node.name else node.kind
            return f"{opening}{self._written(node.body)})"
        if isinstance(node, Repeat):
            return self._repeat(node)
        if isinstance(node, BackReference):
            return self._reference(node)
        if isinstance(node, Anchor):
            return _anchor(node, is_ascii=self.is_ascii)
        return f"(?:{_LINE_END})" if isinstance(node, Special) and node.kind == "R" else r"\X"

    def _part(self, node: Node) -> str:
        return f"(?:{self._written(node)})" if isinstance(node, Choice) else self._written(node)

    def _repeat(self, node: Repeat) -> str:
        body = self._written(node.body)
        if isinstance(node.body, Special) and node.body.kind == "R":
            # In a repetition, Java does not backtrack into a line end of two characters.
            body = f"(?>{_LINE_END})"
        elif not isinstance(node.body, Chars | Group):
            body = f"(?:{body})"
        count = {(0, None): "*", (1, None): "+", (0, 1): "?"}.get((node.least, node.most))
        if count is None:
            count = f"{{{node.least}}}" if node.least == node.most else f"{{{node.least},{node.most or ''}}}"
            if node.most == 0:
                count = "{0}"
        return f"{body}{count}{node.mode}"

    def _reference(self, node: BackReference) -> str:
        # A group that does not exist has matched nothing, so the reference never matches.
        if node.number > self._groups:
            return _NEVER
        text = f"\\g<{node.number}>"
        return f"(?i-f:{text})" if node.ignores_case else text


def _anchor(node: Anchor, *, is_ascii: bool) -> str:
    if node.kind in (r"\b", r"\B"):
        if is_ascii:
            return node.kind
        word = (escape_class("w", unicode=node.unicode) or CharSet(())).inside()
        if node.kind == r"\b":
            return f"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
        return f"(?:(?<={word})(?={word})|(?<!{word})(?!{word}))"
    if node.kind in (r"\A", r"\G"):
        # A match always begins at the start of the text here.
        return r"\A"
    if node.kind == r"\z":
        return r"\Z"
    ends = r"\n" if node.unix_lines else LINE_ENDS.written()
    guard = "" if node.unix_lines else _NOT_INSIDE_CRLF
    if node.kind == "^":
        return rf"(?!\Z)(?:\A|(?<={ends}){guard})"
    if node.multiline:
        return rf"(?:\Z|(?={ends}){guard})"
    last = ends if node.unix_lines else rf"(?:\r\n|{ends})"
    return rf"(?:(?={last}?\Z){guard})"


def _needs_unicode(node: Node) -> bool:
    if isinstance(node, Chars):
        return node.chars.ranges is None
    if isinstance(node, BackReference):
        return node.ignores_case and node.unicode_case
    if isinstance(node, Anchor):
        return node.unicode
    if isinstance(node, Special):
        return node.kind == "X"
    return any(map(_needs_unicode, parts_of(node)))
