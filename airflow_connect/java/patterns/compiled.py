"""Compiled Java patterns, and replacement texts."""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

from airflow_connect.errors import ConfigError
from airflow_connect.java.patterns.nodes import Choice, Node, PatternError, Repeat, parts_of
from airflow_connect.java.patterns.parsing import parse
from airflow_connect.java.patterns.writing import Written

MATCH_TIMEOUT_S = 10.0
"""Time limit for matching one text: catastrophic backtracking would otherwise hang the run, as it does in Java."""
_SHORT_TEXT, _FEW_REPEATS = 500, 2
_NAME = re.compile(r"[A-Za-z0-9]*")


class Match(Protocol):
    """A match: the part of `re.Match` that is used."""

    def __getitem__(self, group: int | str, /) -> Any: ...

    def start(self, group: int | str = 0, /) -> int:
        """Where a group begins; -1: it did not take part."""

    def end(self, group: int | str = 0, /) -> int:
        """Where a group ends."""

    def groups(self) -> tuple[str | None, ...]:
        """What each group matched."""


class JavaPattern:
    """A pattern, ready to be matched; can be pickled.

    Attributes:
        text: as written in Java.
        groups: number of capturing groups.
        names: number of each named group.
    """

    def __init__(self, text: str, *, python_names: bool = False) -> None:
        """Compile `text`; see `parse`.

        Raises:
            PatternError: Java refuses it, or it is not supported here.
        """
        self.text = text
        self._python_names = python_names
        parsed = parse(text, python_names=python_names)
        self.root = parsed.root
        self.groups, self.names = parsed.groups, parsed.names
        self._compiled = _compile(Written(parsed), text)
        self._needs_limit = _may_backtrack_long(parsed.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return compile_java_pattern, (self.text, self._python_names)

    def fullmatch(self, text: str) -> Match | None:
        """`Matcher.matches()`.

        Raises:
            ConfigError: it takes too long.
        """
        return self._limited(self._compiled.fullmatch, text)

    def search(self, text: str) -> Match | None:
        """`Matcher.find()` from the start.

        Raises:
            ConfigError: it takes too long.
        """
        return self._limited(self._compiled.search, text)

    def _limited(self, method: Callable[..., Match | None], text: str) -> Match | None:
        # The limit costs more than a simple search in a short text.
        if not self._needs_limit and len(text) <= _SHORT_TEXT:
            return method(text)
        try:
            return method(text, timeout=MATCH_TIMEOUT_S)
        except TimeoutError as error:
            raise self._too_slow() from error

    def _too_slow(self) -> ConfigError:
        return ConfigError(
            f"The regular expression {self.text[:200]} took longer than {MATCH_TIMEOUT_S:.0f} s for one text.",
            code="config.regex_too_slow",
            suggestion="Avoid repetition inside repetition, such as (a+)+, or make the inner one possessive.",
        )


def _may_backtrack_long(root: Node) -> bool:
    """Whether a short text may be matched in so many ways that trying them takes long."""
    variable = [node for node in _walk(root) if isinstance(node, Repeat) and node.least != node.most]
    repeated = [node for node in _walk(root) if isinstance(node, Repeat) and node.most != 1]
    return len(variable) > _FEW_REPEATS or any(
        isinstance(part, Repeat | Choice) for node in repeated for part in _walk(node.body)
    )


def _walk(node: Node) -> Iterator[Node]:
    yield node
    for part in parts_of(node):
        yield from _walk(part)


@lru_cache(maxsize=256)
def compile_java_pattern(text: str, python_names: bool = False) -> JavaPattern:
    """A compiled pattern; see `JavaPattern`.

    Raises:
        PatternError: Java refuses it, or it is not supported here.
    """
    return JavaPattern(text, python_names=python_names)


def _compile(written: Written, text: str) -> Any:
    regex = importlib.import_module("regex")
    try:
        return regex.compile(written.text, regex.VERSION1 | (regex.ASCII if written.is_ascii else 0))
    except regex.error as error:
        reason = "Unknown character property name" if "property" in str(error) else f"Not supported ({error})"
        raise PatternError(f"{reason} in {text[:200]}") from None


class Replacement:
    """The text that replaces a match: `$1`, `${name}`, and a backslash before literal characters."""

    def __init__(self, text: str, pattern: JavaPattern) -> None:
        """Read `text`.

        Raises:
            PatternError: it names a group that `pattern` does not have, or ends in the middle of a reference.
        """
        self._parts: list[str | int] = []
        self._pattern = pattern
        position = 0
        while position < len(text):
            if text[position] not in "\\$":
                self._parts.append(text[position])
                position += 1
            elif position + 1 == len(text):
                missing = (
                    "character to be escaped" if text[position] == "\\" else "Illegal group reference: group index"
                )
                raise PatternError(f"{missing} is missing")
            elif text[position] == "\\":
                self._parts.append(text[position + 1])
                position += 2
            else:
                position = self._reference(text, position + 1)

    def _reference(self, text: str, position: int) -> int:
        """Read the group after a dollar sign; returns where the text continues."""
        if text[position] == "{":
            return self._named_reference(text, position + 1)
        if text[position] not in "0123456789":
            raise PatternError("Illegal group reference")
        group = int(text[position])
        position += 1
        if group > self._pattern.groups:
            raise PatternError(f"No group {group}")
        # As in Java, further digits belong to the number if such a group exists.
        while position < len(text) and text[position] in "0123456789":
            longer = group * 10 + int(text[position])
            if longer > self._pattern.groups:
                break
            group, position = longer, position + 1
        self._parts.append(group)
        return position

    def _named_reference(self, text: str, position: int) -> int:
        """Read a name and the brace after it; error messages as in Java's Matcher."""
        name = _NAME.match(text, position)[0]  # type: ignore[index]  # it matches the empty text, too
        end = position + len(name)
        if not name:
            raise PatternError("named capturing group has 0 length name")
        if text[end : end + 1] != "}":
            raise PatternError("named capturing group is missing trailing '}'")
        if name[0].isdigit():
            raise PatternError(f"capturing group name {{{name}}} starts with digit character")
        if name not in self._pattern.names:
            raise PatternError(f"No group with name {{{name}}}")
        self._parts.append(self._pattern.names[name])
        return end + 1

    def expand(self, match: Match) -> str:
        """The replacement of one match; a group that did not take part is empty."""
        return "".join(part if isinstance(part, str) else match[part] or "" for part in self._parts)
