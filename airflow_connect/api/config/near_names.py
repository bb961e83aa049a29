"""The known name that the user probably meant. Works on names only, never on values."""

from __future__ import annotations

from collections.abc import Iterable

USUAL_LIKENESS, VERY_NEAR = 0.72, 0.88
"""Similarity, 0 to 1, from which a name counts as near; determined with real misspellings."""


def nearest(name: str, known: Iterable[str], *, count: int = 1, likeness: float = USUAL_LIKENESS) -> list[str]:
    """At most `count` names of `known` similar to `name`, best first; ignores letter case and kind of separator."""
    import difflib  # imported only when needed: it takes milliseconds of an empty run

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
