"""Keys about complete time directories and late records. Confluent's sinks have neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from airflow_connect.api.config.config_def import Problem
from airflow_connect.api.config.typed import Checks, KeyGroup, TypedConfig
from airflow_connect.api.config.validators import Lambda, Range, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.connectors.files.shared.settings.visibility import is_time_based

APPEND, DIRECTORY, DLQ = "append", "directory", "dlq"
_GROUP = KeyGroup("Complete Directories")
_MAX_DELAY_MS = 366 * 86_400_000


def _check_file_name(name: str, value: Any) -> None:
    if value and (value.strip() != value or value in (".", "..") or set(value) & {"/", "\\", "\0"}):
        raise invalid(name, value, "It must be the name of a file, without / or \\")


def _check_directory_name(name: str, value: Any) -> None:
    if not value or not value.strip():
        raise invalid(name, value, "It must not be blank")
    _check_file_name(name, value)


class CompleteConfig(TypedConfig):
    """Which directories are announced as complete, and what happens to late records."""

    completes = _GROUP.medium.boolean(
        "complete.directories",
        False,
        "Whether runs detect complete directories of a time based partitioner: those whose end every partition"
        " of the topic has passed. The run's report lists them, and"
        " ConnectorOperator emits an asset event for each.",
        display_name="Complete directories",
    )
    marker = _GROUP.medium.text(
        "complete.marker",
        "",
        "Name of an empty file, such as _SUCCESS, that is created in each complete directory. It"
        " implies complete.directories=true. Blank: no file.",
        Lambda(_check_file_name, "a file name, or blank"),
        display_name="Marker of completeness",
    )
    delay_ms = _GROUP.medium.long(
        "complete.delay.ms",
        0,
        "Grace period in milliseconds: how far the records of every partition must be beyond the end of a"
        " directory before it is complete. Records that are out of order by less are not late.",
        Range(0, _MAX_DELAY_MS),
        display_name="Delay of completeness",
    )
    idle_ms = _GROUP.medium.long(
        "complete.idle.ms",
        -1,
        "For a partition that was read to the end of its log, the time counts as at least the run's clock"
        " minus this many milliseconds, so partitions without records do not hold directories back longer."
        " -1: a directory waits until every partition has a record beyond its end.",
        Range(-1, _MAX_DELAY_MS),
        display_name="Idle partitions",
    )
    late_records = _GROUP.medium.text(
        "late.records",
        APPEND,
        "What happens to a record whose directory was announced as complete before the run: `append` writes it"
        " there as usual, `directory` writes it below late.records.directory, `dlq` sends it to the dead"
        " letter queue. The report counts late records.",
        ValidString(APPEND, DIRECTORY, DLQ),
        display_name="Late records",
    )
    late_directory = _GROUP.low.text(
        "late.records.directory",
        "_late",
        "Directory below that of the topic that holds the directories of late records, with"
        " late.records=directory. Spark, Hive and pyarrow ignore names that begin with an underscore.",
        Lambda(_check_directory_name, "a name without / and \\"),
        display_name="Directory of late records",
    )

    @classmethod
    def checks(cls) -> Checks:
        """What several keys must have together; two of them are keys of other classes."""
        switches = (cls.completes, cls.marker)
        yield (*switches, "partitioner.class"), _completeness_needs_time
        yield (*switches, cls.late_records), _lateness_needs_completeness
        yield (cls.late_records, SinkKeys.tolerates_errors, SinkKeys.dead_letter_topic), _dlq_needs_a_queue

    @property
    def finds_complete(self) -> bool:
        """Whether runs detect complete time directories."""
        return self.completes or bool(self.marker)


Keys = CompleteConfig


def _completeness_needs_time(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not (Keys.completes.of(parsed) or Keys.marker.of(parsed)) or is_time_based(parsed["partitioner.class"]):
        return
    key = Keys.marker.name if Keys.marker.of(parsed) else Keys.completes.name
    yield Problem(
        key,
        f"{key} is set, but directories of {parsed['partitioner.class']} are not based on time, so they are never"
        " complete.",
        f"Set partitioner.class to TimeBasedPartitioner, DailyPartitioner or HourlyPartitioner, or remove {key}.",
    )


def _lateness_needs_completeness(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    chosen = Keys.late_records.of(parsed)
    if chosen != APPEND and not (Keys.completes.of(parsed) or Keys.marker.of(parsed)):
        yield Problem(
            Keys.late_records.name,
            f"{Keys.late_records} is {chosen}, but without {Keys.completes} nothing is ever late.",
            f"Set {Keys.completes}=true or {Keys.marker}, or remove {Keys.late_records}.",
        )


def _dlq_needs_a_queue(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    key, queue, tolerates = Keys.late_records, SinkKeys.dead_letter_topic, SinkKeys.tolerates_errors
    if key.of(parsed) != DLQ or (queue.of(parsed) and tolerates.of(parsed)):
        return
    yield Problem(
        key.name,
        f"{key} is {DLQ}, but there is no dead letter queue: late records would fail the run or be lost.",
        f"Set {queue} to a topic and {tolerates}=all, or {key}={DIRECTORY}.",
    )
