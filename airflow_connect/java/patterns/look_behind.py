"""Which look-behinds Java accepts: those whose maximum length it can determine, by its own rules."""

from __future__ import annotations

from typing import NamedTuple

from airflow_connect.java.patterns.nodes import (
    BackReference,
    Chars,
    Choice,
    Group,
    Node,
    PatternError,
    Repeat,
    Sequence,
    Special,
)


class Extent(NamedTuple):
    """How long a match may be.

    Attributes:
        most: None: Java cannot determine a maximum length.
        is_determined: the part can match in one way only, as far as Java can tell.
        has_memory: it captures, refers back, or does not backtrack, so the direction of matching matters.
    """

    least: int
    most: int | None
    is_determined: bool = True
    has_memory: bool = False


def check_look_behind(body: Node) -> None:
    """Refuse what Java refuses in a look-behind, and what cannot be matched from right to left.

    Raises:
        PatternError: with the reason.
    """
    found = extent(body)
    if found.most is None:
        raise PatternError("Look-behind group does not have an obvious maximum length")
    if found.has_memory and found.least != found.most:
        raise PatternError(
            "Look-behinds of varying length with groups, back references or possessive parts are not supported"
        )


def extent(node: Node) -> Extent:
    """How long a match of `node` may be, as far as Java can tell."""
    if isinstance(node, Chars):
        return Extent(1, 1)
    if isinstance(node, Special):
        return Extent(1, 2) if node.kind == "R" else Extent(1, None, False)
    if isinstance(node, BackReference):
        return Extent(0, None, True, True)
    if isinstance(node, Sequence):
        parts = [extent(part) for part in node.parts]
        return Extent(
            sum(part.least for part in parts),
            _total([part.most for part in parts]),
            all(part.is_determined for part in parts),
            any(part.has_memory for part in parts),
        )
    if isinstance(node, Choice):
        parts = [extent(branch) for branch in node.branches]
        lengths = [part.most for part in parts if part.most is not None]
        most = max(lengths) if len(lengths) == len(parts) else None
        return Extent(min(part.least for part in parts), most, False, any(part.has_memory for part in parts))
    if isinstance(node, Group):
        return _group_extent(node)
    return _repeat_extent(node) if isinstance(node, Repeat) else Extent(0, 0)


def _group_extent(node: Group) -> Extent:
    if node.kind not in ("(", "(?:", "(?>"):
        return Extent(0, 0, True, extent(node.body).has_memory)
    body = extent(node.body)
    return body._replace(has_memory=body.has_memory or node.kind != "(?:")


def _repeat_extent(node: Repeat) -> Extent:
    body = extent(node.body)
    most = None if node.most is None or body.most is None else body.most * node.most
    has_memory = body.has_memory or node.mode == "+"
    is_optional = (node.least, node.most) == (0, 1)
    is_group = isinstance(node.body, Group) and node.body.kind in ("(", "(?:", "(?>")
    if is_group and node.mode != "+" and not is_optional and not body.is_determined:
        # Java matches such a group in a loop whose length it does not know, whatever the count is.
        most = None
    is_determined = body.is_determined and node.least == node.most and not is_optional
    return Extent(body.least * node.least, most, is_determined, has_memory)


def _total(lengths: list[int | None]) -> int | None:
    known = [length for length in lengths if length is not None]
    return sum(known) if len(known) == len(lengths) else None
