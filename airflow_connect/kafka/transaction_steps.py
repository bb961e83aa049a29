"""What every transactional producer does alike: fence, end a transaction, let go.

Errors follow librdkafka's rules (rdkafka.h, "Transactional producer API"): a *retriable* error means call the same
function again; *requires abort* means nothing was committed and the transaction must be aborted; *fatal* means this
producer is finished, usually because a newer one has fenced it. `commit_transaction` gets the rest of
`transaction.timeout.ms` as its timeout: without one, which its documentation recommends, it waits for ever for a
broker that holds its connections but does not answer. What the documentation warns of, a producer that no longer knows
its state, cannot harm: after a commit that was not confirmed the producer is not used again.
"""

from __future__ import annotations

import logging
import threading
import time
import warnings
from collections.abc import Callable

from confluent_kafka import KafkaException

from airflow_connect.api.errors import FencedError, UnavailableError
from airflow_connect.kafka.clients import API_TIMEOUT_S, QuickProducer, ensure_reachable, translate

CLOSE_TIMEOUT_S = 5.0
_LEAST_WAIT_S = 1.0
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
"""Settings that the way of delivery decides; a connector's own value would only make librdkafka refuse to start."""
_LOG = logging.getLogger(__name__)


class CommitUnknownError(UnavailableError):
    """The commit was sent and no answer came: it may have happened. Read the state before doing anything."""

    code = "transaction.unknown"


def fence_older(producer: QuickProducer, doing: str) -> None:
    """Fence every older producer of the same transactional id and abort what it left open; about 7 ms.

    Raises:
        UnavailableError: the cluster or its transaction coordinator does not answer.
        AccessError: no permission for the transactional.id.
    """
    ensure_reachable(producer)
    repeat(lambda: producer.init_transactions(API_TIMEOUT_S), time.monotonic() + API_TIMEOUT_S, doing)


def repeat(call: Callable[[], None], deadline: float, doing: str) -> None:
    """Repeat `call` while librdkafka says `retriable`; other errors are translated and raised."""
    while True:
        try:
            call()
            return
        except KafkaException as error:
            if not error.args[0].retriable() or time.monotonic() >= deadline:
                raise translate(error, doing) from error


def commit(producer: QuickProducer, transactional_id: str, deadline: float, suggestion: str) -> KafkaException | None:
    """The point of no return of a transaction: None when it is committed, else why it must be aborted.

    Args:
        deadline: by `time.monotonic`.
        suggestion: what a commit of unknown outcome means for whoever reads of it.

    Raises:
        FencedError: a newer producer of the same id has taken over.
        CommitUnknownError: the commit was sent, its outcome is not known.
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
            # The request may have reached the coordinator: neither "done" nor "nothing happened" would be true.
            raise CommitUnknownError(
                f"Kafka did not confirm a transaction of {transactional_id}: {inner.str()} ({inner.name()}).",
                suggestion=suggestion,
            ) from error


def close(producer: QuickProducer, who: str) -> None:
    """Let go of the connections of `who`; what is in no committed transaction is discarded. Waits `CLOSE_TIMEOUT_S`.

    The client aborts an open transaction first, and waits for ever for a broker that does not answer: then it is left
    behind with its thread, and the cluster ends the transaction by itself.
    """
    producer.purge(blocking=False)
    closing = threading.Thread(target=_close, args=(producer, who), name=f"close-{who}", daemon=True)
    closing.start()
    closing.join(CLOSE_TIMEOUT_S)
    if closing.is_alive():
        _LOG.warning("Kafka did not answer while the producer of %s was closed.", who)


def _close(producer: QuickProducer, who: str) -> None:
    try:
        with warnings.catch_warnings():
            # The client warns that a fenced producer could not abort; nobody has to be told that.
            warnings.simplefilter("ignore", RuntimeWarning)
            producer.close()
    except KafkaException as error:
        # A fenced producer complains a last time; its owner has already been told by `commit`.
        _LOG.debug("closing the producer of %s: %s", who, error)
