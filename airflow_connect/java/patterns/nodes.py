"""The nodes of a Java pattern."""

from __future__ import annotations

from dataclasses import dataclass, field

from airflow_connect.java.patterns.char_sets import CharSet


class PatternError(ValueError):
    """The text is not a Java pattern, or it is not supported here; the message has the reason and the position."""


@dataclass(slots=True)
class Node:
    """A part of a pattern."""


@dataclass(slots=True)
class Chars(Node):
    """One character out of a set."""

    chars: CharSet


@dataclass(slots=True)
class Sequence(Node):
    """Parts one after another; none: the empty text."""

    parts: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Choice(Node):
    """The first branch that leads to a match."""

    branches: list[Node]


@dataclass(slots=True)
class Group(Node):
    """A part in parentheses.

    Attributes:
        kind: `(` capturing, `(?:`, `(?>`, `(?=`, `(?!`, `(?<=` or `(?<!`.
        number: of a capturing group, from 1.
        name: of a capturing group, or "".
    """

    kind: str
    body: Node
    number: int = 0
    name: str = ""


@dataclass(slots=True)
class Repeat(Node):
    """A repeated part.

    Attributes:
        least, most: number of repetitions; `most` None: no limit.
        mode: "" greedy, `?` reluctant, `+` possessive.
    """

    body: Node
    least: int
    most: int | None
    mode: str


@dataclass(slots=True)
class Anchor(Node):
    r"""A kind of position: `^ $ \A \z \b \B \G`; `$` also represents `\Z`.

    Attributes:
        multiline, unix_lines, unicode: the flags m, d and U, if they matter.
    """

    kind: str
    multiline: bool = False
    unix_lines: bool = False
    unicode: bool = False


@dataclass(slots=True)
class BackReference(Node):
    """What a group has matched.

    Attributes:
        ignores_case, unicode_case: the flags i and u.
    """

    number: int
    ignores_case: bool = False
    unicode_case: bool = False


@dataclass(slots=True)
class Special(Node):
    r"""`\R` or `\X`."""

    kind: str


def parts_of(node: Node) -> list[Node]:
    """The parts that a node consists of."""
    if isinstance(node, Sequence):
        return node.parts
    if isinstance(node, Choice):
        return node.branches
    return [node.body] if isinstance(node, Group | Repeat) else []


@dataclass(frozen=True, slots=True)
class Pattern:
    """A pattern that was read.

    Attributes:
        groups: number of capturing groups.
        names: number of each named group.
    """

    root: Node
    groups: int
    names: dict[str, int]
