"""Which failures are worth a retry, as a retry policy of Airflow 3.3.

`ConnectorOperator` needs no policy: it fails without a retry where a retry cannot help. The policy is for your own
tasks that use this package, and for a delay that depends on the failure:

    ConnectorOperator(..., retries=5, retry_policy=connect_retry_policy(timedelta(minutes=2)))
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from airflow_connect import errors

if TYPE_CHECKING:
    from airflow.sdk import ExceptionRetryPolicy


def connect_retry_policy(retry_delay: timedelta | None = None) -> ExceptionRetryPolicy:
    """Fail at once on errors that another attempt cannot fix; retry the others.

    Args:
        retry_delay: pause before the retry of a retriable error; None uses the task's own.
    """
    from airflow.sdk import ExceptionRetryPolicy
    from airflow.sdk.definitions.retry_policy import RetryAction, RetryRule

    retriable = (errors.RetriableError, errors.TaskFailedError)
    return ExceptionRetryPolicy(
        rules=[
            RetryRule(
                exception=[_path(kind) for kind in retriable],
                action=RetryAction.RETRY,
                retry_delay=retry_delay,
                reason="a server or Spark was unavailable: another attempt may succeed",
            ),
            RetryRule(
                exception=_path(errors.ConnectError),
                action=RetryAction.FAIL,
                reason="another attempt would fail in the same way",
            ),
        ]
    )


def _path(kind: type[BaseException]) -> str:
    return f"{kind.__module__}.{kind.__qualname__}"
