"""The known name that somebody probably meant. Works on names only: values never come near it."""

from __future__ import annotations

from collections.abc import Iterable

USUAL_LIKENESS, VERY_NEAR = 0.72, 0.88
"""Shares of equal characters, 0 to 1, from which a name counts as near; found by trying real misspellings."""


def nearest(name: str, known: Iterable[str], *, count: int = 1, likeness: float = USUAL_LIKENESS) -> list[str]:
    """At most `count` of `known` like `name`, best first; letter case and kind of separator do not matter."""
    import difflib  # only when something is wrong: it costs milliseconds of an empty run

    by_fold: dict[str, str] = {}
    for candidate in known:
        by_fold.setdefault(_fold(candidate), candidate)
    return [by_fold[fold] for fold in difflib.get_close_matches(_fold(name), by_fold, n=count, cutoff=likeness)]


def did_you_mean(names: Iterable[str]) -> str:
    """`Did you mean a or b?`, or "" without names."""
    listed = list(names)
    return f"Did you mean {' or '.join(listed)}?" if listed else ""


def _fold(name: str) -> str:
    return name.lower().replace("_", ".").replace("-", ".")
