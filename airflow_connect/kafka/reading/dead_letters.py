"""Reads a dead letter queue: its records, where each letter came from, and what went wrong.

Reading does not join a group or commit anything. Letters may come from this project or from Kafka Connect: the context
is in the headers `__connect.errors.*` (KIP-298), which a connector writes only with
`errors.deadletterqueue.context.headers.enable=true`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.record import KafkaRecord
from airflow_connect.kafka.clients.short_lived import Admin
from airflow_connect.kafka.reading.topic_contents import committed_records, ranges_of

PREFIX = "__connect.errors."
TIMESTAMP = "timestamp"
"""Our own addition: the header with the timestamp of a record, in milliseconds, which queue or client cannot keep."""

_Headers = Sequence[tuple[str, bytes | None]]


def start_of_context(headers: _Headers) -> int:
    """Index of the first header about the last failure of a record.

    `DeadLetterQueueReporter` of Kafka Connect, and this project, append them to the headers that the record has, and
    begin with the topic.
    """
    begins = [index for index, (name, _) in enumerate(headers) if name == f"{PREFIX}topic"]
    return begins[-1] if begins else 0


def without_context(headers: _Headers) -> tuple[tuple[str, bytes | None], ...]:
    """The headers that a record had before it failed, the context of an earlier failure included."""
    start = start_of_context(headers)
    return (*headers[:start], *(header for header in headers[start:] if not header[0].startswith(PREFIX)))


@dataclass(frozen=True)
class DeadLetter:
    """A record of a dead letter queue.

    Attributes:
        record: the record in the queue; its coordinates are those in the queue.
    """

    record: KafkaRecord

    @cached_property
    def context(self) -> Mapping[str, str]:
        """`__connect.errors.*` without that prefix; {} if the connector does not write them.

        A record that had failed before, and was read from a dead letter queue or replayed with its headers, has those
        of both failures. The last ones count; the others are headers that the record had before it failed.
        """
        return {
            name.removeprefix(PREFIX): (value or b"").decode("utf-8", "replace")
            for name, value in self.record.headers[start_of_context(self.record.headers) :]
            if name.startswith(PREFIX)
        }

    @property
    def timestamp(self) -> int | None:
        """The timestamp of the record that failed: its queue may not have accepted it (`TIMESTAMP`)."""
        original = self.context.get(TIMESTAMP, "")
        return int(original) if original.lstrip("-").isdecimal() else self.record.timestamp

    @property
    def own_headers(self) -> tuple[tuple[str, bytes | None], ...]:
        """The headers that the record had before it failed."""
        return without_context(self.record.headers)

    @property
    def origin(self) -> tuple[str, int, int] | None:
        """Topic, partition and offset where the record failed; None if the letter does not contain them."""
        found = self.context
        try:
            return found["topic"], int(found["partition"]), int(found["offset"])
        except (KeyError, ValueError):
            return None

    @property
    def connector(self) -> str:
        """The connector that gave it up, or ""."""
        return self.context.get("connector.name", "")

    @property
    def size_bytes(self) -> int:
        """Bytes of key and value."""
        return len(self.record.key or b"") + len(self.record.value or b"")


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """Selects dead letters.

    Attributes:
        connector: name of the connector; "": any.
        stage: Connect's stage, any case; "": any.
        error: part of the exception's class or message, any case; "": any.
        since_ms: letters with this timestamp in the queue and later, milliseconds since the epoch; None: any.
    """

    connector: str = ""
    stage: str = ""
    error: str = ""
    since_ms: int | None = None

    def accepts(self, letter: DeadLetter) -> bool:
        """Whether a letter is selected."""
        context = letter.context
        if self.connector and context.get("connector.name") != self.connector:
            return False
        if self.stage and context.get("stage", "").lower() != self.stage.lower():
            return False
        told = f"{context.get('exception.class.name', '')}\n{context.get('exception.message', '')}"
        if self.error and self.error.lower() not in told.lower():
            return False
        return self.since_ms is None or (letter.record.timestamp or 0) >= self.since_ms


def find_ranges(admin: Admin, topic: str) -> list[OffsetRange]:
    """The current contents of the queue, committed transactions only; [] if the topic does not exist yet.

    Raises:
        AccessError: it may not be read.
    """
    return ranges_of(admin, topic, "dead letter queue")


def read_letters(settings: Mapping[str, Any], ranges: Sequence[OffsetRange]) -> Iterator[DeadLetter]:
    """The letters of the ranges, in order of offsets for each partition.

    Args:
        settings: librdkafka settings of a consumer.
        ranges: at most one per partition.

    Raises:
        UnavailableError: the queue cannot be read.
    """
    for record in committed_records(settings, ranges):
        yield DeadLetter(record)
