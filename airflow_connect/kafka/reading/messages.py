"""Messages of the Python client as records."""

from __future__ import annotations

from collections.abc import Iterable
from operator import methodcaller
from typing import TYPE_CHECKING, Any

from airflow_connect.api.record import KafkaRecord

if TYPE_CHECKING:
    from confluent_kafka import Message

    from airflow_connect.api.offsets import TopicPartition


_HEADERS = methodcaller("headers")
"""The client returns headers and leaves an exception set if it cannot decode a name. The interpreter does not check the
results of calls that it has specialised, and would raise it anywhere later; a call from C is always checked."""


class UnreadableHeadersError(Exception):
    """The Python client cannot tell the headers of a message, because a name is not UTF-8.

    Attributes:
        offset: of the message.
        name: the name.
    """

    def __init__(self, offset: int, name: bytes) -> None:
        super().__init__(f"offset {offset}, header {name!r}")
        self.offset, self.name = offset, name


def record_of(tp: TopicPartition, message: Message[Any, Any]) -> KafkaRecord:
    """A message of the client as a record.

    Raises:
        UnreadableHeadersError: see there.
    """
    kind, stamp = message.timestamp()
    return KafkaRecord(
        topic=tp.topic,
        partition=tp.partition,
        offset=int(message.offset() or 0),
        key=message.key(),
        value=message.value(),
        timestamp=stamp if kind else None,
        timestamp_type=kind,
        headers=tuple(_headers_of(message)),
    )


def ensure_readable(messages: Iterable[Message[Any, Any]]) -> None:
    """Look at the headers of all messages.

    Raises:
        UnreadableHeadersError: see there.
    """
    for message in messages:
        _headers_of(message)


def _headers_of(message: Message[Any, Any]) -> Any:  # typed too widely by the client
    try:
        return _HEADERS(message) or ()
    except SystemError as error:
        # So the client wraps what happens while it decodes a name, once for each name.
        cause: BaseException | None = error
        while isinstance(cause, SystemError):
            cause = cause.__cause__
        if not isinstance(cause, UnicodeDecodeError):
            raise
        raise UnreadableHeadersError(int(message.offset() or 0), cause.object) from error
