"""The records of the config topic that runs of sources use."""

from __future__ import annotations

import base64
import json
from pathlib import Path

from airflow_connect.kafka.state.config_topic import task_count_record

RECORDED = Path(__file__).parents[3] / "data" / "connect_topics" / "eos-connect-configs.jsonl"


def test_task_count_is_written_as_kafka_connect_writes_it():
    records = [json.loads(line) for line in RECORDED.read_text("utf-8").splitlines()[1:]]
    fencing = [r for r in records if r["key"]["text"].startswith("tasks-fencing-")]
    assert fencing
    for record in fencing:
        connector = record["key"]["text"].removeprefix("tasks-fencing-")
        count = json.loads(record["value"]["text"])["task-count"]
        key, value = task_count_record(connector, count)
        assert (key, value) == (base64.b64decode(record["key"]["base64"]), base64.b64decode(record["value"]["base64"]))
