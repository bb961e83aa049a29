"""What service and clients say to each other: JSON over HTTP. Plain data; a triggerer loads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from airflow_connect.api.json_document import JsonDocument

RUNS_PATH, LOOK_PATH, SERVICE_PATH = "/v1/runs", "/v1/look", "/v1/service"
NO_SUCH_RUN = "There is no such run."
ATTEMPT = "attempt"
"""Query parameter of a request to end a run: the run id under which the attempt that asks has asked for the run."""
MOST_RUNS_OF_A_LOOK = 1000
RUN_ID = re.compile(r"[\w.-]{1,100}", re.ASCII)
DEFAULT_PORT = 8088


class RunState(StrEnum):
    """Where a run is."""

    WAITING = "waiting"
    """For one of the service's places."""
    RUNNING = "running"
    ENDED = "ended"
    UNKNOWN = "unknown"
    """The service was restarted since, or has forgotten the run."""


class EndedBy(StrEnum):
    """Who ended a run."""

    ITSELF = ""
    REQUEST = "request"
    LEASE = "lease"
    SHUTDOWN = "shutdown"


@dataclass(frozen=True, slots=True)
class RunView(JsonDocument):
    """A run, as the service describes it.

    Attributes:
        run_id: of the run, which may be older than the request that asked for it.
        state: where it is.
        lease_s: seconds after which a run that nobody asks after is ended.
        ended_by: who ended it.
        report: `RunReport.to_json` of a driver that reported; None: it did not, or has not ended.
        exit_code: of a driver that ended without a report; negative: the signal.
        log_tail: the last lines of its log.
        error: `ConnectError.to_json` if the driver could not be started.
    """

    run_id: str
    state: RunState
    lease_s: float = 0.0
    ended_by: EndedBy = EndedBy.ITSELF
    report: Mapping[str, Any] | None = None
    exit_code: int | None = None
    log_tail: str = ""
    error: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class RunNews(JsonDocument):
    """What a look finds of a run.

    Attributes:
        state: where it is.
        entries: events of `runtime.spec.Observer` and lines of the log (`{"event": "log", "line": ...}`) since the
            last look, whoever looked.
        skipped: entries that were dropped because nobody looked in time.
    """

    state: RunState
    entries: list[dict[str, Any]] = field(default_factory=list)
    skipped: int = 0
