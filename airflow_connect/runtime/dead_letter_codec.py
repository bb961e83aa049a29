"""Bytes of dead letters inside JSON documents (task reports, manifests): base64, None stays None."""

from __future__ import annotations

import base64


def to_text(data: bytes | None) -> str | None:
    """Bytes -> text."""
    return None if data is None else base64.b64encode(data).decode()


def raw_bytes(text: str | None) -> bytes | None:
    """Text -> bytes."""
    return None if text is None else base64.b64decode(text)
