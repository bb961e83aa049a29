"""Which connectors are due: pure bookkeeping of one worker process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from airflow_connect.config.keys.connector import RUN_INTERVAL_SECONDS
from airflow_connect.control.state.config_fold import ConfigState
from airflow_connect.control.state.records import STARTED


class Due(NamedTuple):
    """A connector that shall run now.

    Attributes:
        offset: of its configuration record.
    """

    name: str
    config: Mapping[str, str | None]
    offset: int


@dataclass(slots=True)
class _Last:
    """The last run of a connector by this process; `seen`: end of the config topic when it began."""

    offset: int
    seen: int
    ended_s: float
    may_repeat: bool


class Schedule:
    """Remembers runs and says what is due.

    A connector is due when it is new, when its configuration is, when a restart was requested since its last run
    began, and when its interval is over. After a permanent error, the interval does not count.
    """

    def __init__(self, interval_s: float, first_offset: int) -> None:
        """`interval_s`: of connectors without their own; `first_offset`: restarts before it are history."""
        self._interval_s = interval_s
        self._first_offset = first_offset
        self._last: dict[str, _Last] = {}
        self._began: dict[str, tuple[int, int]] = {}

    def due(self, config: ConfigState, now_s: float) -> list[Due]:
        """What shall run, the longest waiting first."""
        found = [
            (last.ended_s if (last := self._last.get(name)) else float("-inf"), name)
            for name in config.connectors
            if config.target(name) == STARTED and self._is_due(config, name, now_s)
        ]
        self._last = {name: last for name, last in self._last.items() if name in config.connectors}
        return [
            Due(name, dict(config.connectors[name].config), config.connectors[name].offset) for _, name in sorted(found)
        ]

    def begin(self, config: ConfigState, due: Due) -> None:
        """A run begins."""
        self._began[due.name] = due.offset, config.next_offset

    def end(self, name: str, now_s: float, *, may_repeat: bool) -> None:
        """It has ended; `may_repeat`: it succeeded, or may succeed another time."""
        offset, seen = self._began.pop(name)
        self._last[name] = _Last(offset, seen, now_s, may_repeat)

    def _is_due(self, config: ConfigState, name: str, now_s: float) -> bool:
        last = self._last.get(name)
        if last is None or last.offset != config.connectors[name].offset:
            return True
        since = max(last.seen, self._first_offset)
        if any(restart.connector == name and restart.offset >= since for restart in config.restarts):
            return True
        return last.may_repeat and now_s - last.ended_s >= self._interval_of(config, name)

    def _interval_of(self, config: ConfigState, name: str) -> float:
        given = config.connectors[name].config.get(RUN_INTERVAL_SECONDS) or ""
        return float(given) if given.isascii() and given.isdigit() else self._interval_s
