"""Which connectors are due: pure bookkeeping of one worker process."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from airflow_connect.config.keys.sink import SinkKeys
from airflow_connect.control.state.config_fold import ConfigState, Restart
from airflow_connect.control.state.records import STARTED
from airflow_connect.observe.watches.conditions import LagReaches

ANYTHING = LagReaches(min_records=1)
_MOST_DIGITS = 18  # As many as a 64-bit number always has room for.
MOST_SPARE = 5.0
"""Runs that write files, in a row, each before the interval of the connector is over."""
LONGEST_PAUSE_S = 600.0
"""Longest pause after failed runs; longer only if the interval is."""


class Due(NamedTuple):
    """A connector that shall run now.

    Attributes:
        config: its configuration, with the limits of a requested run.
        offset: of its configuration record.
        lag: how much it must not have copied before it runs; None: it runs in any case.
        is_early: its interval is not over.
        run_id: of a run that was requested, or "".
    """

    name: str
    config: Mapping[str, str | None]
    offset: int
    lag: LagReaches | None = None
    is_early: bool = False
    run_id: str = ""


class Early(NamedTuple):
    """How a connector may run again before its interval is over.

    Attributes:
        after_s: not before so many seconds have passed.
        asks: it has to run to find out whether there is something to copy, as sources do; otherwise the worker looks.
        made_files: the run has written files, which should not become many and small.
    """

    after_s: float
    asks: bool = False
    made_files: bool = False


class Ended(NamedTuple):
    """What a run says about the next one.

    Attributes:
        may_repeat: it succeeded, or may succeed another time.
        has_failed: it did not succeed.
        early: None: the next one waits for the interval.
    """

    may_repeat: bool = True
    has_failed: bool = False
    early: Early | None = None


@dataclass(slots=True)
class _Last:
    """The last run of a connector by this process.

    Attributes:
        seen: end of the config topic when it began.
        failures: how many of the last runs have failed, one after the other.
        early: see `Early`; None: it waits for its interval.
        spare: how many runs that write files may come before the interval is over. One more for each interval.
    """

    offset: int
    seen: int
    ended_s: float
    may_repeat: bool
    failures: int = 0
    early: Early | None = None
    spare: float = MOST_SPARE


class Schedule:
    """Remembers runs and says what is due.

    A connector is due when it is new, when its configuration is, when a restart was requested or it was resumed since
    its last run began, and when its interval is over. After a permanent error, the interval does not count; after
    others it doubles with each failed run, up to `LONGEST_PAUSE_S`. A connector with conditions on its lag waits for
    one of them as well, unless a restart was requested. With `Early`, data makes a connector due earlier.
    """

    def __init__(self, interval_s: float, first_offset: int) -> None:
        """`interval_s`: of connectors without their own; `first_offset`: restarts before it are history."""
        self._interval_s = interval_s
        self._first_offset = first_offset
        self._last: dict[str, _Last] = {}
        self._began: dict[str, tuple[int, int]] = {}

    def due(self, config: ConfigState, now_s: float, own: Collection[str] | None = None) -> list[Due]:
        """What shall run and does not, the longest waiting first; `own`: connectors of this worker, None: all."""
        asked = {restart.connector: restart for restart in config.restarts}
        found = [
            (last.ended_s if (last := self._last.get(name)) else float("-inf"), name)
            for name in config.connectors
            if (own is None or name in own) and config.target(name) == STARTED and name not in self._began
            if self._new(asked.get(name)) or self._is_due(config, name, now_s) or self._is_early(name, now_s)
        ]
        self._last = {name: last for name, last in self._last.items() if name in config.connectors}
        return [self._due(config, name, now_s, self._new(asked.get(name))) for _, name in sorted(found)]

    def begin(self, config: ConfigState, due: Due) -> None:
        """A run begins."""
        self._began[due.name] = due.offset, config.next_offset

    def end(self, name: str, now_s: float, ended: Ended) -> None:
        """It has ended."""
        offset, seen = self._began.pop(name)
        before = self._last.get(name)
        earlier = before.failures if before and before.offset == offset else 0
        failures = earlier + 1 if ended.has_failed else 0
        spare, early = self._spare(before, now_s), ended.early
        if early is not None and early.made_files:
            spare = max(0.0, spare - 1)
            early = early if spare >= 1 else None
        self._last[name] = _Last(offset, seen, now_s, ended.may_repeat, failures, early, spare)

    def _spare(self, before: _Last | None, now_s: float) -> float:
        if before is None:
            return MOST_SPARE
        return min(MOST_SPARE, before.spare + (now_s - before.ended_s) / self._interval_s)

    def _due(self, config: ConfigState, name: str, now_s: float, restart: Restart | None) -> Due:
        registered = config.connectors[name]
        if restart is not None:
            limited = {**registered.config, **dict(restart.limits)}
            return Due(name, limited, registered.offset, run_id=restart.run_id)
        is_early = not self._is_due(config, name, now_s)
        lag = lag_condition(registered.config)
        if is_early and not self._asks(name):
            lag = ANYTHING
        return Due(name, dict(registered.config), registered.offset, lag, is_early)

    def _new(self, asked: Restart | None) -> Restart | None:
        """The last request, if it is newer than what the last run has seen."""
        last = self._last.get(asked.connector) if asked else None
        return asked if asked and asked.offset >= max(last.seen if last else 0, self._first_offset) else None

    def _is_due(self, config: ConfigState, name: str, now_s: float) -> bool:
        last = self._last.get(name)
        if last is None or last.offset != config.connectors[name].offset:
            return True
        if config.target_offsets.get(name, -1) >= last.seen:
            return True  # Resumed, perhaps with other offsets: what the last run failed at may be repaired.
        return last.may_repeat and now_s - last.ended_s >= self._pause_s(config, name, last.failures)

    def _is_early(self, name: str, now_s: float) -> bool:
        """Whether data is enough for a connector whose interval is not over."""
        last = self._last.get(name)
        return last is not None and last.early is not None and now_s - last.ended_s >= last.early.after_s

    def _asks(self, name: str) -> bool:
        last = self._last[name]
        return last.early is not None and last.early.asks

    def _pause_s(self, config: ConfigState, name: str, failures: int) -> float:
        interval_s = self._interval_of(config, name)
        doubled_s = interval_s * 2.0 ** min(max(failures - 1, 0), 16)
        return max(interval_s, min(doubled_s, LONGEST_PAUSE_S))

    def _interval_of(self, config: ConfigState, name: str) -> float:
        return _number(config.connectors[name].config, SinkKeys.run_interval_seconds.name) or self._interval_s


def lag_condition(config: Mapping[str, str | None]) -> LagReaches | None:
    """What `run.lag.records` and `run.lag.seconds` ask for; None: nothing. Values that a run refuses do not count."""
    least, oldest_s = _number(config, SinkKeys.run_lag_records.name), _number(config, SinkKeys.run_lag_seconds.name)
    if not least and not oldest_s:
        return None
    return LagReaches(min_records=least or None, min_age_ms=oldest_s * 1000 or None)


def timeout_of(config: Mapping[str, str | None]) -> float:
    """`run.timeout.seconds` of a connector; 0: it sets none."""
    return _number(config, SinkKeys.run_timeout_seconds.name)


def _number(config: Mapping[str, str | None], key: str) -> int:
    given = (config.get(key) or "").strip()
    # A configuration that something else has written into the topic may have a number of any size.
    return int(given) if given.isdecimal() and len(given) <= _MOST_DIGITS else 0
