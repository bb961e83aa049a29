"""The input of a driver process (one JSON line on its standard input) and its output (events on standard output)."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from airflow_connect.api.json_document import JsonDocument

LAST_TRY = "last_try"
"""In `RunSpec.origin`: "true" if nobody tries again after a failure."""

_RUN_ID = re.compile(r"[0-9]{8}T[0-9]{6}-[0-9a-f]{6}")


def new_run_id(now_ms: int | None = None) -> str:
    """A run id: sortable by time, unique forever, safe in file names: `20261121T021530-3f9a1c`.

    Of the six hexadecimal digits, the first three are the fraction of the second, the others random.
    """
    seconds, millis = divmod(time.time_ns() // 1_000_000 if now_ms is None else now_ms, 1000)
    digits = (millis * 4096 // 1000) << 12 | secrets.randbelow(4096)
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + f"-{digits:06x}"


def is_run_id(value: object) -> bool:
    """Whether it has the form of `new_run_id`."""
    return isinstance(value, str) and _RUN_ID.fullmatch(value) is not None


@dataclass(frozen=True, slots=True)
class RunSpec(JsonDocument):
    """The specification of one run.

    Its JSON form holds secrets: it goes through a pipe, never into argv, a file or a log.

    Attributes:
        connector: connector configuration as written for Kafka Connect, including `name`. The caller merges run limits
            of a trigger form (`run.max.records`, ...) into it. References to config providers are unresolved here and
            in `worker`, so both can be shown and stored.
        worker: worker configuration: `bootstrap.servers`, `group.id`, converters, security, `spark.*`. Names of
            Kafka's Java clients and of librdkafka (an Airflow `kafka` connection) are both understood.
        run_id: identity of the run; `new_run_id()` if the caller has none.
        aws: credentials of an Airflow `aws` connection, or {}: `access_key_id`, `secret_access_key`, `session_token`,
            `region`, `endpoint_url`, `role_arn`, `external_id`. Used if the connector has no credentials of its own.
        references: values of references `${provider:path:key}` that the caller has resolved. The driver resolves the
            others itself; references to Airflow can be resolved only in the process of the Airflow task.
        origin: who started the run, for the run history: plain strings (`dag_id`, `dag_run_id`, `task_id`,
            `try_number`, `LAST_TRY`, ...).
        bounds: ranges that a run of a sink must not leave: `Bounds.to_json` of an approved plan, or
            `ReplayRange.to_json`; {}: none.
    """

    KNOWS_ALL = True

    connector: Mapping[str, Any]
    worker: Mapping[str, Any]
    run_id: str = field(default_factory=new_run_id)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, Any] = field(default_factory=dict)


class Observer(Protocol):
    """Receives the events of a run while it works. Every event is one plain JSON object with an `event` member.

    Events, in order: `start` {connector, run_id}; `phase` {phase, ...} at the start of each of fence, recover, plan,
    copy, audit, manifest, publish, commit, sweep; `plan` {plan: Plan.to_json(), note: ...} once; `progress` {phase:
    copy|publish, done, total, bytes, seconds} at most twice a second; `warning` {message}; `end` {report:
    RunReport.to_json()} exactly once, even after a failure.
    """

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event; must return quickly and must not raise."""


def ignore_events(event: Mapping[str, Any]) -> None:
    """An observer that ignores all events."""
