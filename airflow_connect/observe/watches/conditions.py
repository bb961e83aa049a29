"""What somebody waits for, as plain data: it travels from a task to a triggerer. Imports no Kafka client.

Times are milliseconds since the epoch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from airflow_connect.errors import ConfigError

FAIL, WAIT = "fail", "wait"


@dataclass(frozen=True, slots=True)
class LagReaches:
    """A sink connector has at least so much to copy. One of the bounds that are set is enough.

    Attributes:
        min_records: offsets between what is committed and the end of the log, over all partitions. Gaps count.
        min_bytes: those offsets times the bytes per record that the last run measured for the topic, as a plan does.
        min_age_ms: age of the oldest record that is not copied, by its timestamp.
    """

    kind: ClassVar[str] = "lag"

    min_records: int | None = None
    min_bytes: int | None = None
    min_age_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse a condition that can never be reached, or that says nothing.

        Raises:
            ConfigError: no bound is set, or one is not positive.
        """
        given = [("min_records", self.min_records), ("min_bytes", self.min_bytes), ("min_age", self.min_age_ms)]
        if all(value is None for _, value in given):
            raise ConfigError(
                "None of min_records, min_bytes and min_age is set.",
                config_path="min_records",
                suggestion="Set at least one of them; min_records=1 waits for any record.",
            )
        for name, value in given:
            _check_positive(name, value)


@dataclass(frozen=True, slots=True)
class TopicsHold:
    """The topics hold at least so many records, together.

    Attributes:
        min_records: offsets, from the beginning of the log or `since_ms`. Gaps count.
        since_ms: only records from the first one at or after this time on; None: all.
    """

    kind: ClassVar[str] = "data"

    min_records: int = 1
    since_ms: int | None = None

    def __post_init__(self) -> None:
        """Refuse a number of records that is always reached.

        Raises:
            ConfigError: it is not positive.
        """
        _check_positive("min_records", self.min_records)


@dataclass(frozen=True, slots=True)
class RunEnds:
    """A run of a connector has ended: it has committed, has found nothing to copy, or is known to have failed.

    Attributes:
        since_ms: any run that began at this time or later.
        run_id: this run; takes precedence.
        on_failure: `fail` or `wait`, for a run that has failed.
    """

    kind: ClassVar[str] = "run"

    since_ms: int = 0
    run_id: str = ""
    on_failure: str = FAIL

    def __post_init__(self) -> None:
        """Refuse an unknown word.

        Raises:
            ConfigError: `on_failure` is neither `fail` nor `wait`.
        """
        if self.on_failure not in (FAIL, WAIT):
            raise ConfigError(
                f"on_failure is {self.on_failure!r}.",
                config_path="on_failure",
                suggestion=f"Set it to {FAIL!r} or {WAIT!r}.",
            )


@dataclass(frozen=True, slots=True)
class TimePassed:
    """Every partition of the topics has passed a time: it holds a committed record with this timestamp or a later one.

    Attributes:
        time_ms: the time, exclusive end of an hour for example.
        idle_ms: a partition without such a record has also passed if the clock is this much later than `time_ms` and no
            transaction is open at its end; None: its record is waited for.
    """

    kind: ClassVar[str] = "time"

    time_ms: int
    idle_ms: int | None = None


@dataclass(frozen=True, slots=True)
class SourceChanges:
    """A source connector has something to read that it has not committed; see `sources`."""

    kind: ClassVar[str] = "source"


Condition = LagReaches | TopicsHold | RunEnds | TimePassed
"""What a `ClusterReader` answers."""
AnyCondition = Condition | SourceChanges
_KINDS: Mapping[str, type[AnyCondition]] = {
    kind.kind: kind for kind in (LagReaches, TopicsHold, RunEnds, TimePassed, SourceChanges)
}


def condition_to_json(condition: AnyCondition) -> dict[str, Any]:
    """Plain JSON form."""
    return {"kind": condition.kind, **asdict(condition)}


def condition_of_json(data: Mapping[str, Any]) -> AnyCondition:
    """Inverse of `condition_to_json`."""
    return _KINDS[data["kind"]](**{key: value for key, value in data.items() if key != "kind"})


def _check_positive(name: str, value: int | None) -> None:
    if value is not None and value <= 0:
        raise ConfigError(f"{name} is {value}.", config_path=name, suggestion="Set a positive number.")
