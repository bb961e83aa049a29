"""What happens to a record that cannot be converted or written: fail the run, skip it, or dead-letter it.

Source: Kafka Connect's `errors.tolerance`, `errors.deadletterqueue.*`, `errors.log.*` (KIP-298), and its recorded
behaviour: a dead letter keeps the original bytes, timestamp and headers, followed by the `__connect.errors.*` headers.
"""

from __future__ import annotations

import logging
import traceback
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.own_chain import RecordFailedError
from airflow_connect.api.record import (
    TIMESTAMP_CREATE_TIME,
    TIMESTAMP_LOG_APPEND_TIME,
    KafkaRecord,
    SourceRecord,
)
from airflow_connect.errors import ConnectError, DataError, FatalDataError, TaskFailedError
from airflow_connect.runtime.dead_letter_codec import to_text
from airflow_connect.runtime.executor.retrying import Retries
from airflow_connect.runtime.failed_records import PLACES, too_many
from airflow_connect.runtime.reporting.exception_text import describe_exception
from airflow_connect.runtime.reporting.internal_errors import is_own_defect
from airflow_connect.runtime.reporting.texts import one_line

if TYPE_CHECKING:
    from airflow_connect.config.resolved.sink import ErrorConfig
    from airflow_connect.documents.run import PartitionReport

log = logging.getLogger(__name__)

PREFIX = "__connect.errors."
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER = "KEY_CONVERTER", "VALUE_CONVERTER", "HEADER_CONVERTER"
TRANSFORMATION, TASK_PUT = "TRANSFORMATION", "TASK_PUT"
SINK_TASK = "org.apache.kafka.connect.sink.SinkTask"
"""The class that Connect writes for every record that a sink could not write, whatever the sink is."""
STACK_TRACE_CHARACTERS = 16_000
MESSAGE_CHARACTERS = 4_000
"""Longest `exception.stacktrace` and `exception.message`: a dead letter must still fit into a Kafka record."""
_LETTER_BYTES = 150
"""Size of a dead letter in addition to its key, value and headers."""
_TIMESTAMP_TYPES = {TIMESTAMP_CREATE_TIME: "CreateTime", TIMESTAMP_LOG_APPEND_TIME: "LogAppendTime"}


@dataclass(frozen=True, slots=True)
class Failure:
    """Where and why a record failed.

    Attributes:
        stage: Connect's stage name.
        stage_class: class that failed, as configured (Java name or ours).
        error: the reason.
    """

    stage: str
    stage_class: str
    error: Exception

    @classmethod
    def of(cls, error: Exception, stage: str, stage_class: str) -> Failure:
        """A failure in a stage, unless the error itself tells where it comes from."""
        if isinstance(error, RecordFailedError):
            return cls(error.stage, error.stage_class, error)
        return cls(stage, stage_class, error)

    @property
    def reason(self) -> tuple[str, str]:
        """Stage and kind of the error, by which a page counts failed records."""
        return self.stage, self.error.code if isinstance(self.error, ConnectError) else type(self.error).__name__


