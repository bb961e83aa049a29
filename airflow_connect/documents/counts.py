"""Counted nouns in sentences for people: `1 file is`, `2,000 files are`."""

from __future__ import annotations

_SINGULAR = {"are": "is", "were": "was", "have": "has"}


def format_count(number: int) -> str:
    """`1,204,311`."""
    return f"{number:,}"


def plural(number: int, noun: str, verb: str = "") -> str:
    """`1 file`, `2,000 files`; with the verb `are`, `were` or `have`: `1 file was`, `2,000 files were`."""
    counted = f"{format_count(number)} {noun}" + ("" if number == 1 else "s")
    if not verb:
        return counted
    return f"{counted} {agreeing(number, verb)}"


def agreeing(number: int, verb: str) -> str:
    """The verb `are`, `were` or `have`, as it goes with a number: `is`, `was` or `has` for one."""
    return _SINGULAR[verb] if number == 1 else verb
