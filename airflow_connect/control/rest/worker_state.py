"""What a server says about its own process. Imports no web framework, which may be missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from airflow_connect.control.herder.loggers import Loggers


def _nothing_runs() -> Mapping[str, float]:
    return {}


@dataclass(frozen=True, slots=True)
class WorkerState:
    """What a server says about its own process.

    Attributes:
        loggers: its log levels.
        running_s: the connectors that it runs now, with the seconds since their run began.
    """

    loggers: Loggers = field(default_factory=Loggers)
    running_s: Callable[[], Mapping[str, float]] = _nothing_runs
