"""Numbers in sentences for people: `1 file was renamed`, `2,000 files were renamed`."""

from __future__ import annotations

from collections.abc import Iterable

_SINGULAR = {"are": "is", "were": "was", "have": "has"}


def format_count(number: int) -> str:
    """`1,204,311`."""
    return f"{number:,}"


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts.

    Args:
        number: how many.
        one: the words that follow the number 1: a noun, or a noun with its verb.
        many: the words that follow any other number; "": `one` with an s.
    """
    return f"{format_count(number)} {one if number == 1 else many or f'{one}s'}"


def plural(number: int, noun: str, verb: str = "") -> str:
    """`1 file`, `2,000 files`; with the verb `are`, `were` or `have`: `1 file was`, `2,000 files were`."""
    found = counted(number, noun)
    return f"{found} {agreeing(number, verb)}" if verb else found


def agreeing(number: int, verb: str) -> str:
    """The verb `are`, `were` or `have`, as it goes with a number: `is`, `was` or `has` for one."""
    return _SINGULAR[verb] if number == 1 else verb


def names(values: Iterable[object], limit: int = 5) -> str:
    """`a, b, c and 7 more`, for messages."""
    every = [str(v) for v in values]
    rest = len(every) - limit
    return ", ".join(every[:limit]) + (f" and {rest} more" if rest > 0 else "")
