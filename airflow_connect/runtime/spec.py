"""What a driver process is told (one JSON line on its standard input) and what it tells back (events on its output)."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol


def new_run_id(now_ms: int | None = None) -> str:
    """A run id: sortable by time, unique for ever, safe in file names: `20261121T021530-3f9a1c`."""
    seconds = (time.time_ns() // 1_000_000 if now_ms is None else now_ms) / 1000
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(seconds)) + "-" + secrets.token_hex(3)


@dataclass(frozen=True, slots=True)
class RunSpec:
    """One run to do.

    Attributes:
        connector: connector configuration as people write it for Kafka Connect, `name` included. Run limits of a
            trigger form (`run.max.records`, ...) are merged into it by the caller. References to config providers are
            in it as they were written, also in `worker`: so it can be shown and stored.
        worker: worker configuration: `bootstrap.servers`, `group.id`, converters, security, `spark.*`. Names of
            Kafka's Java clients and of librdkafka (an Airflow `kafka` connection) are both understood.
        run_id: identity of the run; `new_run_id()` when the caller has none.
        aws: credentials of an Airflow `aws` connection, or {}: `access_key_id`, `secret_access_key`, `session_token`,
            `region`, `endpoint_url`, `role_arn`, `external_id`. Used where the connector has no credentials of its own.
        references: what references `${provider:path:key}` stand for, as far as the caller has asked. The driver asks
            for the others itself; those of Airflow only the process of the task can ask for.
        origin: who asked, for the run history: plain strings (`dag_id`, `dag_run_id`, `task_id`, `try_number`, ...).
    """

    connector: Mapping[str, Any]
    worker: Mapping[str, Any]
    run_id: str = field(default_factory=new_run_id)
    aws: Mapping[str, str] = field(default_factory=dict, repr=False)
    references: Mapping[str, str] = field(default_factory=dict, repr=False)
    origin: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON form. It holds secrets: it goes through a pipe, never into argv, a file or a log."""
        return {
            "connector": dict(self.connector),
            "worker": dict(self.worker),
            "run_id": self.run_id,
            "aws": dict(self.aws),
            "references": dict(self.references),
            "origin": dict(self.origin),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> RunSpec:
        """Inverse of `to_json`."""
        return cls(**data)


class Observer(Protocol):
    """Hears what a run does while it does it. Every event is one plain JSON object with an `event` member.

    Events, in order: `start` {connector, run_id}; `phase` {phase, ...} at the start of each of fence, recover, plan,
    copy, audit, manifest, publish, commit, sweep; `plan` {plan: Plan.to_json(), note: ...} once; `progress` {phase:
    copy|publish, done, total, bytes, seconds} at most twice a second; `warning` {message}; `end` {report:
    RunReport.to_json()} exactly once, also after a failure.
    """

    def __call__(self, event: Mapping[str, Any]) -> None:
        """Receive one event; must return quickly and must not raise."""


def ignore_events(event: Mapping[str, Any]) -> None:
    """An observer that does not listen."""
