"""How long an empty run of a source takes on an offsets topic as a week of 200 connectors leaves it.

200 connectors run every hour and store 50 offsets each: 1,680,000 records in the 25 partitions that Kafka Connect
gives its topic, nothing of it compacted. The connector that is measured has 50 source partitions too; all but one have
moved in its last run, that one has not moved all week.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path

from confluent_kafka import Producer

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.kafka.state import own_records
from airflow_connect.kafka.state.offsets import offsets_view
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.runtime.spec import RunSpec
from tests.support.kafka_data import create_topic

CONNECTORS, HOURS, OFFSETS, PARTITIONS = 200, 168, 50, 25
REPEAT = 5
NEVER = 1 << 62
TOPIC, STRINGS = "week-offsets", "org.apache.kafka.connect.storage.StringConverter"


def measure_offsets(kafka: KafkaBroker, engine: SparkEngine, folder: Path) -> int:
    """Fill the topic, print a table; 1 when a run failed."""
    # As Kafka's own settings have it: nothing is compacted within a week.
    create_topic(kafka.bootstrap, TOPIC, PARTITIONS, {"cleanup.policy": "compact"})
    create_topic(kafka.bootstrap, "file-lines")
    spec = _spec(kafka, folder)
    _grow(folder, range(OFFSETS))
    failed = run_connector(spec, engine=engine).status != "done"
    size = _week(kafka)
    print("offsets topic".ljust(44) + "MB".rjust(8) + "run s".rjust(10) + "plan s".rjust(10))
    found = offsets_view.WORTH_A_BOOKMARK, own_records.LONG
    offsets_view.WORTH_A_BOOKMARK = own_records.LONG = NEVER
    _grow(folder, range(1, OFFSETS))
    failed |= run_connector(spec, engine=engine).status != "done"
    failed |= _row("from the beginning", spec, engine, size)
    offsets_view.WORTH_A_BOOKMARK, own_records.LONG = found
    # Reads everything for the last time, writes the old offset again, sets the bookmarks.
    failed |= run_connector(spec, engine=engine).status != "empty"
    failed |= _row("from the bookmarks", spec, engine, size)
    return int(failed)


def _row(name: str, spec: RunSpec, engine: SparkEngine, size: int) -> bool:
    runs = [run_connector(spec, engine=engine) for _ in range(REPEAT)]
    whole = statistics.median((run.ended_ms - run.started_ms) / 1000 for run in runs)
    plan = statistics.median(run.phases_ms["plan"] / 1000 for run in runs)
    print(f"{name:44}{size / 1e6:8.0f}{whole:10.2f}{plan:10.2f}", flush=True)
    return any(run.status != "empty" for run in runs)


def _spec(kafka: KafkaBroker, folder: Path) -> RunSpec:
    connector = {
        "name": "week-files", "connector.class": "FileStreamSource", "topic": "file-lines", "tasks.max": "1",
        "files": str(folder / "week" / "*.log"),
    }  # fmt: skip
    worker = {
        "bootstrap.servers": kafka.bootstrap, "offset.storage.topic": TOPIC, "group.id": "week",
        "key.converter": STRINGS, "value.converter": STRINGS,
    }  # fmt: skip
    return RunSpec(connector, worker)


def _grow(folder: Path, numbers: range) -> None:
    (folder / "week").mkdir(exist_ok=True)
    for number in numbers:
        with (folder / "week" / f"{number}.log").open("a") as file:
            file.write("a line\n")


def _week(kafka: KafkaBroker) -> int:
    """Write what the runs of the other connectors leave; returns its bytes."""
    settings = {"bootstrap.servers": kafka.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    producer, size = Producer({**settings, "partitioner": "murmur2_random"}), 0
    for hour in range(HOURS):
        value = json.dumps({"position": hour * 1000, "fingerprint": "1024:0123456789abcdef"}, separators=(",", ":"))
        for connector in range(CONNECTORS):
            for number in range(OFFSETS):
                key = f'["connector-{connector}",{{"filename":"/var/log/service/{number}.log"}}]'
                producer.produce(TOPIC, value, key)
                size += len(key) + len(value)
            producer.poll(0)
    if producer.flush(300):
        raise TimeoutError(f"{TOPIC} was not filled.")
    return size
