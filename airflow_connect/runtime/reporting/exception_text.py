"""Describes an exception of a third-party class, for use in a message."""

from __future__ import annotations

_MOST_CHARACTERS = 500


def describe_exception(error: BaseException) -> str:
    """Type and text of an exception without its full stop, such as `ValueError: no such column`."""
    text = f": {error}" if str(error) else ""
    return f"{type(error).__name__}{text[:_MOST_CHARACTERS].rstrip('.')}"


__all__ = ["describe_exception"]
