"""`airflow-connect worker`: connectors that are registered over REST run, fail, run again, and end."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from airflow_connect.control.state.topics import StateTopics
from airflow_connect.control.worker.rounds import Rounds
from airflow_connect.control.worker.worker import WorkerSettings, work
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.errors import AccessError, ConfigError
from airflow_connect.kafka.clients.short_lived import admin_client
from airflow_connect.kafka.state.compacted_topics import CompactedTopic
from airflow_connect.runtime.engine.spark import SparkEngine
from tests.support.faulty_converter import Faults
from tests.support.processes.drivers import is_alive
from tests.support.processes.forked_worker import ForkedWorker
from tests.support.processes.proc import descendants_of
from tests.support.servers.rest import STRINGS, worker_of
from tests.support.servers.worker_process import WorkerProcess
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration


@pytest.mark.budget(60)  # A process with its own Spark session, and half a dozen runs.
def test_a_connector_that_is_posted_copies_to_s3_and_obeys_until_the_worker_ends_in_the_middle_of_a_copy(
    kafka, s3, bucket, unique_name, make_topic, produce, tmp_path: Path, spark_classes, monkeypatch
):
    topic = make_topic()
    produce(topic, [(0, None, f'{{"n":{n}}}'.encode(), 0, []) for n in range(5)])
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", s3.access_key)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", s3.secret_key)
    more = {"listeners": "http://127.0.0.1:0", "run.interval.seconds": "1", "spark.master": "local[1]"}
    more |= {"session.timeout.ms": "90000", "heartbeat.interval.ms": "300"}
    worker = {**worker_of(kafka.bootstrap, unique_name), "key.converter": STRINGS, **more}
    posted = {
        "name": unique_name,
        "config": {
            "connector.class": "io.confluent.connect.s3.S3SinkConnector",
            "topics": topic,
            "s3.bucket.name": bucket,
            "s3.region": "us-east-1",
            "store.url": s3.endpoint_url,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "flush.size": "1000",
        },
    }
    one = f"/connectors/{unique_name}"

    def objects() -> int:
        return len(s3.client().list_objects_v2(Bucket=bucket).get("Contents", []))

    with WorkerProcess(tmp_path, worker) as running:
        assert running.send("POST", "/connectors", json.dumps(posted)).status == 201
        running.wait_until(lambda: objects() == 1, "the object")
        offsets = running.wait_for(f"{one}/offsets", "'kafka_offset': 5")
        assert offsets["offsets"][0]["partition"] == {"kafka_topic": topic, "kafka_partition": 0}
        assert running.wait_for(f"{one}/topics", topic) == {unique_name: {"topics": [topic]}}
        status = running.send("GET", f"{one}/status").body
        assert (status["connector"]["state"], status["tasks"][0]["state"], status["type"]) == (
            "RUNNING",
            "RUNNING",
            "sink",
        )

        assert running.send("PUT", f"{one}/pause").status == 202
        assert running.send("GET", f"{one}/status").body["connector"]["state"] == "PAUSED"
        produce(topic, [(0, None, b'{"n":5}', 0, [])])
        # Another connector, which fails, shows that rounds go on while the first one is paused.
        bad = {**posted["config"], "s3.bucket.name": f"no-{bucket}"}
        assert running.send("PUT", "/connectors/bad/config", bad).status == 201
        assert "bucket" in running.wait_for("/connectors/bad/status", "FAILED")["tasks"][0]["trace"]
        assert objects() == 1

        assert running.send("PUT", f"{one}/resume").status == 202
        running.wait_until(lambda: objects() == 2, "the second object")
        s3.client().create_bucket(Bucket=f"no-{bucket}")
        assert running.send("POST", "/connectors/bad/restart?includeTasks=true&onlyFailed=true").status == 202
        running.wait_for("/connectors/bad/offsets", "'kafka_offset': 6")
        running.wait_until(
            lambda: "FAILED" not in str(running.send("GET", "/connectors/bad/status").body), "the state after the run"
        )

        assert running.send("DELETE", one).status == 204
        assert running.send("GET", "/connectors").body == ["bad"]
        assert "It has no users" in running.printed and s3.secret_key not in running.printed

        # Paused, so that no run copies the records with the configuration from before.
        assert running.send("PUT", "/connectors/bad/pause").status == 202
        running.wait_until(lambda: "runs" not in running.send("GET", "/health").body, "the end of a run")
        faults = {key.replace("_", "."): value for key, value in Faults(tmp_path).config().items()}
        hold = {"do": "hold", "times": 1}
        produce(
            topic, [(0, None, json.dumps({"n": n, **(hold if n == 17 else {})}).encode(), 0, []) for n in range(6, 26)]
        )
        held = {**bad, "name": "bad", **faults, "flush.size": "5"}
        assert running.send("PUT", "/connectors/bad/config", held).status == 200
        assert running.send("PUT", "/connectors/bad/resume").status == 202
        running.wait_until(lambda: bool(Faults(tmp_path).held()), "a copy in the middle")
        processes = descendants_of(running.pid)
        assert len(processes) > 1  # a JVM and the process of a task
        with ForkedWorker(worker) as second:
            wait_until(lambda: "bad" in second.owners(), "the second worker to know the connector")
            running.end()
            # It does not wait for the end of a session. The task that was held is not held a second time.
            wait_until(lambda: second.owners()["bad"] == second.worker_id, "the second worker to take over", 60)
            wait_until(lambda: offset_of(second) == 26, "all records")
            # The second worker may have copied everything before the last process of the first one has ended.
            wait_until(lambda: not any(map(is_alive, processes)), "JVM and task of the first worker to end")
        assert s3.client().list_multipart_uploads(Bucket=f"no-{bucket}").get("Uploads", []) == []
        assert sorted(values_of(s3, f"no-{bucket}")) == list(range(26))
    assert running.exit_code == 143 and s3.secret_key not in running.printed


def offset_of(worker: ForkedWorker) -> int:
    (found,) = worker.send("GET", "/connectors/bad/offsets").body["offsets"]
    return int(found["offset"]["kafka_offset"])


def values_of(s3: S3Server, bucket: str) -> list[int]:
    client = s3.client()
    bodies = [
        client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read()
        for entry in client.list_objects_v2(Bucket=bucket)["Contents"]
    ]
    return [json.loads(line)["n"] for body in bodies for line in body.splitlines()]


def test_a_worker_that_everybody_could_use_does_not_start(tmp_path: Path, unique_name):
    import subprocess
    import sys

    file = tmp_path / "worker.properties"
    file.write_text("bootstrap.servers=127.0.0.1:1\nlisteners=http://:8083\n")
    words = [sys.executable, "-m", "airflow_connect.cli", "worker", str(file)]
    ended = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert ended.returncode == 2
    assert "without authentication" in ended.stderr


def test_a_worker_that_can_no_longer_run_connectors_ends_with_the_reason(kafka, unique_name, monkeypatch):
    def fail(*_: object) -> None:
        raise ZeroDivisionError("a defect of the rounds")

    monkeypatch.setattr(Rounds, "run_until", fail)
    settings = WorkerSettings.from_worker(
        {**worker_of(kafka.bootstrap, unique_name), "listeners": "http://127.0.0.1:0"}
    )
    told: list[str] = []
    with SparkEngine({}) as engine, pytest.raises(ZeroDivisionError, match="a defect of the rounds"):
        work(settings, engine, threading.Event(), told.append)
    assert told[0].startswith("The worker listens at http://127.0.0.1:")
    there = admin_client({"bootstrap.servers": kafka.bootstrap}).list_topics(timeout=20).topics
    assert {f"{unique_name}-{kind}" for kind in ("config", "status", "offset", "runs")} <= there.keys()


def test_a_worker_whose_topic_for_offsets_would_forget_them_does_not_start(kafka, unique_name, make_topic):
    offsets = make_topic(config={"cleanup.policy": "delete"})
    settings = WorkerSettings.from_worker(
        {**worker_of(kafka.bootstrap, unique_name), "listeners": "http://127.0.0.1:0", "offset.storage.topic": offsets}
    )
    with SparkEngine({}) as engine, pytest.raises(ConfigError, match=f"{offsets} has cleanup.policy=delete"):
        work(settings, engine, threading.Event(), print)


def test_a_worker_without_permission_for_offsets_of_sources_says_so_and_starts(kafka, unique_name, monkeypatch):
    def refuse(_: object, wanted: CompactedTopic) -> int:
        raise AccessError(f"Topic {wanted.name} may not be described.")

    monkeypatch.setattr("airflow_connect.control.worker.worker.compacted_topics.ensure", refuse)
    monkeypatch.setattr("airflow_connect.control.worker.worker.worker_topics.ensure_runs", lambda *_: None)
    monkeypatch.setattr("airflow_connect.control.worker.worker.StateTopics.open", StateTopics.find)
    monkeypatch.setattr(Rounds, "run_until", lambda *_: None)
    settings = WorkerSettings.from_worker(
        {**worker_of(kafka.bootstrap, unique_name), "listeners": "http://127.0.0.1:0"}
    )
    told: list[str] = []
    with SparkEngine({}) as engine:
        work(settings, engine, threading.Event(), told.append)
    assert told[0].startswith(f"Sources cannot run until this is repaired. Topic {unique_name}-offset may not be")
