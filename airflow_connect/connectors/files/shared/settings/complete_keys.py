"""Keys about complete time directories and late records. Confluent's sinks have neither."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from airflow_connect.api.config.config_def import ConfigDef, ConfigKey, Importance, Problem, Type
from airflow_connect.api.config.validators import Lambda, Range, ValidString
from airflow_connect.api.config.values import invalid
from airflow_connect.config.keys.sink import DLQ_TOPIC, ERRORS_TOLERANCE
from airflow_connect.connectors.files.shared.settings.visibility import is_time_based

COMPLETE_DIRECTORIES = "complete.directories"
COMPLETE_MARKER = "complete.marker"
COMPLETE_DELAY_MS = "complete.delay.ms"
COMPLETE_IDLE_MS = "complete.idle.ms"
LATE_RECORDS = "late.records"
LATE_DIRECTORY = "late.records.directory"

APPEND, DIRECTORY, DLQ = "append", "directory", "dlq"

_GROUP = "Complete Directories"
_MAX_DELAY_MS = 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class CompleteConfig:
    """The configuration of complete directories.

    Attributes:
        is_on: whether runs detect complete time directories.
        marker: name of the empty file that is created in each of them, or "".
        delay_ms: how far every partition must be beyond the end of a directory.
        idle_ms: how long a partition that was read to its end holds directories back; -1: until it has records.
        late_records: `append`, `directory` or `dlq`.
        late_directory: directory of late records with `directory`.
    """

    is_on: bool = False
    marker: str = ""
    delay_ms: int = 0
    idle_ms: int = -1
    late_records: str = APPEND
    late_directory: str = "_late"

    @classmethod
    def from_parsed(cls, parsed: Mapping[str, Any]) -> CompleteConfig:
        """From the typed values of `complete_keys()`."""
        return cls(
            is_on=parsed[COMPLETE_DIRECTORIES] or bool(parsed[COMPLETE_MARKER]),
            marker=parsed[COMPLETE_MARKER],
            delay_ms=parsed[COMPLETE_DELAY_MS],
            idle_ms=parsed[COMPLETE_IDLE_MS],
            late_records=parsed[LATE_RECORDS],
            late_directory=parsed[LATE_DIRECTORY],
        )


def complete_keys() -> ConfigDef:
    """The keys, and the rules between them; include them along with the partitioner's."""
    medium, low = Importance.MEDIUM, Importance.LOW
    definition = ConfigDef().define(
        ConfigKey(
            COMPLETE_DIRECTORIES, Type.BOOLEAN, False,
            "Whether runs detect complete directories of a time based partitioner: those whose end every partition"
            " of the topic has passed. The run's report lists them, and"
            " ConnectorOperator emits an asset event for each.",
            None, medium, _GROUP, display_name="Complete directories",
        ),
        ConfigKey(
            COMPLETE_MARKER, Type.STRING, "",
            "Name of an empty file, such as _SUCCESS, that is created in each complete directory. It"
            " implies complete.directories=true. Blank: no file.",
            Lambda(_check_file_name, "a file name, or blank"), medium, _GROUP, display_name="Marker of completeness",
        ),
        ConfigKey(
            COMPLETE_DELAY_MS, Type.LONG, 0,
            "Grace period in milliseconds: how far the records of every partition must be beyond the end of a"
            " directory before it is complete. Records that are out of order by less are not late.",
            Range(0, _MAX_DELAY_MS), medium, _GROUP, display_name="Delay of completeness",
        ),
        ConfigKey(
            COMPLETE_IDLE_MS, Type.LONG, -1,
            "For a partition that was read to the end of its log, the time counts as at least the run's clock"
            " minus this many milliseconds, so partitions without records do not hold directories back longer."
            " -1: a directory waits until every partition has a record beyond its end.",
            Range(-1, _MAX_DELAY_MS), medium, _GROUP, display_name="Idle partitions",
        ),
        ConfigKey(
            LATE_RECORDS, Type.STRING, APPEND,
            "What happens to a record whose directory was announced as complete before the run: `append` writes it"
            " there as usual, `directory` writes it below late.records.directory, `dlq` sends it to the dead"
            " letter queue. The report counts late records.",
            ValidString(APPEND, DIRECTORY, DLQ), medium, _GROUP, display_name="Late records",
        ),
        ConfigKey(
            LATE_DIRECTORY, Type.STRING, "_late",
            "Directory below that of the topic that holds the directories of late records, with"
            " late.records=directory. Spark, Hive and pyarrow ignore names that begin with an underscore.",
            Lambda(_check_directory_name, "a name without / and \\"), low, _GROUP,
            display_name="Directory of late records",
        ),
    )  # fmt: skip
    definition.define_rule((COMPLETE_DIRECTORIES, COMPLETE_MARKER, "partitioner.class"), _completeness_needs_time)
    definition.define_rule((COMPLETE_DIRECTORIES, COMPLETE_MARKER, LATE_RECORDS), _lateness_needs_completeness)
    return definition.define_rule((LATE_RECORDS, ERRORS_TOLERANCE, DLQ_TOPIC), _dlq_needs_a_queue)


def _check_file_name(name: str, value: Any) -> None:
    if value and (value.strip() != value or value in (".", "..") or set(value) & {"/", "\\", "\0"}):
        raise invalid(name, value, "It must be the name of a file, without / or \\")


def _check_directory_name(name: str, value: Any) -> None:
    if not value or not value.strip():
        raise invalid(name, value, "It must not be blank")
    _check_file_name(name, value)


def _completeness_needs_time(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if not (parsed[COMPLETE_DIRECTORIES] or parsed[COMPLETE_MARKER]) or is_time_based(parsed["partitioner.class"]):
        return
    key = COMPLETE_MARKER if parsed[COMPLETE_MARKER] else COMPLETE_DIRECTORIES
    yield Problem(
        key,
        f"{key} is set, but directories of {parsed['partitioner.class']} are not based on time, so they are never"
        " complete.",
        f"Set partitioner.class to TimeBasedPartitioner, DailyPartitioner or HourlyPartitioner, or remove {key}.",
    )


def _lateness_needs_completeness(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[LATE_RECORDS] != APPEND and not (parsed[COMPLETE_DIRECTORIES] or parsed[COMPLETE_MARKER]):
        yield Problem(
            LATE_RECORDS,
            f"{LATE_RECORDS} is {parsed[LATE_RECORDS]}, but without {COMPLETE_DIRECTORIES} nothing is ever late.",
            f"Set {COMPLETE_DIRECTORIES}=true or {COMPLETE_MARKER}, or remove {LATE_RECORDS}.",
        )


def _dlq_needs_a_queue(parsed: Mapping[str, Any]) -> Iterable[Problem]:
    if parsed[LATE_RECORDS] != DLQ or (parsed[DLQ_TOPIC] and parsed[ERRORS_TOLERANCE] == "all"):
        return
    yield Problem(
        LATE_RECORDS,
        f"{LATE_RECORDS} is {DLQ}, but there is no dead letter queue: late records would fail the run or be lost.",
        f"Set {DLQ_TOPIC} to a topic and {ERRORS_TOLERANCE}=all, or {LATE_RECORDS}={DIRECTORY}.",
    )
