r"""Grok: named regular expressions, and `%{NAME:field:type}` to capture what they match.

`%{NAME}` only matches; `%{NAME:field}` also defines a field, `%{NAME:field:int}` one with a type. `(?<field>...)`
defines a field as well. The built-in names are in grok_patterns.txt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import NamedTuple

from airflow_connect.api.config.near_names import did_you_mean, nearest
from airflow_connect.errors import ConfigError

_REFERENCE = re.compile(r"%\{(?P<name>\w+)(?::(?P<field>[^:}]+))?(?::(?P<type>\w+))?\}")
_NAMED_GROUP = re.compile(r"\(\?P?<(?![=!])(?P<field>\w+)>")
_DEEPEST = 40


class Group(NamedTuple):
    """A group of the expanded expression: its name there, the field it fills, the field's type or ""."""

    group: str
    field: str
    type: str


class Expanded(NamedTuple):
    """A Java pattern with names as in Python, and its groups in order."""

    expression: str
    groups: tuple[Group, ...]


@cache
def shipped_patterns() -> Mapping[str, str]:
    """The built-in patterns, by name."""
    text = files(__package__).joinpath("grok_patterns.txt").read_text("utf-8")
    return dict(_definitions(text))


def expand(pattern: str, definitions: str = "") -> Expanded:
    """Replace every reference, including references inside other patterns.

    Args:
        pattern: with `%{NAME:field:type}`.
        definitions: lines `NAME expression`; they take precedence over the built-in ones.

    Raises:
        ConfigError: a name is not defined, or patterns refer to each other in a cycle.
    """
    known = {**shipped_patterns(), **dict(_definitions(definitions))}
    groups: list[Group] = []

    def captured(field: str, kind: str) -> str:
        # Several groups may fill one field, but Java allows each group name only once.
        group = f"g{len(groups)}"
        groups.append(Group(group, field, kind))
        return f"(?P<{group}>"

    def replaced(text: str, depth: int) -> str:
        if depth > _DEEPEST:
            raise ConfigError(f"Grok patterns refer to each other in a cycle: {text[:80]}", config_path="pattern.grok")
        parts, position = [], 0
        for found in re.finditer(f"{_REFERENCE.pattern}|{_NAMED_GROUP.pattern.replace('field', 'own')}", text):
            parts.append(text[position : found.start()])
            position = found.end()
            if found["own"]:
                parts.append(captured(found["own"], ""))
                continue
            opening = (
                captured(found["field"].strip("[]").replace("][", "_"), found["type"] or "")
                if found["field"]
                else "(?:"
            )
            parts.append(f"{opening}{replaced(_named(found['name'], known), depth + 1)})")
        return "".join((*parts, text[position:]))

    return Expanded(replaced(pattern, 0), tuple(groups))


def _named(name: str, known: Mapping[str, str]) -> str:
    if name in known:
        return known[name]
    raise ConfigError(
        f"There is no grok pattern named {name}.",
        config_path="pattern.grok",
        suggestion=did_you_mean(nearest(name, known)) or "Define it in pattern.grok.definitions.",
    )


def _definitions(text: str) -> list[tuple[str, str]]:
    found = []
    for line in text.splitlines():
        name, _, expression = line.strip().partition(" ")
        if name and not name.startswith("#"):
            if not re.fullmatch(r"\w+", name) or not expression.strip():
                raise ConfigError(
                    f"{line.strip()[:80]!r} does not define a grok pattern.",
                    config_path="pattern.grok.definitions",
                    suggestion="Write the name, a space, and the regular expression.",
                )
            found.append((name, expression.strip()))
    return found
