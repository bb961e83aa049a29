"""Reads that Kafka does not answer are sent again, through new clients."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_connect.errors import AccessError, UnavailableError
from airflow_connect.kafka.clients import asking, short_lived


class Client:
    def __init__(self) -> None:
        self.settings: dict[str, Any] = {}


def failed(code: int) -> Future[str]:
    future: Future[str] = Future()
    future.set_exception(KafkaException(KafkaError(code)))
    return future


def answered(text: str) -> Future[str]:
    future: Future[str] = Future()
    future.set_result(text)
    return future


@pytest.fixture
def clients(monkeypatch: pytest.MonkeyPatch) -> list[Client]:
    """The client of each try."""
    made = [Client()]

    def make(_settings: Any) -> Client:
        made.append(Client())
        return made[-1]

    monkeypatch.setattr(asking, "admin_client", make)
    return made


def test_each_try_has_another_client_and_more_time(clients: list[Client]) -> None:
    tries: list[tuple[Any, float]] = []

    def request(client: Any, timeout_s: float) -> dict[str, Future[str]]:
        tries.append((client, timeout_s))
        return {"t": answered("found") if len(tries) == 5 else failed(KafkaError._TIMED_OUT)}

    assert asking.ask(clients[0], request, "describing topic") == {"t": "found"}  # type: ignore[arg-type]
    assert [client for client, _ in tries] == clients
    assert [timeout_s for _, timeout_s in tries] == [2, 4, 8, 10, 10]


def test_answers_that_are_errors_are_raised_or_kept(clients: list[Client]) -> None:
    def request(_client: Any, _timeout_s: float) -> dict[str, Future[str]]:
        return {"gone": failed(KafkaError.UNKNOWN_TOPIC_OR_PART), "here": answered("found")}

    refused: dict[str, Any] = {}
    assert asking.ask(clients[0], request, "describing topic", refused) == {"here": "found"}  # type: ignore[arg-type]
    assert {name: type(error) for name, error in refused.items()} == {"gone": AccessError}
    with pytest.raises(AccessError):
        asking.ask(clients[0], request, "describing topic")  # type: ignore[arg-type]
    assert len(clients) == 1


def test_a_cluster_that_never_answers_is_named_with_the_time(
    clients: list[Client], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(short_lived, "API_TIMEOUT_S", 0.05)

    with pytest.raises(UnavailableError, match="did not answer within 0 s while describing topic t"):
        asking.ask(clients[0], lambda *_: {"t": failed(KafkaError._TIMED_OUT)}, "describing topic")  # type: ignore[arg-type]
