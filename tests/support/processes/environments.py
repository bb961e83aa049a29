"""Environments that differ from that of the tests: programs of another machine do not have its variables."""

from __future__ import annotations

from collections.abc import Mapping


def changing(changes: Mapping[str, str | None] | None) -> list[str]:
    """The beginning of a command line that starts the rest with changed variables; None removes one. See env(1)."""
    removed = [word for name, value in (changes or {}).items() if value is None for word in ("-u", name)]
    return ["env", *removed, *(f"{name}={value}" for name, value in (changes or {}).items() if value is not None)]
