"""When a connector may run before its interval is over, because there is something to copy: pure rules.

An interval of a minute is a long time for a record that arrives right after a run, and a short one for a bucket that
gets a file from each run. So connectors whose interval nobody has set also run when they have something to copy, but
never in a way that makes files smaller or repeats a table:

- a sink soon after any run, but it rests twice as long as that run took;
- one that writes files only a few times in a row, then as often as its interval says, so that a busy topic gives one
  file a minute and a record that comes alone is copied at once (`Schedule` counts that);
- a source only after a run that found nothing. It has to be asked, so the pauses grow with what asking costs.
"""

from __future__ import annotations

from collections.abc import Mapping

from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.documents.run import EMPTY, RunReport

SOON_S = 5.0
"""The shortest pause between two runs."""
REST = 2.0
"""A sink rests so many times as long as its run took."""
SHARE_OF_ASKING = 0.05
"""Share of a worker's time that all its sources may take to find nothing."""
_OWN_PACE = (
    SinkKeys.run_interval_seconds.name,
    SinkKeys.run_lag_records.name,
    SinkKeys.run_lag_seconds.name,
    "poll.interval.ms",
)
"""Keys of a connector that say how often it shall run."""


def early_after_s(
    config: Mapping[str, str | None], report: RunReport, connectors: int, *, was_early: bool
) -> float | None:
    """Seconds after a run from which something to copy begins the next one; None: only the interval does.

    Args:
        config: of the connector.
        report: of the run, which has not failed.
        connectors: how many this worker has.
        was_early: whether the run began before its interval was over. If it then found nothing, what looked like
            something to copy was none, and would look so again.
    """
    if any((config.get(key) or "").strip() for key in _OWN_PACE):
        return None
    took_s = max(0, report.ended_ms - report.started_ms) / 1000
    if report.source is not None:
        return max(SOON_S, took_s * connectors / SHARE_OF_ASKING) if report.status == EMPTY else None
    if report.status == EMPTY:
        return None if was_early else SOON_S
    if report.left:
        return None
    return max(SOON_S, took_s * REST)
