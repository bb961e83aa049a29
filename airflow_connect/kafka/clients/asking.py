"""Requests to Kafka that only read: they are sent again if no answer comes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import Future
from typing import TypeVar

from airflow_connect.counting import names
from airflow_connect.errors import ConnectError, UnavailableError
from airflow_connect.kafka.clients import short_lived
from airflow_connect.kafka.clients.short_lived import Admin, admin_client, is_unanswered, wait
from airflow_connect.retrying import Backoff, Retry

FIRST_ANSWER_TIMEOUT_S = 2.0
"""That of the first try; the others have twice as long each. A dead broker stays in the metadata for 9 s."""

_Result = TypeVar("_Result")


def ask(
    admin: Admin,
    request: Callable[[Admin, float], Mapping[str, Future[_Result]]],
    doing: str,
    refused: dict[str, ConnectError] | None = None,
) -> dict[str, _Result]:
    """Results of a request that only reads, by name; sent again after a while without an answer.

    Args:
        admin: the client of the first try. Later tries have a new one: librdkafka may keep on choosing a dead broker.
        request: sends the request through a client, with a timeout in seconds.
        doing: the activity, to which the name is added: "describing topic".
        refused: gets the answers that are errors, by name; None: the first of them is raised.

    Raises:
        ConnectError: the first failure.
        UnavailableError: no answer within `API_TIMEOUT_S`.
    """
    tries = Retry(Backoff(0), within_s=short_lived.API_TIMEOUT_S)
    answer_s = FIRST_ANSWER_TIMEOUT_S
    while True:
        answer_s = min(answer_s, short_lived.ANSWER_TIMEOUT_S)
        futures = request(admin, answer_s)
        try:
            return _answers(futures, doing, answer_s + 1, refused)
        except UnavailableError as error:
            if not is_unanswered(error):
                raise
            if not tries.pause():
                what = f"{doing} {names(list(futures))}"
                raise UnavailableError(
                    f"Kafka did not answer within {short_lived.API_TIMEOUT_S:.0f} s while {what}."
                ) from error
        admin = admin_client(admin.settings)
        answer_s *= 2


def _answers(
    futures: Mapping[str, Future[_Result]], doing: str, timeout_s: float, refused: dict[str, ConnectError] | None
) -> dict[str, _Result]:
    found: dict[str, _Result] = {}
    for name, future in futures.items():
        try:
            found[name] = wait(future, f"{doing} {name}", timeout_s)
        except ConnectError as error:
            if refused is None or is_unanswered(error):
                raise
            refused[name] = error
    return found
