"""Steps shared by all transactional producers: fence, end a transaction, close.

Errors follow librdkafka's rules (rdkafka.h, "Transactional producer API"): a *retriable* error means call the same
function again; *requires abort* means nothing was committed and the transaction must be aborted; *fatal* means this
producer is finished, usually because a newer one has fenced it. `commit_transaction` gets the rest of
`transaction.timeout.ms` as its timeout. Without a timeout, which its documentation recommends, it waits forever for a
broker that keeps its connections but does not respond. The documentation warns that the producer may then no longer
know its state. This does no harm, because after an unconfirmed commit the producer is not used again.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from confluent_kafka import KafkaError, KafkaException

from airflow_connect.errors import FencedError, UnavailableError
from airflow_connect.kafka.clients.short_lived import API_TIMEOUT_S, QuickProducer, ensure_reachable, translate
from airflow_connect.kafka.writing.refused_records import PURGED
from airflow_connect.retrying import Backoff, Retry

CLOSE_TIMEOUT_S = 5.0
_LEAST_WAIT_S = 1.0
_REPORT_TIMEOUT_S = 10.0
_REPORT_WAIT_S = 0.05
DEFAULT_TRANSACTION_TIMEOUT_MS = 60_000
LONGEST_TRANSACTION_TIMEOUT_MS = 900_000
"""A broker's default for `transaction.max.timeout.ms`; it refuses more."""
DECIDED = frozenset(
    {
        "acks",
        "request.required.acks",
        "enable.idempotence",
        "retries",
        "message.send.max.retries",
        "max.in.flight.requests.per.connection",
        "max.in.flight",
        "message.timeout.ms",
        "delivery.timeout.ms",
        "transactional.id",
    }
)
"""Settings that the delivery guarantee determines; with a connector's own value librdkafka would refuse to start."""
_LOG = logging.getLogger(__name__)


class CommitUnknownError(UnavailableError):
    """The commit was sent, but not confirmed: it may have happened. Read the state before doing anything."""

    code = "transaction.unknown"


def transaction_timeout_ms(settings: Mapping[str, Any], boundary_interval_ms: int = 0) -> int:
    """How long a transaction may stay open: as configured, or else long enough for the interval between two of them."""
    configured = settings.get("transaction.timeout.ms")
    if configured is not None:
        return int(configured)
    return min(max(DEFAULT_TRANSACTION_TIMEOUT_MS, 2 * boundary_interval_ms), LONGEST_TRANSACTION_TIMEOUT_MS)


def fence_older(producer: QuickProducer, doing: str) -> None:
    """Fence every older producer of the same transactional id and abort what it left open; about 7 ms.

    Raises:
        UnavailableError: the cluster or its transaction coordinator does not respond.
        AccessError: there is no permission for the transactional.id.
    """
    ensure_reachable(producer)
    repeat(lambda: producer.init_transactions(API_TIMEOUT_S), time.monotonic() + API_TIMEOUT_S, doing)


def repeat(call: Callable[[], None], deadline: float, doing: str) -> None:
    """Repeat `call` while librdkafka's error is `retriable`; other errors are translated and raised."""
    tries = Retry(Backoff(0), within_s=deadline - time.monotonic())
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or not tries.pause():
                raise translate(error, doing) from error


def has_failed(error: KafkaException) -> bool:
    """Whether librdkafka accepts no more records because an earlier record of the transaction was refused."""
    return bool(error.args[0].code() == KafkaError._STATE)


def await_report(producer: QuickProducer, is_known: Callable[[], bool], serve: Callable[[float], object]) -> None:
    """Wait until the refused record of a failed transaction is reported: that comes after `has_failed`.

    Args:
        is_known: whether the report has come.
        serve: reads reports; it waits as many seconds as it is given.
    """
    deadline = time.monotonic() + _REPORT_TIMEOUT_S
    while not is_known() and len(producer) and time.monotonic() < deadline:
        serve(_REPORT_WAIT_S)


def reason_of(producer: QuickProducer, error: KafkaException) -> KafkaException:
    """Why the open transaction has failed, if `error` says only that it has, or that records were removed with it.

    librdkafka names the reason to whoever tries to begin another transaction, which changes nothing.
    """
    code = error.args[0].code()
    if code != KafkaError._STATE and code not in PURGED:
        return error
    try:
        producer.begin_transaction()
    except KafkaException as reason:
        if reason.args[0].fatal() or reason.args[0].txn_requires_abort():
            return reason
    return error


def commit(producer: QuickProducer, transactional_id: str, deadline: float, suggestion: str) -> KafkaException | None:
    """The point of no return of a transaction: None if it is committed, else why it must be aborted.

    Args:
        deadline: by `time.monotonic`.
        suggestion: for the message about a commit with an unknown outcome.

    Raises:
        FencedError: a newer producer of the same id has taken over.
        CommitUnknownError: the commit was sent, but its outcome is unknown.
    """
    while True:
        try:
            producer.commit_transaction(max(deadline - time.monotonic(), _LEAST_WAIT_S))
            return None
        except KafkaException as error:
            inner = error.args[0]
            if inner.txn_requires_abort():
                return error
            if inner.retriable() and time.monotonic() < deadline:
                continue
            ours = translate(error, f"committing a transaction of {transactional_id}")
            if isinstance(ours, FencedError):
                raise ours from error
            # The request may have reached the coordinator, so neither "done" nor "nothing happened" would be true.
            if inner.code() == KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED:
                raise CommitUnknownError(
                    f"Kafka denied access to transactional.id {transactional_id} (authorization) while its transaction"
                    f" was committed, so the commit was not confirmed: {inner.str()} ({inner.name()}).",
                    suggestion=f"Grant the principal of the producer the ACLs Write and Describe on transactional id"
                    f" {transactional_id}, and run again. {suggestion}",
                ) from error
            raise CommitUnknownError(
                f"Kafka did not confirm a transaction of {transactional_id}: {inner.str()} ({inner.name()}).",
                suggestion=suggestion,
            ) from error


def close(producer: QuickProducer, who: str) -> None:
    """Release the connections of `who`; records outside a committed transaction are discarded. Waits `CLOSE_TIMEOUT_S`.

    The client first aborts an open transaction, and waits forever for a broker that does not respond. In that case it
    is abandoned with its thread, and the cluster ends the transaction by itself.
    """
    producer.purge(blocking=False)
    closing = threading.Thread(target=_close, args=(producer, who), name=f"close-{who}", daemon=True)
    closing.start()
    closing.join(CLOSE_TIMEOUT_S)
    if closing.is_alive():
        _LOG.warning("Kafka did not answer while the producer of %s was closed.", who)


def _close(producer: QuickProducer, who: str) -> None:
    try:
        producer.close()
    except KafkaException as error:
        # A fenced producer raises once more; `commit` has already reported it.
        _LOG.debug("closing the producer of %s: %s", who, error)
