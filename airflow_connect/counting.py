"""Numbers in sentences: `1 file was renamed`, `2,000 files were renamed`."""

from __future__ import annotations


def counted(number: int, one: str, many: str = "") -> str:
    """A number and what it counts.

    Args:
        number: how many.
        one: the words that follow the number 1: a noun, or a noun with its verb.
        many: the words that follow any other number; "": `one` with an s.
    """
    return f"{number:,} {one if number == 1 else many or f'{one}s'}"