class ErrorPolicy:
    """Applies `errors.*` in one task, counts failed records and collects dead letters."""

    def __init__(self, connector: str, task: int, errors: ErrorConfig, max_dead_letter_bytes: int = 0) -> None:
        """`errors`: the connector's `errors.*` keys. `max_dead_letter_bytes`: see `TaskPlan`; 0: no limit."""
        self._connector = connector
        self._task = task
        self._errors = errors
        self._final: ConnectError | None = None
        self.retries = Retries(errors)
        self.dead_letters: list[dict[str, Any]] = []
        self._max_letter_bytes = max_dead_letter_bytes
        self._letter_bytes = 0
        self.failed = 0
        """Number of failed records that were tolerated so far."""
        self.places: list[str] = []
        """The first failed records, for messages."""
        self.skipped = Counter[tuple[str, str]]()
        """Failed records that were tolerated and get no dead letter, by their reason."""

    def handle(self, record: KafkaRecord | SourceRecord, failure: Failure) -> bool:
        """Process a failed record.

        Returns:
            True if it goes to the dead letter queue, False if it is skipped.

        Raises:
            DataError: errors are not tolerated, or too many records failed; names the record.
            ConnectError: the record is not the reason: a server is unavailable, or access is refused. Skipping such
                records would move the whole topic into the dead letter queue. The message names the record.
        """
        error = _as_connect_error(failure)
        if not self._is_tolerable(failure.stage, error):
            raise self._ended(_located(record, failure, error))
        self._count(record, failure, error)
        if self._errors.log:
            self._log(record, failure)
        if not self._errors.dead_letter_topic or isinstance(record, SourceRecord):
            self.skipped[failure.reason] += 1
            return False
        self.dead_letters.append(self._dead_letter(record, failure))
        return True

    def report(self, record: KafkaRecord, failure: Failure) -> bool:
        """An errant record reported by the sink (KIP-610): like `handle`, but without a queue it is only skipped."""
        return self.handle(record, failure) if self._errors.dead_letter_topic else False

    def leave_out(self, record: KafkaRecord, failure: Failure) -> bool:
        """A record that the sink drops deliberately: no failure, so it needs no `errors.tolerance=all`, nor counts."""
        if not self._errors.dead_letter_topic:
            return False
        if self._errors.tolerate and self._errors.log:
            self._log(record, failure)
        self.dead_letters.append(self._dead_letter(record, failure))
        return True

    @property
    def has_queue(self) -> bool:
        """Whether there is a dead letter queue."""
        return bool(self._errors.dead_letter_topic)

    @property
    def is_full(self) -> bool:
        """Whether the dead letters have reached the size that one run may commit."""
        return 0 < self._max_letter_bytes <= self._letter_bytes

    def committed_letters(self, partitions: Sequence[PartitionReport]) -> list[dict[str, Any]]:
        """Dead letters of records that this run commits.

        A record that is left for the next run (`flush.on.end=false`) fails again there, and gets its dead letter then.
        """
        ends = {p.range.topic_partition: p.commit_offset for p in partitions}
        letters = [d for d in self.dead_letters if d["origin"][2] < ends[TopicPartition(*d["origin"][:2])]]
        # Records that cannot be converted are found before those that the sink refuses; restore the order of the log.
        return sorted(letters, key=lambda letter: letter["origin"])

    def raise_pending_error(self) -> None:
        """Raise the error of `handle` again if a third-party sink has swallowed it.

        Raises:
            ConnectError: the task should have ended, but has not.
        """
        if self._final is not None:
            raise self._final

    def _is_tolerable(self, stage: str, error: ConnectError) -> bool:
        if not self._errors.tolerate or isinstance(error, FatalDataError):
            return False
        # A sink that reports a record declares that the record is the cause, whatever the error is.
        return isinstance(error, DataError) or stage == TASK_PUT

    def _count(self, record: KafkaRecord | SourceRecord, failure: Failure, error: ConnectError) -> None:
        self.failed += 1
        if len(self.places) < PLACES:
            self.places.append(one_line(f"{record.where} ({failure.stage}: {error.message.rstrip('.')})"))
        limit = self._errors.max_records
        if limit is not None and self.failed > limit:
            raise self._ended(too_many(self.failed, limit, self.places, f"Task {self._task}"))

    def _ended(self, error: ConnectError) -> ConnectError:
        self._final = error
        return error

    def _log(self, record: KafkaRecord | SourceRecord, failure: Failure) -> None:
        text = one_line(self._text(record, failure))
        log.error("Error encountered in task %s-%d. %s", self._connector, self._task, text)

    def _text(self, record: KafkaRecord | SourceRecord, failure: Failure) -> str:
        """Connect's own wording (ProcessingContext.toString), so existing log searches keep working."""
        text = f"Executing stage '{failure.stage}' with class '{failure.stage_class}'"
        if self._errors.log_records and isinstance(record, SourceRecord):
            text += f", where source record is {{sourcePartition={dict(record.source_partition)}"
            text += f", sourceOffset={dict(record.source_offset)}}}"
        elif self._errors.log_records and not isinstance(record, SourceRecord):
            text += f", where consumed record is {{topic='{record.topic}', partition={record.partition}"
            text += f", offset={record.offset}"
            if record.timestamp is not None and record.timestamp_type in _TIMESTAMP_TYPES:
                text += f", timestamp={record.timestamp}, timestampType={_TIMESTAMP_TYPES[record.timestamp_type]}"
            text += "}"
        return f"{text}. {_as_connect_error(failure).message}"

    def _dead_letter(self, record: KafkaRecord, failure: Failure) -> dict[str, Any]:
        headers = [(name, value) for name, value in record.headers]
        if self._errors.dead_letter_headers:
            headers += [
                (PREFIX + name, value.encode("utf-8", "replace")) for name, value in self._context(record, failure)
            ]
        self._letter_bytes += _LETTER_BYTES + len(record.key or b"") + len(record.value or b"")
        self._letter_bytes += sum(len(name) + len(value or b"") for name, value in headers)
        return {
            "topic": self._errors.dead_letter_topic,
            "key": to_text(record.key),
            "value": to_text(record.value),
            "timestamp": record.timestamp,
            "headers": [[name, to_text(value)] for name, value in headers],
            "origin": [record.topic, record.partition, record.offset],
            "reason": list(failure.reason),
        }

    def _context(self, record: KafkaRecord, failure: Failure) -> list[tuple[str, str]]:
        error = failure.error
        return [
            ("topic", record.topic),
            ("partition", str(record.partition)),
            ("offset", str(record.offset)),
            ("connector.name", self._connector),
            ("task.id", str(self._task)),
            ("stage", failure.stage),
            ("class.name", failure.stage_class),
            ("exception.class.name", _class_name(error)),
            ("exception.message", _shortened(_message(error), MESSAGE_CHARACTERS)),
            ("exception.stacktrace", _stack_trace(error)),
        ]


