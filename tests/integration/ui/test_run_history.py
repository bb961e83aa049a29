"""What the history keeps of a run for charts: the age of what it has found, and why records failed; on both paths."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

from airflow_connect.control.settings import ControlSettings
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.testing.runs import run_here
from airflow_connect.ui.overview.reader import InstallationReader
from tests.support.kafka_data import TopicProducer
from tests.support.servers.rest import worker_of

pytestmark = pytest.mark.integration

HOUR_MS = 3_600_000
REASON = ("VALUE_CONVERTER", "data.invalid")


@pytest.mark.parametrize("columnar", [True, False], ids=["columns", "records"])
@pytest.mark.parametrize("has_queue", [True, False], ids=["queue", "skipped"])
def test_history_has_the_age_of_the_oldest_record_and_the_reasons_of_failed_ones(
    kafka, make_topic: Callable[..., str], produce: TopicProducer, unique_name: str, tmp_path: Path,
    columnar: bool, has_queue: bool,
) -> None:  # fmt: skip
    topic, now_ms = make_topic(2), time.time_ns() // 1_000_000
    oldest_ms = now_ms - 2 * HOUR_MS
    rows = [(1, None, b'{"n":1}', oldest_ms, []), (1, None, b'{"n":2}', now_ms - 5 * HOUR_MS, [])]
    rows += [(0, None, b"no json" if n < 3 else b'{"n":3}', now_ms - HOUR_MS, []) for n in range(20)]
    produce(topic, rows)
    worker = worker_of(kafka.bootstrap, unique_name)
    queue = {
        "errors.deadletterqueue.topic.name": f"{topic}-dlq",
        "errors.deadletterqueue.topic.replication.factor": "1",
    }
    sink = {
        "name": unique_name,
        "connector.class": "LocalSink",
        "topics": topic,
        "store.url": f"file://{tmp_path}",
        "format.class": "JsonFormat",
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "flush.size": "100",
        "errors.tolerance": "all",
        **(queue if has_queue else {}),
    }
    report, _ = run_here(RunSpec(sink, worker), columnar=columnar)
    assert (report.status, report.records, report.dead_lettered) == ("done", 19, 3 if has_queue else 0)

    found = InstallationReader(ControlSettings.from_worker(worker)).read().connectors[unique_name].runs[0]
    assert found.reasons == ((*REASON, 3),)
    assert found.lag is not None and found.lag.oldest_ms == oldest_ms  # of the first records, by offset
    assert 2 * HOUR_MS <= (found.lag.age_ms or 0) < 3 * HOUR_MS
    assert found.tasks is not None and found.tasks.number == 1
