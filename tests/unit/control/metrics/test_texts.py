"""Metrics of a worker, from its runs and the state topics to the texts that are scraped."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from airflow_connect.control.herder.changes import Writer
from airflow_connect.control.metrics.beans import Bean, WorkerMetrics
from airflow_connect.control.metrics.run_counts import RunCounts
from airflow_connect.control.metrics.texts import jmx_json, prometheus_text
from airflow_connect.control.state.topics import Change, State
from airflow_connect.documents.run import RunReport

ODD = 'odd"name,\\*'


class Topics:
    """State topics of two workers, `a:1` and `b:2`, as far as metrics read them."""

    def __init__(self) -> None:
        self.state = State()
        for name, worker in (("mine", "a:1"), (ODD, "a:1"), ("theirs", "b:2")):
            config = {"connector.class": "FileStreamSink", "tasks.max": "2", "topics": "t", "name": name}
            self.apply(Writer(worker).created(self.state, name, config, None))

    def apply(self, change: Change) -> None:
        for key, value in change.config:
            self.state.config.take(key, value, self.state.config.next_offset)
        for key, value in change.status:
            self.state.status.take(key, value)

    def look(self, use: Callable[[State], Any]) -> Any:
        return use(self.state)


class Group:
    rebalances = 3
    last_rebalance_s: float | None = None
    is_rebalancing, is_leader = False, True


@pytest.fixture
def metrics() -> WorkerMetrics:
    counts = RunCounts()
    for error in (None, {"code": "x"}):
        counts.began("mine")
        done = RunReport("mine", "r", "done", 0, 1, records=7, filtered=2, dead_lettered=1, tasks=2, error=error)
        counts.ended("mine", done, took_ms=500, now_ms=1234)
    counts.began("mine")
    topics = Topics()
    topics.apply(Writer("a:1").run_ended(topics.state, "mine", "why", is_config=False))
    return WorkerMetrics(topics, counts, "a:1", Group())  # type: ignore[arg-type]


def samples(beans: list[Bean]) -> dict[str, dict[str, float]]:
    """Values by metric, then by connector."""
    found: dict[str, dict[str, float]] = {}
    for family in text_string_to_metric_families(prometheus_text(beans).decode()):
        for sample in family.samples:
            found.setdefault(sample.name, {})[sample.labels.get("connector", "")] = sample.value
    return found


def test_prometheus_gets_counts_of_this_workers_connectors_under_their_usual_names(metrics):
    found = samples(metrics.beans())
    assert found["kafka_connect_worker_connector_count"] == {"": 2}
    assert found["kafka_connect_worker_task_count"] == {"": 4}
    assert found["kafka_connect_worker_connector_failed_task_count"] == {"mine": 2, ODD: 0}
    assert found["kafka_connect_worker_connector_startup_attempts_total"] == {"": 3}
    assert found["kafka_connect_worker_connector_startup_failure_total"] == {"": 1}
    assert found["kafka_connect_worker_rebalance_completed_rebalances_total"] == {"": 3}
    assert found["kafka_connect_sink_task_sink_record_read_total"] == {"mine": 10, ODD: 0}
    assert found["kafka_connect_sink_task_sink_record_send_total"]["mine"] == 7
    assert found["kafka_connect_task_error_deadletterqueue_produce_requests"]["mine"] == 1
    assert found["kafka_connect_connector_task_run_time_avg_ms"]["mine"] == 500
    assert found["kafka_connect_connector_task_run_active_count"]["mine"] == 1


def test_the_state_and_class_of_a_connector_are_labels(metrics):
    families = text_string_to_metric_families(prometheus_text(metrics.beans()).decode())
    (status,) = (family for family in families if family.name == "kafka_connect_connector_status")
    shown = {sample.labels["connector"]: sample.labels for sample in status.samples}
    assert shown["mine"]["status"] == "running" and shown["mine"]["connector_type"] == "sink"
    assert shown[ODD]["connector_class"] == "FileStreamSink"


def test_jmx_json_has_a_bean_for_each_kind_and_connector(metrics):
    beans = {bean["name"]: bean for bean in json.loads(jmx_json(metrics.beans()))["beans"]}
    assert beans["kafka.connect:type=connect-worker-metrics"]["connector-count"] == 2
    assert beans['kafka.connect:type=connector-metrics,connector="mine"']["status"] == "running"
    assert beans['kafka.connect:type=task-error-metrics,connector="mine"']["last-error-timestamp"] == 1234
    assert 'kafka.connect:type=connector-metrics,connector="odd\\"name,\\\\\\*"' in beans
    assert not any("theirs" in name for name in beans)


def test_a_worker_that_shares_with_nobody_shows_all_connectors_and_no_group(metrics):
    alone = WorkerMetrics(metrics.topics, metrics.counts)
    found = samples(alone.beans())
    assert found["kafka_connect_worker_connector_count"] == {"": 3}
    assert not any("rebalance" in name for name in found)
