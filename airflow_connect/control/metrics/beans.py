"""The metrics of a worker as beans, with the names and attributes of Kafka Connect's MBeans.

Source: https://kafka.apache.org/43/generated/connect_metrics.html. docs/rest.md tells what each means for bounded runs.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from airflow_connect.control.herder.task_configs import SOURCE, kind_of, version_of
from airflow_connect.control.metrics.run_counts import OfConnector, RunCounts
from airflow_connect.control.state.topics import State, StateTopics

Value = int | float | str
DOMAIN = "kafka.connect"
WORKER, REBALANCE = "connect-worker-metrics", "connect-worker-rebalance-metrics"
CONNECTOR, TASK, ERRORS = "connector-metrics", "connector-task-metrics", "task-error-metrics"
SINK_TASK, SOURCE_TASK = "sink-task-metrics", "source-task-metrics"
_STATES = ("running", "paused", "failed", "unassigned", "restarting", "destroyed")


class Bean(NamedTuple):
    """An MBean: `kafka.connect:type=<kind>`, with `connector` if it is about one."""

    kind: str
    values: Mapping[str, Value]
    connector: str = ""

    @property
    def name(self) -> str:
        """As JMX writes it; a name with special characters is quoted."""
        quoted = self.connector.replace("\\", "\\\\").replace('"', '\\"').replace("*", "\\*").replace("?", "\\?")
        return f"{DOMAIN}:type={self.kind}" + (f',connector="{quoted}"' if self.connector else "")


class Group(Protocol):
    """The group of workers, as its metrics need it: a `WorkerMembership`."""

    rebalances: int
    last_rebalance_s: float | None

    @property
    def is_rebalancing(self) -> bool:
        """Whether this process is not a member now."""

    @property
    def is_leader(self) -> bool:
        """Whether the only partition of the config topic is assigned to it."""


@dataclass(frozen=True, slots=True)
class WorkerMetrics:
    """Where the metrics of one worker come from.

    Attributes:
        topics: open.
        counts: of its runs.
        worker_id: host:port.
        group: None: it shares its connectors with nobody.
    """

    topics: StateTopics
    counts: RunCounts = field(default_factory=RunCounts)
    worker_id: str = ""
    group: Group | None = None

    def beans(self) -> list[Bean]:
        """All metrics now. Connectors are those of this worker, so the sum over all workers counts each once.

        Raises:
            UnavailableError, AccessError: Kafka.
        """
        found = self.topics.look(self._of_connectors)
        own = [bean for bean in found if bean.kind == WORKER]
        tasks = sum(int(bean.values["connector-total-task-count"]) for bean in own)
        return [*self._of_worker(len(own), tasks), *found]

    def _of_worker(self, connectors: int, tasks: int) -> list[Bean]:
        counts = self.counts
        worker: dict[str, Value] = {
            "connector-count": connectors,
            "task-count": tasks,
            **_startups("connector", counts.attempts, counts.failures),
            **_startups("task", counts.task_attempts, counts.task_failures),
        }
        if self.group is None:
            return [Bean(WORKER, worker)]
        since = self.group.last_rebalance_s
        rebalance: dict[str, Value] = {
            "completed-rebalances-total": self.group.rebalances,
            "rebalancing": int(self.group.is_rebalancing),
            "is-leader": int(self.group.is_leader),
            "time-since-last-rebalance-ms": round((time.time() - since) * 1000) if since else 0,
        }
        return [Bean(WORKER, worker), Bean(REBALANCE, rebalance)]

    def _of_connectors(self, state: State) -> list[Bean]:
        return [
            bean
            for name, status in state.status.connectors.items()
            if name in state.config.connectors and (self.group is None or status.worker_id == self.worker_id)
            for bean in self._of_connector(state, name)
        ]

    def _of_connector(self, state: State, name: str) -> list[Bean]:
        config, of = state.config.connectors[name].config, self.counts.of(name)
        tasks = Counter(task.state.lower() for task in state.status.tasks.get(name, {}).values())
        kind = kind_of(config)
        about: dict[str, Value] = {
            "status": state.status.connectors[name].state.lower(),
            "connector-class": config.get("connector.class") or "",
            "connector-type": kind,
            "connector-version": version_of(config) or "",
        }
        counted: dict[str, Value] = {f"connector-{shown}-task-count": tasks[shown] for shown in _STATES}
        counted["connector-total-task-count"] = tasks.total()
        records = _source_task(of) if kind == SOURCE else _sink_task(of)
        return [
            Bean(WORKER, counted, name),
            Bean(CONNECTOR, about, name),
            Bean(TASK, _task(of), name),
            Bean(SOURCE_TASK if kind == SOURCE else SINK_TASK, records, name),
            Bean(ERRORS, _errors(of), name),
        ]


def _startups(what: str, attempts: int, failures: int) -> dict[str, Value]:
    share = failures / attempts if attempts else 0.0
    return {
        f"{what}-startup-attempts-total": attempts,
        f"{what}-startup-failure-total": failures,
        f"{what}-startup-success-total": attempts - failures,
        f"{what}-startup-failure-percentage": share,
        f"{what}-startup-success-percentage": 1 - share if attempts else 0.0,
    }


def _task(of: OfConnector) -> dict[str, Value]:
    active_s = None if of.began_s is None else time.monotonic() - of.began_s
    ended = of.attempts - (active_s is not None)
    return {
        "run-active-count": int(active_s is not None),
        "run-active-time-ms": round((active_s or 0.0) * 1000),
        "run-attempts-total": of.attempts,
        "run-failure-total": of.failures,
        "run-time-ms-total": of.run_ms,
        "run-time-max-ms": of.longest_run_ms,
        "run-time-avg-ms": of.run_ms / ended if ended else 0.0,
    }


def _sink_task(of: OfConnector) -> dict[str, Value]:
    return {
        "sink-record-read-total": of.read,
        "sink-record-send-total": of.sent,
        "offset-commit-completion-total": of.commits,
    }


def _source_task(of: OfConnector) -> dict[str, Value]:
    return {"source-record-poll-total": of.read, "source-record-write-total": of.sent}


def _errors(of: OfConnector) -> dict[str, Value]:
    return {
        "total-records-skipped": of.skipped,
        "deadletterqueue-produce-requests": of.dead_lettered,
        "last-error-timestamp": of.last_error_ms,
    }
