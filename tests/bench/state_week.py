"""`make bench ARGS=--state`: how long an empty run takes on topics of state as a week of 200 connectors leaves them.

200 connectors run every hour and publish 50 files each: 10,000 files an hour. A runs topic has five partitions, so that
a run reads what 40 connectors have written; that one partition is filled with what a week of their runs writes, nothing
of it compacted, as with Kafka's own settings. Before: every manifest lists its files, and all is read. After: files are
packed, and a run begins at its bookmark.

Of the offsets topic a run of a source reads all 25 partitions (`offsets_week.py`).
"""

from __future__ import annotations

import hashlib
import statistics
import tempfile
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

from confluent_kafka import Producer

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.staging import StagedFile
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import PartitionReport
from airflow_connect.exactly_once import kafka_journal, packed_files
from airflow_connect.exactly_once.kafka_journal import MANIFEST, RUN, STATE
from airflow_connect.exactly_once.manifest import Manifest
from airflow_connect.exactly_once.state import CLOSED, COPYING, ConnectorState
from airflow_connect.kafka.state.state_documents import StateRecord, encode_document
from airflow_connect.runtime.driver.entry import run_connector
from airflow_connect.runtime.engine.spark import SparkEngine
from airflow_connect.runtime.spec import RunSpec
from tests.bench.offsets_week import measure_offsets
from tests.support.kafka_data import create_topic

CONNECTORS, HOURS, FILES = 40, 168, 50
REPEAT = 5
NO_BOOKMARK = 1 << 62


def measure_state() -> int:
    """Fill the topics, print two tables; 1 when a run failed."""
    folder = Path("/dev/shm") if Path("/dev/shm").is_dir() else None
    with (
        tempfile.TemporaryDirectory(prefix="airflow-connect-bench-", dir=folder) as data,
        KafkaBroker.start(Path(data) / "kafka", heap_mb=1024) as kafka,
        SparkEngine({"spark.master": "local[1]"}) as engine,
    ):
        failed = _measure(kafka, engine, Path(data))
        return failed or measure_offsets(kafka, engine, Path(data))


def _measure(kafka: KafkaBroker, engine: SparkEngine, folder: Path) -> int:
    create_topic(kafka.bootstrap, "lines")
    print("runs topic".ljust(44) + "MB".rjust(8) + "run s".rjust(10) + "fence s".rjust(10))
    failed = 0
    worth = kafka_journal.WORTH_A_BOOKMARK
    for name, packs in (("before", False), ("after", True)):
        spec = _spec(kafka, folder, name)
        size = _week(kafka, name, HOURS - 1, packs=packs)
        _line_of(kafka)
        failed += run_connector(spec, engine=engine).status != "done"
        size += _week(kafka, name, 1, packs=packs)
        for marked in (False, True) if packs else (False,):
            kafka_journal.WORTH_A_BOOKMARK = worth if marked else NO_BOOKMARK
            runs = [run_connector(spec, engine=engine) for _ in range(REPEAT + marked)][marked:]
            failed += sum(run.status != "empty" for run in runs)
            whole = statistics.median((run.ended_ms - run.started_ms) / 1000 for run in runs)
            fence = statistics.median(run.phases_ms["fence"] / 1000 for run in runs)
            what = f"{name}: {'packed' if packs else 'listed'} files, {'bookmark' if marked else 'from the beginning'}"
            print(f"{what:44}{size / 1e6:8.0f}{whole:10.2f}{fence:10.2f}", flush=True)
        kafka_journal.WORTH_A_BOOKMARK = worth
    return int(bool(failed))


def _spec(kafka: KafkaBroker, folder: Path, name: str) -> RunSpec:
    connector = {
        "name": f"week-{name}", "connector.class": "LocalSink", "topics": "lines", "flush.size": "1000",
        "store.url": (folder / name).as_uri(), "format.class": "JsonFormat",
    }  # fmt: skip
    worker = {
        "bootstrap.servers": kafka.bootstrap, "runs.storage.topic": name, "runs.storage.partitions": "1",
        "key.converter": "StringConverter", "value.converter": "StringConverter",
        # As Kafka's own settings have it: nothing is compacted within a week.
        "runs.storage.segment.ms": "604800000", "runs.storage.max.compaction.lag.ms": "9223372036854775807",
        "runs.storage.segment.bytes": "1073741824",
    }  # fmt: skip
    return RunSpec(connector, worker)


def _line_of(kafka: KafkaBroker) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap})
    producer.produce("lines", f"line {time.time()}")
    producer.flush(30)


def _week(kafka: KafkaBroker, topic: str, hours: int, *, packs: bool) -> int:
    """Write what the runs of so many hours leave; returns its bytes."""
    if hours > 1:
        create_topic(kafka.bootstrap, topic, 1, {"cleanup.policy": "compact"})
    settings = {"bootstrap.servers": kafka.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 1_000_000}
    producer, size = Producer(settings), 0
    for hour in range(hours):
        for number in range(CONNECTORS):
            for key, value in _run(f"connector-{number}", hour, packs=packs):
                producer.produce(topic, value, key, 0)
                size += len(key) + len(value or b"")
        producer.poll(0)
    if producer.flush(120):
        raise TimeoutError(f"{topic} was not filled.")
    return size


def _run(connector: str, hour: int, *, packs: bool) -> Iterator[StateRecord]:
    """The records that one run writes."""
    run_id = f"20261115T{hour:06d}-{uuid.uuid4().hex[:6]}"
    end = hour * 1000 + 1000
    ranges = [OffsetRange("orders", number, end - 1000, end) for number in range(4)]
    partitions = tuple(PartitionReport(planned, end, end, 1000, 1000, size_bytes=200_000) for planned in ranges)
    config = {f"key.number.{n}": f"value {n}" for n in range(30)}
    state = ConnectorState(connector, run_id, COPYING, hour, {}, {"orders": "qTtmsZATS+iQVg5eWfvsAA"})
    manifest = Manifest(connector, run_id, hour, tuple(_files(hour)), partitions, config=config)
    document = manifest.to_json()
    if not packs:
        document = {**document, "v": 1, "files": [file.to_json() for file in manifest.files]}
    yield from encode_document(STATE, connector, state.to_json())
    records = encode_document(MANIFEST, connector, document)
    yield from records
    yield from ((key, None) for key, _ in records)
    yield from encode_document(STATE, connector, {**state.to_json(), "phase": CLOSED})
    yield from encode_document(RUN, connector, {"v": 1, "run_id": run_id, **config}, run_id)


def _files(hour: int) -> Iterator[StagedFile]:
    for number in range(max(FILES, packed_files.FEW + 1)):
        digest = hashlib.sha256(uuid.uuid4().bytes).hexdigest()
        token = {"upload_id": str(uuid.uuid4()), "parts": [[1, digest[:32]]], "file_id": digest[32:48]}
        start = hour * 1000 + number * 20
        key = f"topics/orders/date=2026-11-15/hour={hour % 24:02d}/orders+{number % 4}+{start:010d}.json"
        yield StagedFile(key, "orders", number % 4, start, start + 20, 20, 4_000 + number, token)
