"""Which patterns RE2, the engine of Arrow's `extract_regex`, searches as Java does, and their text in RE2's syntax.

Character classes and the dot are written out, so the engines can only differ in constructs that are rejected here:
look-around, back references, possessive parts, groups in repetitions, repetitions of what may be empty, the anchors of
lines.
"""

from __future__ import annotations

from collections.abc import Collection

from airflow_connect.java.patterns.char_sets import Ranges, complement
from airflow_connect.java.patterns.compiled import JavaPattern
from airflow_connect.java.patterns.look_behind import extent
from airflow_connect.java.patterns.nodes import Anchor, Chars, Choice, Group, Node, Repeat, Sequence, parts_of

_MOST_REPEATS = 1000
_ALWAYS, _MAYBE, _REPEATED = range(3)
"""How often a part of a pattern takes part in a match."""
_ANCHORS = {r"\A": r"\A", r"\z": r"\z", "$": r"\z", r"\b": r"\b", r"\B": r"\B"}
_LAST = 0x10FFFF


def re2_text(node: Node, names: Collection[str]) -> str:
    """A pattern that `common_groups` allows, in RE2's syntax; groups that are not in `names` do not capture."""
    if isinstance(node, Chars):
        return _chars(node.chars.ranges or ())
    if isinstance(node, Sequence):
        parts = [re2_text(part, names) for part in node.parts]
        pairs = zip(parts, node.parts, strict=True)
        return "".join(f"(?:{text})" if isinstance(part, Choice) else text for text, part in pairs)
    if isinstance(node, Choice):
        return "|".join(re2_text(branch, names) for branch in node.branches)
    if isinstance(node, Group):
        return f"({f'?P<{node.name}>' if node.name in names else '?:'}{re2_text(node.body, names)})"
    if isinstance(node, Repeat):
        most = "" if node.most is None else node.most
        return f"(?:{re2_text(node.body, names)}){{{node.least},{most}}}{node.mode}"
    return _ANCHORS[getattr(node, "kind", "")]


def _chars(ranges: Ranges) -> str:
    inverted = ranges[0][0] == 0 and ranges[-1][1] == _LAST and len(ranges) > 1
    listed = complement(ranges) if inverted else ranges
    inner = "".join(rf"\x{{{a:x}}}" if a == b else rf"\x{{{a:x}}}-\x{{{b:x}}}" for a, b in listed)
    return f"[{'^' if inverted else ''}{inner}]"


def common_groups(pattern: JavaPattern) -> frozenset[str] | None:
    """The groups that may not take part in a match, if both engines find the same with the pattern; else None.

    RE2 cannot tell a group that took no part from an empty match: such a group must not be able to match the empty
    text.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pattern.names or pattern.groups != len(pattern.names):
        return None
    walk = _Walk()
    if not walk.is_common(pattern.root, _ALWAYS):
        return None
    try:
        pc.extract_regex(pa.array([""], pa.string()), re2_text(pattern.root, pattern.names))
    except pa.ArrowInvalid:
        return None
    return frozenset(walk.optional)


def has_end_anchor(node: Node) -> bool:
    """Whether the pattern contains `$`, which in Java also matches before a line end at the end of the text."""
    if isinstance(node, Anchor):
        return node.kind == "$"
    return any(map(has_end_anchor, parts_of(node)))


class _Walk:
    """Inspects the parts of a pattern; `optional` are the names of groups that need not take part in a match."""

    def __init__(self) -> None:
        self.optional: set[str] = set()

    def is_common(self, node: Node, how_often: int) -> bool:
        if isinstance(node, Chars):
            return bool(node.chars.ranges)
        if isinstance(node, Anchor):
            return node.kind in _ANCHORS and not node.multiline and not node.unicode
        if isinstance(node, Sequence):
            return all(self.is_common(part, how_often) for part in node.parts)
        if isinstance(node, Choice):
            return all(self.is_common(branch, max(how_often, _MAYBE)) for branch in node.branches)
        if isinstance(node, Repeat):
            return self._is_common_repeat(node, how_often)
        return isinstance(node, Group) and self._is_common_group(node, how_often)

    def _is_common_repeat(self, node: Repeat, how_often: int) -> bool:
        if node.least > _MOST_REPEATS or (node.most is not None and not 0 < node.most <= _MOST_REPEATS):
            return False
        # The engines repeat parts that may match the empty text differently.
        if node.mode == "+" or extent(node.body).least == 0:
            return False
        return self.is_common(node.body, max(how_often, _MAYBE if node.most == 1 else _REPEATED))

    def _is_common_group(self, node: Group, how_often: int) -> bool:
        if node.kind not in ("(", "(?:"):
            return False
        if node.name and how_often == _MAYBE:
            self.optional.add(node.name)
            if extent(node.body).least == 0:
                return False
        elif node.name and how_often != _ALWAYS:
            return False
        return self.is_common(node.body, how_often)
