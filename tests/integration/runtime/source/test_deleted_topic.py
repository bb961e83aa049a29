"""The topic of a source that is deleted during a run: named after seconds, not when the client gives up."""

from __future__ import annotations

import pytest

from airflow_connect.kafka.writing import missing_topics
from airflow_connect.runtime import crash_points
from tests.integration.runtime.source.conftest import Numbers
from tests.support.kafka_data import delete_topic


@pytest.mark.parametrize("point", [crash_points.SOURCE_TASK_POLLED, crash_points.SOURCE_TASK_SENT])
def test_topic_that_is_deleted_during_a_run_is_named(
    numbers: Numbers, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    monkeypatch.setattr(missing_topics, "LOOK_AFTER_S", 0.05)
    numbers.feed(30)
    seen: list[str] = []

    def reached(name: str) -> None:
        seen.append(name)
        if name == point and seen.count(point) == 2:
            delete_topic(numbers.bootstrap, numbers.topic)

    monkeypatch.setattr(crash_points, "reached", reached)

    report = numbers.try_run(tasks_max="1")

    assert report.status == "failed" and report.error is not None
    assert report.error["code"] == "kafka.no_topic"
    assert f"Kafka no longer has topic {numbers.topic}, to which a task writes records" in report.error["message"]
