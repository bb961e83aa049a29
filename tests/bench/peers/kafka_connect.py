"""Kafka Connect's own FileStream connectors, with the configurations of the rows that they are compared with."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench import sources
from tests.bench.file_sinks import LineFiles
from tests.bench.peers.watching import EVERY_S, LONGEST_S, PeerRun, arrival_times, committed, end_offsets
from tests.bench.processes import TreeSampler
from tests.bench.sources import LogLines
from tests.bench.topics import RECORD_BYTES, Load
from tests.devstack.connect_worker import ConnectWorker
from tests.support.kafka_data import create_topic, delete_topic
from tests.support.waiting import wait_until

HEAP_MB = 1024
# What people set who want Kafka Connect to be fast.
FAST_PRODUCER = {"producer.override.batch.size": "262144", "producer.override.linger.ms": "50"}
FAST_CONSUMER = {
    "consumer.override.max.poll.records": "10000",
    "consumer.override.fetch.max.bytes": "52428800",
    "consumer.override.max.partition.fetch.bytes": "4194304",
}


def copy_to_file(worker: ConnectWorker, kafka: KafkaBroker, files: LineFiles, load: Load) -> PeerRun:
    """Let FileStreamSink copy the topic: until its last line is in the file and its last offset is committed."""
    name = f"peer-{uuid.uuid4().hex[:8]}"
    config = files.connector(name, load, FAST_CONSUMER)
    file = files.file(name)
    with TreeSampler(worker.pid) as sampler:
        started = time.monotonic()
        worker.rest.create(name, _unnamed(config))
        wanted = load.records * (RECORD_BYTES + 1)
        first, last = arrival_times(lambda: file.stat().st_size if file.exists() else 0, wanted, "FileStreamSink")
        group = f"connect-{name}"
        wait_until(lambda: committed(kafka.bootstrap, group) >= load.records, f"offsets of {group}", LONGEST_S, EVERY_S)
        seconds = time.monotonic() - started
    worker.rest.stop(name)
    size, problem = files.check(name, load)
    return PeerRun(last - first, seconds, sampler.used_s, sampler.peak_bytes, size, problem)


def copy_to_topic(
    worker: ConnectWorker, kafka: KafkaBroker, logs: Path, lines: LogLines, config: Mapping[str, str]
) -> PeerRun:
    """Let FileStreamSource copy the file: until its last line is in the topic."""
    name = f"peer-{uuid.uuid4().hex[:8]}"
    create_topic(kafka.bootstrap, name)
    made = sources.connector(name, logs, lines, {**config, **FAST_PRODUCER})
    with end_offsets(kafka.bootstrap, name, 1) as written, TreeSampler(worker.pid) as sampler:
        started = time.monotonic()
        worker.rest.create(name, _unnamed(made))
        first, last = arrival_times(written, lines.records, "FileStreamSource")
    worker.rest.stop(name)  # Its last transaction, if it has any, is committed.
    size, problem = sources.check_topic(kafka.bootstrap, name, lines.records)
    delete_topic(kafka.bootstrap, name)
    return PeerRun(last - first, last - started, sampler.used_s, sampler.peak_bytes, size, problem)


def standalone(kafka: KafkaBroker) -> ConnectWorker:
    """A worker that keeps the offsets of sources in a file: they are copied at least once."""
    return ConnectWorker.start_standalone(kafka.bootstrap, heap_mb=HEAP_MB)


def exactly_once(kafka: KafkaBroker) -> ConnectWorker:
    """A distributed worker, the only one of its group, that runs sources exactly once."""
    properties = {"exactly.once.source.support": "enabled"}
    return ConnectWorker.start(kafka.bootstrap, "bench-files", properties, heap_mb=HEAP_MB)


def _unnamed(config: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in config.items() if key != "name"}
