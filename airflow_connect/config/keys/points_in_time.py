"""Points in time as people write them in a configuration."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def parse_timestamp_ms(text: str) -> int:
    """Milliseconds since the epoch.

    Args:
        text: digits are milliseconds since the epoch; anything else is ISO 8601, UTC unless it has a zone.

    Raises:
        ValueError: it is neither; the message says what is expected.
    """
    text = text.strip()
    if re.fullmatch(r"[0-9]{1,18}", text):
        return int(text)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError("Expected milliseconds since the epoch or ISO 8601 like 2026-11-20T08:00:00Z") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return (moment - _EPOCH) // timedelta(milliseconds=1)
