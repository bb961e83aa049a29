"""Records that a broker refuses for their own sake, and what becomes of them.

A broker refuses whole batches. `INVALID_RECORD` names the records at fault (KIP-467) and the rest of the batch comes
back as `_INVALID_DIFFERENT_RECORD`; `MSG_SIZE_TOO_LARGE` can mean that only the batch is too large. So where errors are
tolerated, whatever came back is sent again, each record alone: only one that is refused alone is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from confluent_kafka import KafkaError, Message

from airflow_connect.api.errors import ConfigError, ConnectError, DataError
from airflow_connect.kafka.clients import translate

if TYPE_CHECKING:
    from airflow_connect.kafka.task_producer import ProducedRecord

Delivered = Callable[["Message[Any, Any]"], None]
Refused = Callable[[DataError], None]
"""Hears of a record that is left out; raises what ends the task where it may not be."""

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
"""What a broker, or the client before it, answers when the same record would be refused for ever, and others not."""
_TOO_LARGE = frozenset({KafkaError.MSG_SIZE_TOO_LARGE, KafkaError.RECORD_LIST_TOO_LARGE, KafkaError.INVALID_MSG_SIZE})

_SIZE_HINT = "Raise max.message.bytes of the topic and producer.override.max.request.size"
_CONTENT_HINT = "Correct the source or the topic: a compacted topic needs keys, message.timestamp.* bounds timestamps"


class ReturnedRecord(NamedTuple):
    """A record that came back with its batch."""

    record: ProducedRecord
    delivered: Delivered | None
    refused: Refused


def is_more_telling(problem: KafkaError, known: KafkaError | None) -> bool:
    """Whether `problem` says more than what is known: the batch's other records only say that they are not it."""
    if known is None:
        return True
    is_other = known.code() == KafkaError._INVALID_DIFFERENT_RECORD
    return is_other and problem.code() != KafkaError._INVALID_DIFFERENT_RECORD


def refusal(problem: KafkaError, doing: str) -> ConnectError:
    """Why a record is not in Kafka, in our words: its own fault, that of its batch, or else what `translate` says."""
    if problem.code() in _TOO_LARGE:
        return ConfigError(
            f"A record, or a batch of records, is larger than Kafka takes while {doing}: {problem.str()}.",
            code="kafka.too_large",
            suggestion=f"{_SIZE_HINT}, or set producer.override.batch.size below max.message.bytes, so that batches of "
            "smaller records fit.",
        )
    return record_refusal(problem, doing) if problem.code() in RECORD_AT_FAULT else translate(problem, doing)


def record_refusal(problem: KafkaError, doing: str) -> DataError:
    """The error of one record that Kafka refuses for its own sake."""
    hint = _SIZE_HINT if problem.code() in _TOO_LARGE else _CONTENT_HINT
    return DataError(
        f"Kafka refused a record while {doing}: {problem.str()} ({problem.name()}).",
        code="data.refused_by_kafka",
        suggestion=f"{hint}. errors.tolerance=all leaves such records out, unless delivery is exactly once.",
    )
