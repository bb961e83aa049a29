"""`errors.max.records`: how many records of one run may fail. Tasks stop themselves, the driver compares the sum."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from airflow_connect.api.errors import TooManyErrorsError

if TYPE_CHECKING:
    from airflow_connect.api.run import TaskReport

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
        f"{who} met {failed} records that failed, more than errors.max.records={limit} allows. "
        f"The first: {'; '.join(places)}.",
        suggestion="Nothing became visible and no offset was moved. Correct the cause, or raise errors.max.records.",
        config_path="errors.max.records",
    )


def refuse_too_many(reports: Sequence[TaskReport], limit: int | None) -> None:
    """Add up the failed records of all tasks; no task alone needs to be beyond the limit.

    Args:
        reports: one per task.
        limit: `errors.max.records`; None: no limit.

    Raises:
        TooManyErrorsError: they are more than the limit.
    """
    failed = sum(r.failed for r in reports)
    if limit is not None and failed > limit:
        places = [place for r in reports for place in r.failed_places]
        raise too_many(failed, limit, places[:PLACES], "The run")
