"""What a class of somebody else raised, in words for a sentence."""

from __future__ import annotations

_MOST_CHARACTERS = 500


def words_for(error: BaseException) -> str:
    """Type and text of an exception without its full stop, such as `ValueError: no such column`."""
    text = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{text[:_MOST_CHARACTERS].rstrip('.')}"


__all__ = ["words_for"]
