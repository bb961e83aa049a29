"""Words about staged output that stores, the runtime and connectors share: what publishing found, what is left over."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any


class Outcome(Enum):
    """What publishing a staged file found or did."""

    PUBLISHED = "published"
    ALREADY_PUBLISHED = "already published"
    LOST = "lost"
    """The staged file is gone and the final one is not there: it must be copied again."""


@dataclass(frozen=True, slots=True)
class LeftOver:
    """A staged, unpublished file found in the store, of whatever origin.

    Attributes:
        key: final name inside the store.
        token: equal to the token of the staged file, or what tells it from others under the same key.
        started_ms: when it was begun, milliseconds since the epoch; 0 when the store does not say.
    """

    key: str
    token: Mapping[str, Any]
    started_ms: int = 0
