"""The trial of a preflight whose file somebody deletes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.stores.publishing import TRIALS, try_out


def trial(*outcomes: Exception | None) -> tuple[Callable[[], None], list[Exception | None]]:
    """A trial that has these outcomes in turn, and those that are left."""
    left = list(outcomes)

    def take() -> None:
        outcome = left.pop(0)
        if outcome is not None:
            raise outcome

    return take, left


def gone() -> UnavailableError:
    return UnavailableError("The file has gone.", code="hdfs.staged_file_gone")


def test_trial_whose_file_was_deleted_is_made_again() -> None:
    take, left = trial(FileNotFoundError("renamed"), gone(), None)
    try_out(take, "hdfs.staged_file_gone")
    assert left == []


def test_trial_whose_file_is_always_deleted_says_so() -> None:
    take, left = trial(*[FileNotFoundError("renamed")] * TRIALS)
    with pytest.raises(UnavailableError, match="was deleted 3 times before it could be renamed") as caught:
        try_out(take, "hdfs.staged_file_gone")
    assert (caught.value.code, caught.value.retriable, left) == ("publish.trial_deleted", True, [])


def test_refusal_is_the_answer_at_once() -> None:
    refusal = AccessError("The directory is not yours.", code="hdfs.forbidden")
    take, left = trial(refusal, None)
    with pytest.raises(AccessError) as caught:
        try_out(take, "hdfs.staged_file_gone")
    assert caught.value is refusal and left == [None]
