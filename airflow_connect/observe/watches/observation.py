"""What a look at a target has found."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

MOST_PARTITIONS = 100
"""Partitions whose offsets are listed: an observation becomes an XCom or an asset event."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The answer to a watch.

    Attributes:
        is_reached: whether the condition holds.
        facts: small and plain JSON, for people and for later tasks.
        position: of a lag: what is committed. Equal texts mean that nothing was committed in between.
    """

    is_reached: bool
    facts: Mapping[str, Any] = field(default_factory=dict)
    position: str = ""
