"""Which representation a client accepts: all answers are JSON."""

from __future__ import annotations


def accepts_json(header: str) -> bool:
    """Whether an `Accept` header allows JSON (RFC 9110, 12.5.1)."""
    for part in header.split(","):
        kind, *parameters = (text.strip().lower() for text in part.split(";"))
        if kind in ("application/json", "application/*", "*/*") and not any(_is_zero(p) for p in parameters):
            return True
    return not header.strip()


def _is_zero(parameter: str) -> bool:
    name, _, value = parameter.partition("=")
    return name == "q" and value.rstrip("0").rstrip(".") in ("", "0")
