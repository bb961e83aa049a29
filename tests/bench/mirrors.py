"""Rows of the mirror: a topic of a second broker, each record counted back in its copy, in the order of its partition.

The peer is the real MirrorMaker 2: one worker of Kafka Connect that copies the same topic exactly once, with as many
tasks and the same compression, measured from its first record to its last.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench.database_sources import json_numbers
from tests.bench.peers.watching import PeerRun, arrival_times, end_offsets
from tests.bench.processes import TreeSampler, cpu_seconds
from tests.bench.sources import consumed
from tests.bench.topics import Load, fill
from tests.devstack.mirror_worker import MirrorWorker
from tests.support.kafka_data import create_topic, delete_topic

STORE = "mirror"
CLASS = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
BY_TIME = {"transaction.boundary": "interval", "transaction.boundary.interval.ms": "1000"}
BY_BATCH = {"transaction.boundary": "poll"}
LZ4 = {"producer.override.compression.type": "lz4"}
_BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
_PEER = {
    **dict.fromkeys(("key.converter", "value.converter", "header.converter"), _BYTES),
    **BY_TIME,
    "consumer.isolation.level": "read_committed",
    "emit.offset-syncs.enabled": "false",
    "refresh.topics.enabled": "false",
    "sync.topic.configs.enabled": "false",
    "sync.topic.acls.enabled": "false",
    # What people set who want MirrorMaker 2 to be fast.
    "producer.override.batch.size": "262144",
    "producer.override.linger.ms": "50",
    "consumer.max.poll.records": "10000",
    "consumer.fetch.max.bytes": "52428800",
    "consumer.max.partition.fetch.bytes": "4194304",
}


class Mirrors:
    """The second broker, and the real MirrorMaker 2."""

    def __init__(self, stack: ExitStack, folder: Path, target: KafkaBroker) -> None:
        """Nothing is started before it is needed."""
        self._stack, self._folder, self._target = stack, folder, target
        self._source: KafkaBroker | None = None
        self._filled: set[Load] = set()
        self._compared: set[Load] = set()

    def fill(self, load: Load, show: Callable[[int], None]) -> None:
        """Fill a topic of the second broker once."""
        if load not in self._filled:
            fill(self._upstream.bootstrap, load, 0, show)
            self._filled.add(load)

    def connector(self, name: str, load: Load, config: Mapping[str, str]) -> dict[str, str]:
        """A connector that copies the topic; its name is the alias of the source, and so the prefix of the copy."""
        return {
            "name": name,
            "connector.class": CLASS,
            "tasks.max": "2",
            "source.cluster.alias": name,
            "target.cluster.alias": "target",
            "source.cluster.bootstrap.servers": self._upstream.bootstrap,
            "target.cluster.bootstrap.servers": self._target.bootstrap,
            "topics": load.topic,
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
            **LZ4,
            **config,
        }

    def cpu_s(self) -> float:
        """CPU time of the second broker."""
        return cpu_seconds(self._upstream.pid)

    def check(self, name: str, load: Load) -> tuple[int, str]:
        """Bytes of the copy, and what is wrong with it; the copy is removed, and MirrorMaker 2 makes one, too."""
        found = checked(self._target.bootstrap, f"{name}.{load.topic}", load)
        delete_topic(self._target.bootstrap, f"{name}.{load.topic}")
        return found

    def say_peer(self, load: Load, ours_cpu_s_per_million: float, ours_per_s: float) -> str:
        """Copy the topic with MirrorMaker 2, once for each load, and print its figures; returns what went wrong."""
        if load in self._compared:
            return ""
        self._compared.add(load)
        with self.start_peer() as worker:
            run = self.copy_with(worker, load)
        rate, per_million = load.records / max(run.copy_s, 0.001), run.cpu_s / load.records * 1e6
        print(
            f"  peer: MirrorMaker 2, exactly once: {rate:,.0f} records/s ({ours_per_s / rate:.1f} times as fast here),"
            f" CPU s/M {per_million:.2f} ({per_million / ours_cpu_s_per_million:.1f} times ours),"
            f" peak {run.peak_bytes >> 20} MB",
            flush=True,
        )
        return f"MirrorMaker 2: {run.problem}" if run.problem else ""

    def start_peer(self) -> MirrorWorker:
        """A worker of Kafka Connect with MirrorMaker 2, which copies exactly once."""
        properties = {"exactly.once.source.support": "enabled"}
        return MirrorWorker.start(self._target.bootstrap, "bench-mirror", properties, heap_mb=1024)

    def copy_with(self, worker: MirrorWorker, load: Load) -> PeerRun:
        """Copy a topic with MirrorMaker 2, and count the records of its copy, which is removed."""
        alias = f"mm2-{uuid.uuid4().hex[:8]}"
        topic = f"{alias}.{load.topic}"
        create_topic(self._target.bootstrap, topic, load.partitions)
        made = self.connector(alias, load, _PEER)
        config = {key: value for key, value in made.items() if key != "name" and not key.startswith("offset-syncs")}
        with (
            end_offsets(self._target.bootstrap, topic, load.partitions) as written,
            TreeSampler(worker.pid) as sampler,
        ):
            started = time.monotonic()
            worker.rest.create(alias, config)
            first, last = arrival_times(written, load.records, "MirrorMaker 2")
        worker.rest.stop(alias)  # Its last transaction is committed.
        size, problem = self.check(alias, load)
        return PeerRun(last - first, last - started, sampler.used_s, sampler.peak_bytes, size, problem)

    @property
    def _upstream(self) -> KafkaBroker:
        if self._source is None:
            self._source = self._stack.enter_context(KafkaBroker.start(self._folder / "upstream", heap_mb=1024))
        return self._source


def checked(bootstrap: str, topic: str, load: Load) -> tuple[int, str]:
    """Bytes of the values, and what is wrong: every partition must hold its records in the order of their ids."""
    following = list(range(load.partitions))
    size, open_partitions = 0, set(range(load.partitions))
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "bench-counts",
            "isolation.level": "read_committed",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in range(load.partitions)])
        while open_partitions:
            messages = consumed(consumer)
            if not messages:
                return size, f"no end of {topic}"
            values: dict[int, list[bytes]] = {}
            for message in messages:
                partition, error = int(message.partition() or 0), message.error()
                if error is None:
                    values.setdefault(partition, []).append(message.value() or b"")
                elif error.code() == KafkaError._PARTITION_EOF:
                    open_partitions.discard(partition)
                else:
                    return size, f"{topic} cannot be read: {error.str()}"
            for partition, found in values.items():
                size += sum(map(len, found))
                numbers = json_numbers(found)
                wanted = following[partition] + np.arange(len(found)) * load.partitions
                if len(numbers) != len(found) or (numbers != wanted).any():
                    return size, f"partition {partition} does not continue with record {following[partition]}"
                following[partition] += len(found) * load.partitions
    finally:
        consumer.close()
    missing = sum(len(range(after, load.records, load.partitions)) for after in following)
    return size, f"{missing} records are missing" if missing else ""
