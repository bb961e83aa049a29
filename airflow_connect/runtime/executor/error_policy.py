"""What happens to a record that cannot be converted or written: fail the run, skip it, or dead-letter it.

Source: Kafka Connect's `errors.tolerance`, `errors.deadletterqueue.*`, `errors.log.*` (KIP-298), and its recorded
behaviour: a dead letter keeps the original bytes, timestamp and headers, followed by the `__connect.errors.*` headers.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.errors import DataError
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.record import KafkaRecord
from airflow_connect.runtime.dead_letter_codec import to_text

if TYPE_CHECKING:
    from airflow_connect.api.connector_config import ErrorConfig
    from airflow_connect.api.run import PartitionReport

log = logging.getLogger(__name__)

PREFIX = "__connect.errors."
KEY_CONVERTER, VALUE_CONVERTER, HEADER_CONVERTER, TASK_PUT = (
    "KEY_CONVERTER",
    "VALUE_CONVERTER",
    "HEADER_CONVERTER",
    "TASK_PUT",
)


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
    error: DataError


class ErrorPolicy:
    """Applies `errors.*` in one task and collects its dead letters."""

    def __init__(self, connector: str, task: int, errors: ErrorConfig) -> None:
        """`errors`: the connector's `errors.*` keys."""
        self._connector = connector
        self._task = task
        self._errors = errors
        self.dead_letters: list[dict[str, Any]] = []

    def handle(self, record: KafkaRecord, failure: Failure) -> bool:
        """Take note of a failed record.

        Returns:
            True when it goes to the dead letter queue, False when it is skipped.

        Raises:
            DataError: errors are not tolerated; names the record.
        """
        if not self._errors.tolerate:
            raise self._located(record, failure)
        if self._errors.log:
            where = f" for the record at {record.where}" if self._errors.log_records else ""
            log.error("Error at stage %s of task %s%s: %s", failure.stage, self._task, where, failure.error)
        if not self._errors.dead_letter_topic:
            return False
        self.dead_letters.append(self._dead_letter(record, failure))
        return True

    def committed_letters(self, partitions: Sequence[PartitionReport]) -> list[dict[str, Any]]:
        """Dead letters of records that this run commits.

        A record that is left for the next run (`flush.on.end=false`) fails there again, and gets its letter then.
        """
        ends = {p.range.topic_partition: p.commit_offset for p in partitions}
        return [d for d in self.dead_letters if d["origin"][2] < ends[TopicPartition(*d["origin"][:2])]]

    def report(self, record: KafkaRecord, failure: Failure) -> bool:
        """An errant record reported by the sink (KIP-610): like `handle`, but without a queue it is only skipped."""
        return self.handle(record, failure) if self._errors.dead_letter_topic else False

    def _located(self, record: KafkaRecord, failure: Failure) -> DataError:
        error = failure.error
        if record.where in error.message:
            return error
        return type(error)(
            f"The record at {record.where} failed in {failure.stage}: {error.message}",
            code=error.code,
            suggestion=error.suggestion
            or "Correct the producer or the converter, or set errors.tolerance=all with a dead letter queue.",
            config_path=error.config_path,
        )

    def _dead_letter(self, record: KafkaRecord, failure: Failure) -> dict[str, Any]:
        headers = [(name, value) for name, value in record.headers]
        if self._errors.dead_letter_headers:
            headers += [(PREFIX + name, value.encode()) for name, value in self._context(record, failure)]
        return {
            "topic": self._errors.dead_letter_topic,
            "key": to_text(record.key),
            "value": to_text(record.value),
            "timestamp": record.timestamp,
            "headers": [[name, to_text(value)] for name, value in headers],
            "origin": [record.topic, record.partition, record.offset],
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
            ("exception.class.name", f"{type(error).__module__}.{type(error).__qualname__}"),
            ("exception.message", str(error)),
            ("exception.stacktrace", "".join(traceback.format_exception(error))),
        ]
