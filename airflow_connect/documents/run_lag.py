"""How far a sink was behind when it ran, for pages: what a run measured, and what is kept of a week."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from airflow_connect.api.json_document import JsonDocument

HOUR_MS = 60 * 60 * 1000
KEPT_HOURS = 7 * 24
"""Hours that the connector's state keeps: the history keeps 100 runs, which may be less than a day."""

LagOfHour = tuple[int, int]
"""Hours since the epoch, and the longest lag that a run found in that hour."""


@dataclass(frozen=True, slots=True)
class RunLag(JsonDocument):
    """What a run has found and left; offsets, so that gaps count.

    Attributes:
        before: offsets between the committed ones and the ends of the log, when the plan was made. Limits of the run
            do not make it smaller.
        after: what the run left of these. Records that arrived later are not in it.
        at_ms: when the plan was made, milliseconds since the epoch.
        oldest_ms: the oldest timestamp among the first records that it has read in its partitions; 0: not known.
    """

    LEFT_OUT = frozenset({"oldest_ms"})

    before: int
    after: int
    at_ms: int
    oldest_ms: int = 0

    @property
    def age_ms(self) -> int | None:
        """How long the oldest record had waited when the plan was made; None: not known."""
        return max(0, self.at_ms - self.oldest_ms) if self.oldest_ms > 0 else None


def with_lag(hours: Iterable[LagOfHour], lag: RunLag) -> tuple[LagOfHour, ...]:
    """The hours with what one more run has found; those of more than a week ago are left out."""
    now = lag.at_ms // HOUR_MS
    known = {hour: most for hour, most in hours if now - KEPT_HOURS < hour <= now}
    known[now] = max(lag.before, known.get(now, 0))
    return tuple(sorted(known.items()))
