"""How fast the pages answer with many connectors: real topics, a real history, Airflow's own login; no network between.

usage: python -m tests.bench.pages [CONNECTORS [REQUESTS]]
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

from starlette.testclient import TestClient

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state import records
from airflow_connect.control.state.topics import Change, StateTopics
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.documents.run_detail import PartitionRow, RunDetail, TaskRow
from airflow_connect.documents.run_lag import HOUR_MS, KEPT_HOURS, RunLag
from airflow_connect.exactly_once.state import CLOSED, ConnectorState
from airflow_connect.kafka.admin.topics import TopicInfo, resolve_topics
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state import runs_topic
from tests.support.kafka_data import TopicProducer, create_topic

TOPICS, PARTITIONS, RUNS = 40, 50, 20
CONN_ID = "bench"
ORIGIN = "http://airflow.example.com"


def main() -> None:
    """Measure and print."""
    given = [int(word) for word in sys.argv[1:]]
    connectors, requests = (*given, *(200, 60)[len(given) :])
    with tempfile.TemporaryDirectory(prefix="airflow-connect-bench-") as home, KafkaBroker.start() as kafka:
        os.environ["AIRFLOW_HOME"] = home
        os.environ["AIRFLOW__CORE__UNIT_TEST_MODE"] = "True"
        worker = _worker(kafka.bootstrap)
        last_run = _fill(kafka.bootstrap, worker, connectors)
        browser = _browser(worker)
        started = time.perf_counter()
        while "c-0" not in browser.get(f"/{CONN_ID}").text:
            time.sleep(0.02)
        print(f"first look: {time.perf_counter() - started:.1f} s", flush=True)
        pages = {
            "all connectors": f"/{CONN_ID}",
            "the same, with a search": f"/{CONN_ID}?q=c-1",
            "problems": f"/{CONN_ID}/problems",
            "one connector": f"/{CONN_ID}/connector?name=c-7",
            "one run": f"/{CONN_ID}/run?name=c-7&run={last_run}",
            "cluster": f"/{CONN_ID}/cluster",
            "offsets": f"/{CONN_ID}/offsets?name=c-7",
            "new connector": f"/{CONN_ID}/create",
            "form of a new connector": f"/{CONN_ID}/create?class=io.confluent.connect.s3.S3SinkConnector",
        }
        for name, path in pages.items():
            times = sorted(_timed(browser, path) for _ in range(requests))
            p95 = times[min(len(times) - 1, round(len(times) * 0.95))]
            print(f"{name}: p50 {statistics.median(times):.0f} ms, p95 {p95:.0f} ms", flush=True)


def _timed(browser: TestClient, path: str) -> float:
    started = time.perf_counter()
    answer = browser.get(path)
    assert answer.status_code == 200, answer.text
    return (time.perf_counter() - started) * 1000


def _worker(bootstrap: str) -> dict[str, str]:
    factors = {f"{kind}.storage.replication.factor": "1" for kind in ("config", "status", "offset", "runs")}
    return {"bootstrap.servers": bootstrap, "group.id": "bench", **factors}


def _fill(bootstrap: str, worker: dict[str, str], connectors: int) -> str:
    """Topics, configurations and histories; returns the id of the last run."""
    produce = TopicProducer(bootstrap)
    for number in range(TOPICS):
        create_topic(bootstrap, f"t{number}", PARTITIONS, {"retention.ms": str(7 * 24 * 3600 * 1000)})
        produce(f"t{number}", [(n, None, b"{}", time.time_ns() // 1_000_000, []) for n in range(PARTITIONS)])
    settings = ControlSettings.from_worker(worker)
    state = StateTopics(settings)
    state.open()
    configs = [records.connector_config(f"c-{n}", _config(n)) for n in range(connectors)]
    state.change(lambda _: Change(configs), lambda _: None)
    typed = settings.worker
    topic = runs_topic.ensure(
        admin_client(settings.admin), typed.runs_topic, typed.runs_partitions, typed.runs_replication_factor
    )
    now_ms = time.time_ns() // 1_000_000
    names = [f"t{number}" for number in range(TOPICS)]
    infos = resolve_topics(admin_client(settings.admin), names, None)  # Without their ids, no lag is known.
    run_id = ""
    for number in range(connectors):
        name = f"c-{number}"
        found = list(runs_topic.encode_document("state", name, _state(name, number, now_ms, infos).to_json()))
        for run in range(RUNS):
            run_id = f"2026112{run:02d}T010203-{number:06d}"
            document = {"v": 1, **_report(name, number, run_id, now_ms - (RUNS - run) * HOUR_MS).to_json()}
            found += runs_topic.encode_document("run", name, document, run_id)
        place = topic.partition_of(name)
        produce(topic.name, [(place, key, value, now_ms, []) for key, value in found])
    return f"2026112{RUNS - 1:02d}T010203-{7:06d}"


def _config(number: int) -> dict[str, str | None]:
    return {
        "name": f"c-{number}",
        "connector.class": "FileStreamSink",
        "topics": f"t{number % TOPICS}",
        "file": f"/tmp/airflow-connect-bench-{number}",
        "run.interval.seconds": "60",  # all of them are late, so the page of problems has a row for each
    }


def _state(name: str, number: int, now_ms: int, infos: Mapping[str, TopicInfo]) -> ConnectorState:
    hour = now_ms // HOUR_MS
    lags = tuple((hour - KEPT_HOURS + 1 + n, (n * 7919 + number) % 1000) for n in range(KEPT_HOURS))
    committed = {TopicPartition(f"t{number % TOPICS}", n): 0 for n in range(PARTITIONS)}
    ids = {topic: infos[topic].topic_id for topic in {place.topic for place in committed}}
    return ConnectorState(name, "r", CLOSED, now_ms, committed, ids, lag_of_hours=lags)


def _report(name: str, number: int, run_id: str, at_ms: int) -> RunReport:
    topic = f"t{number % TOPICS}"
    rows = tuple(PartitionRow(topic, n, 0, 10, 10, 10, 0, 0, 0, 100) for n in range(PARTITIONS))
    tasks = tuple(TaskRow(n, 0, "host", at_ms, at_ms + 1000, 100, 1000) for n in range(5))
    phases = {"fence": 10, "plan": 20, "copy": 900, "commit": 10}
    detail = RunDetail(rows, tasks, (), PARTITIONS)
    lag = RunLag(500, 0, at_ms)
    return RunReport(
        name, run_id, "done", at_ms, at_ms + 1000, records=500, files=3, phases_ms=phases, detail=detail, lag=lag
    )


def _browser(worker: dict[str, Any]) -> TestClient:
    os.environ[f"AIRFLOW_CONN_{CONN_ID.upper()}"] = json.dumps({"conn_type": "connect_worker", "extra": worker})
    os.environ["AIRFLOW__AIRFLOW_CONNECT__WORKER_CONN_IDS"] = CONN_ID
    from airflow.api_fastapi.app import create_app, get_auth_manager
    from airflow.api_fastapi.auth.managers.simple.user import SimpleAuthManagerUser
    from airflow.utils.db import initdb

    from airflow_connect.ui.pages.app import create_app as create_pages

    initdb()
    create_app(apps="core")
    user = SimpleAuthManagerUser(username="op", role="OP")
    token = get_auth_manager().generate_jwt(user)  # type: ignore[attr-defined]
    return TestClient(create_pages(), base_url=ORIGIN, headers={"Origin": ORIGIN}, cookies={"_token": token})


if __name__ == "__main__":
    main()