def put_failed(where: str, error: Exception) -> Exception:
    """The error if a sink, or a third-party class in it, raised an exception that is not one of our errors.

    A bug without any third-party class involved is not translated; it is reported as an internal error.

    As in Connect, it is not tolerable, because it is unknown whether the record was written. Another attempt starts
    from the beginning.

    Args:
        where: topic-partition@offset of the record.
        error: the exception.
    """
    if is_own_defect(error):
        error.add_note(f"while the record at {where} was written")
        return error
    return TaskFailedError(
        f"Writing the record at {where} failed with {describe_exception(error)}.",
        code="task.put_failed",
        suggestion="The next run begins at the committed offsets. If it happens again, the class that writes,"
        " partitions or finds timestamps has a bug.",
    )


def _as_connect_error(failure: Failure) -> ConnectError:
    """The reason as one of our errors.

    A third-party class may raise anything. As in Connect, every exception of a converter or transformation means that
    the record is bad, except a lack of memory, which is not related to the record.
    """
    error = failure.error
    if isinstance(error, ConnectError):
        return error
    if isinstance(error, MemoryError):
        raise error
    return DataError(
        f"{failure.stage_class} failed with {describe_exception(error)}.",
        code="data.plugin_failed",
        suggestion="The class does not support such a record: correct the record or the class, "
        "or set errors.tolerance=all with a dead letter queue.",
    )


def _located(record: KafkaRecord | SourceRecord, failure: Failure, error: ConnectError) -> ConnectError:
    """The error with the record's position in its message; the original exception stays its cause."""
    if record.where in error.message:
        return error
    suggestion = error.suggestion
    if not suggestion and isinstance(error, DataError):
        is_source = isinstance(record, SourceRecord)
        way_out = " to skip such records" if is_source else " with a dead letter queue"
        who = "source" if is_source else "producer"
        suggestion = f"Correct the {who} or the converter, or set errors.tolerance=all{way_out}."
    # A third-party subclass may have a different constructor, so the class that it is derived from is used.
    kind: type[ConnectError] = next(c for c in type(error).__mro__ if c.__module__ == ConnectError.__module__)
    located = kind(
        f"The record at {record.where} failed in {failure.stage}: {error.message}",
        code=error.code,
        suggestion=suggestion,
        config_path=error.config_path,
    )
    located.retriable = error.retriable
    located.__cause__ = failure.error
    return located


def _message(error: Exception) -> str:
    if isinstance(error, RecordFailedError):
        return error.exception.message
    return error.message if isinstance(error, ConnectError) else str(error)


def _class_name(error: Exception) -> str:
    if isinstance(error, RecordFailedError):
        return error.exception.name
    return f"{type(error).__module__}.{type(error).__qualname__}"


def _stack_trace(error: Exception) -> str:
    if isinstance(error, RecordFailedError):
        return _shortened(error.exception.stacktrace, STACK_TRACE_CHARACTERS)
    return _shortened("".join(traceback.format_exception(error)), STACK_TRACE_CHARACTERS)


def _shortened(text: str, characters: int) -> str:
    """The beginning and the end of a text that is too long."""
    if len(text) <= characters:
        return text
    half = characters // 2
    return f"{text[:half]}\n... {len(text) - 2 * half} characters omitted ...\n{text[-half:]}"
