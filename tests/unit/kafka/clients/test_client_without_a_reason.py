"""SystemError of the Python client: it never leaves the code that writes to Kafka."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from airflow_connect.errors import FencedError, UnavailableError
from airflow_connect.kafka.clients import short_lived
from airflow_connect.kafka.clients.short_lived import QuickProducer, producer
from airflow_connect.kafka.writing import transaction_steps
from airflow_connect.kafka.writing.transaction_steps import CommitUnknownError
from airflow_connect.kafka.writing.transactions import TransactionalWriter

SETTINGS = {"bootstrap.servers": "127.0.0.1:1"}
BARE = "<method 'flush' of 'cimpl.Producer' objects> returned NULL without setting an exception"


def bare() -> Any:
    """What the client does once in a while."""
    raise SystemError(BARE)


def wrapped() -> Any:
    """What it does if an error comes during callbacks."""
    raise SystemError("returned a result with an exception set") from KafkaException(KafkaError(KafkaError._FENCED))


@pytest.fixture
def every_call_fails(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], Any]], None]:
    """From now on each call of a producer ends with this."""
    real = QuickProducer.answered

    def fail(end: Callable[[], Any]) -> None:
        monkeypatch.setattr(QuickProducer, "answered", lambda self, _call: real(self, end))

    return fail


@pytest.mark.parametrize(
    "call",
    [
        lambda client: client.flush(0),
        lambda client: client.poll(0),
        lambda client: client.init_transactions(0),
        lambda client: client.begin_transaction(),
        lambda client: client.send_offsets_to_transaction([], None, 0),
        lambda client: client.commit_transaction(0),
        lambda client: client.abort_transaction(0),
        lambda client: client.close(),
    ],
)
def test_system_error_becomes_the_clients_own_exception(
    call: Callable[[QuickProducer], Any], every_call_fails: Callable[..., None]
) -> None:
    client = producer(SETTINGS)

    every_call_fails(bare)
    with pytest.raises(KafkaException) as unknown:
        call(client)
    every_call_fails(wrapped)
    with pytest.raises(KafkaException) as known:
        call(client)

    assert unknown.value.args[0].code() == KafkaError._STATE
    assert BARE in unknown.value.args[0].str()
    assert known.value.args[0].code() == KafkaError._FENCED


def test_system_error_after_a_fatal_error_is_that_error(every_call_fails: Callable[..., None]) -> None:
    client = producer(SETTINGS)
    client.diary.error(KafkaError(KafkaError._FENCED, "a newer producer", fatal=True))
    every_call_fails(bare)

    with pytest.raises(KafkaException) as raised:
        client.flush(0)

    assert raised.value.args[0].code() == KafkaError._FENCED


@pytest.mark.parametrize(("end", "kind"), [(bare, UnavailableError), (wrapped, FencedError)])
def test_transaction_that_ends_without_a_reason_committed_nothing(
    end: Callable[[], Any], kind: type[Exception], every_call_fails: Callable[..., None]
) -> None:
    writer = TransactionalWriter(SETTINGS, "id")
    every_call_fails(end)

    with pytest.raises(kind):
        writer.commit([("runs", 0, b"k", b"v")])


def test_commit_that_ends_without_a_reason_has_an_unknown_outcome(every_call_fails: Callable[..., None]) -> None:
    client = short_lived.producer({**SETTINGS, "transactional.id": "id"})
    every_call_fails(bare)

    with pytest.raises(CommitUnknownError, match="did not confirm"):
        transaction_steps.commit(client, "id", 0.0, "Read the state.")


def test_producer_closes_where_the_clients_warning_is_an_error(
    every_call_fails: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """As in a process that turns warnings into errors (`python -W error`)."""
    client = short_lived.producer(SETTINGS)

    def warn() -> None:
        warning = RuntimeWarning("Producer abort_transaction failed during close: fenced")
        raise SystemError("returned a result with an exception set") from warning

    every_call_fails(warn)
    with caplog.at_level("DEBUG"):
        transaction_steps.close(client, "connect-c")

    assert "closing the producer of connect-c" in caplog.text
    assert "Producer abort_transaction failed during close: fenced" in caplog.text
