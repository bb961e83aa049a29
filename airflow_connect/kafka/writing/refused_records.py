"""Records that a broker rejects individually, and what happens to them.

A broker refuses whole batches. `INVALID_RECORD` names the records at fault (KIP-467), and the rest of the batch is
returned as `_INVALID_DIFFERENT_RECORD`; `MSG_SIZE_TOO_LARGE` can mean that only the batch is too large. So if errors
are tolerated, all returned records are sent again, each one alone: only a record that is refused alone is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, Message

from airflow_connect.errors import ConfigError, ConnectError, DataError
from airflow_connect.kafka.clients.short_lived import translate
from airflow_connect.kafka.writing.produced import name_bytes

if TYPE_CHECKING:
    from airflow_connect.kafka.writing.produced import ProducedRecord

Delivered = Callable[["Message[Any, Any]"], None]
Refused = Callable[[DataError], None]
"""Called for a record that is to be skipped; raises an error that ends the task if it must not be."""

LARGEST_MESSAGE_BYTES = 1_048_588
"""A broker's default for `message.max.bytes`: librdkafka's own is smaller, and would refuse what a broker takes."""
RECORD_AT_FAULT = frozenset(
    {
        KafkaError.INVALID_RECORD,
        KafkaError._INVALID_DIFFERENT_RECORD,
        KafkaError.INVALID_TIMESTAMP,
        KafkaError.MSG_SIZE_TOO_LARGE,
        KafkaError.RECORD_LIST_TOO_LARGE,
        KafkaError.INVALID_MSG_SIZE,
    }
)
"""Errors of a broker or the client for a record that would be refused forever, while others would not."""
PURGED = frozenset({KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT})
"""Errors of records that were not sent because of another record, which is the one to report. When a transaction fails,
librdkafka removes them from its queue, and often reports them before that record."""
LESS_SPECIFIC = (*PURGED, KafkaError._INVALID_DIFFERENT_RECORD)
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})

_SIZE_HINT = "Raise max.message.bytes of the topic and producer.override.max.request.size"
_CONTENT_HINT = "Correct the source or the topic: a compacted topic needs keys, message.timestamp.* bounds timestamps"


class ReturnedRecord(NamedTuple):
    """A record that was returned with its batch."""

    record: ProducedRecord
    delivered: Delivered | None
    refused: Refused


def is_more_specific(problem: KafkaError, known: KafkaError | None) -> bool:
    """Whether `problem` says more: records that were not sent, or are not to blame, may be reported first."""
    return known is None or _specificity(problem) > _specificity(known)


def most_specific(problems: Iterable[KafkaError]) -> KafkaError | None:
    """The first of those that say most; None: there are none."""
    return max(problems, key=_specificity, default=None)


def _specificity(problem: KafkaError) -> int:
    if problem.code() in PURGED:
        return 0
    return 1 if problem.code() == KafkaError._INVALID_DIFFERENT_RECORD else 2


def refusal(problem: KafkaError, doing: str) -> ConnectError:
    """The error for a record that is not in Kafka: because of its content, its batch, or else from `translate`."""
    if problem.code() in _TOO_LARGE:
        return ConfigError(
            f"A record, or a batch of records, is larger than Kafka accepts while {doing}: {problem.str()}.",
            code="kafka.too_large",
            suggestion=f"{_SIZE_HINT}, or set producer.override.batch.size below max.message.bytes, so that batches of "
            "smaller records fit.",
        )
    return record_refusal(problem, doing) if problem.code() in RECORD_AT_FAULT else translate(problem, doing)


def record_refusal(problem: KafkaError, doing: str) -> DataError:
    """The error for one record that Kafka refuses because of its content."""
    hint = _SIZE_HINT if problem.code() in _TOO_LARGE else _CONTENT_HINT
    return DataError(
        f"Kafka refused a record while {doing}: {problem.str()} ({problem.name()}).",
        code="data.refused_by_kafka",
        suggestion=f"{hint}. errors.tolerance=all skips such records, unless delivery is exactly once.",
    )


def unwritable_name(topic: str, name: str, reason: str) -> DataError:
    """The error for a header whose name is not UTF-8, if only the Python client could write it."""
    return DataError(
        f"A record for topic {topic} has a header whose name is not UTF-8 ({name_bytes(name)!r}). Kafka's Python client"
        f" cannot write it, and librdkafka cannot be called directly here: {reason}.",
        code="data.unwritable_header",
        suggestion="Run on 64-bit Linux with CPython, or rename the header with a transformation. What was committed"
        " before stays.",
    )
