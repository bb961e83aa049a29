"""The retry policy against the error tree."""

from __future__ import annotations

from datetime import timedelta

import pytest
from airflow.sdk.definitions.retry_policy import ExceptionRetryPolicy, RetryAction, RetryPolicy

from airflow_connect import errors
from airflow_connect.airflow.outcome import driver_failure, run_failure
from airflow_connect.airflow.retry_policy import connect_retry_policy
from airflow_connect.documents.run import RunReport

KINDS = [
    kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, errors.ConnectError) and kind.__module__ == errors.__name__
]


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_policy_agrees_with_the_error_tree(kind: type[errors.ConnectError]) -> None:
    decision = connect_retry_policy(timedelta(minutes=2)).evaluate(kind("Something."), 1, 3)
    assert decision.action is (RetryAction.RETRY if kind.retriable else RetryAction.FAIL)
    assert decision.retry_delay == (timedelta(minutes=2) if kind.retriable else None)


def test_policy_leaves_other_errors_to_the_task() -> None:
    assert connect_retry_policy().evaluate(ValueError("x"), 1, 3).action is RetryAction.DEFAULT


def test_policy_survives_the_serialization_of_a_dag() -> None:
    policy: RetryPolicy = connect_retry_policy(timedelta(minutes=2))
    again = ExceptionRetryPolicy.deserialize(policy.serialize())
    assert again.evaluate(errors.UnavailableError("x"), 1, 3).retry_delay == timedelta(minutes=2)
    assert again.evaluate(errors.FencedError("x"), 1, 3).action is RetryAction.FAIL


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_failed_run_raises_what_the_error_tree_says(kind: type[errors.ConnectError]) -> None:
    from airflow.sdk.exceptions import AirflowFailException

    error = kind("It broke.", suggestion="Mend it.", config_path="a.key")
    raised = run_failure(RunReport("c", "r", "failed", 0, 1, error=error.to_json()))
    assert isinstance(raised, kind if kind.retriable else AirflowFailException)
    assert "It broke. Mend it." in str(raised)


def test_callbacks_get_the_exception_without_secrets() -> None:
    error = errors.UnavailableError("No login with s3cretword.", suggestion="Is it s3cretword?").to_json()
    raised = run_failure(
        RunReport("c", "r", "failed", 0, 1, error=error), lambda text: text.replace("s3cretword", "[hidden]")
    )
    assert str(raised) == "No login with [hidden]. Is it [hidden]?"


def test_error_of_an_unknown_type_is_taken_by_its_retriability() -> None:
    error = {"type": "StoppedError", "code": "run.stopped", "message": "Stopped.", "retriable": True}
    raised = run_failure(RunReport("c", "r", "failed", 0, 1, error=error))
    assert isinstance(raised, errors.TaskFailedError)
    assert raised.code == "run.stopped"


def test_driver_killed_by_a_signal_is_worth_a_retry() -> None:
    raised = driver_failure(-9, "last words")
    assert errors.is_retriable(raised)
    assert "was killed by signal 9" in str(raised)
    assert "last words" in str(raised)
