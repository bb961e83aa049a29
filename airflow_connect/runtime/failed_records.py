"""`errors.max.records`: how many records of one run may fail. Each task stops by itself; the driver checks the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.counting import plural
from airflow_connect.errors import TooManyErrorsError

if TYPE_CHECKING:
    from airflow_connect.documents.run import TaskReport

PLACES = 5
"""How many failed records a message names."""


def too_many(failed: int, limit: int, places: Sequence[str], who: str) -> TooManyErrorsError:
    """The error for more failed records than `errors.max.records` allows.

    Args:
        failed: number of failed records.
        limit: `errors.max.records`.
        places: the first of them, with stage and reason.
        who: `Task 3` or `The run`.
    """
    return TooManyErrorsError(
        f"{who} had {plural(failed, 'failed record')}, more than errors.max.records={limit} allows. "
        f"The first: {'; '.join(places)}.",
        suggestion="Fix the cause, or raise errors.max.records. The next run begins at the committed offsets.",
        config_path="errors.max.records",
    )


def refuse_too_many(reports: Sequence[TaskReport], limit: int | None) -> None:
    """Add up the failed records of all tasks, which may exceed the limit together even if no task does alone.

    Args:
        reports: one per task.
        limit: `errors.max.records`; None: no limit.

    Raises:
        TooManyErrorsError: the sum exceeds the limit.
    """
    failed = sum(r.failed for r in reports)
    if limit is not None and failed > limit:
        places = [place for r in reports for place in r.failed_places]
        raise too_many(failed, limit, places[:PLACES], "The run")


def skipped(reports: Sequence[TaskReport]) -> str:
    """The note about records of a source that errors.tolerance=all has skipped: they have no dead letter queue."""
    places = [place for r in reports for place in r.failed_places]
    failed = sum(r.failed for r in reports)
    which = "It is" if failed == 1 else "They are" if failed <= min(len(places), PLACES) else "The first are"
    shown = "; ".join(places[:PLACES])
    return f"{plural(failed, 'record', 'were')} skipped, because errors.tolerance=all. {which}: {shown}."
