"""Rows of the mirror: a topic of a second broker, each record counted back in its copy, in the order of its partition.

The peer is the real MirrorMaker 2: one worker of Kafka Connect that copies the same topic exactly once, with as many
tasks and the same compression, measured from its first record to its last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, TopicPartition

from airflow_connect.devstack.kafka import KafkaBroker
from tests.bench.database_sources import json_numbers
from tests.bench.processes import TreeSampler, cpu_seconds
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
_LONGEST_S = 1800.0
_QUIET_S = 30.0


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
        alias, topic = "mm2", f"mm2.{load.topic}"
        create_topic(self._target.bootstrap, topic, load.partitions)
        properties = {"exactly.once.source.support": "enabled"}
        with MirrorWorker.start(self._target.bootstrap, "bench-mirror", properties, heap_mb=1024) as worker:
            made = self.connector(alias, load, _PEER)
            config = {key: value for key, value in made.items() if key != "name" and not key.startswith("offset-syncs")}
            cpu = cpu_seconds(worker.pid)
            with TreeSampler(worker.pid) as sampler:
                worker.rest.create(alias, config)
                first, last = self._copied_at(topic, load)
            cpu = cpu_seconds(worker.pid) - cpu
        _, problem = checked(self._target.bootstrap, topic, load)
        delete_topic(self._target.bootstrap, topic)
        rate, per_million = load.records / max(last - first, 0.001), cpu / load.records * 1e6
        print(
            f"  peer: MirrorMaker 2, exactly once: {rate:,.0f} records/s ({ours_per_s / rate:.1f} times as fast here),"
            f" CPU s/M {per_million:.2f} ({per_million / ours_cpu_s_per_million:.1f} times ours),"
            f" peak {sampler.peak_bytes >> 20} MB",
            flush=True,
        )
        return f"MirrorMaker 2: {problem}" if problem else ""

    @property
    def _upstream(self) -> KafkaBroker:
        if self._source is None:
            self._source = self._stack.enter_context(KafkaBroker.start(self._folder / "upstream", heap_mb=1024))
        return self._source

    def _copied_at(self, topic: str, load: Load) -> tuple[float, float]:
        """When the first record was there, and when all were; counted by offsets, of which some are markers."""
        deadline, first = time.monotonic() + _LONGEST_S, 0.0
        settings = {"bootstrap.servers": self._target.bootstrap, "group.id": "bench-watches"}
        consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
        places = [TopicPartition(topic, number) for number in range(load.partitions)]
        try:
            while time.monotonic() < deadline:
                written = sum(consumer.get_watermark_offsets(place, timeout=30)[1] for place in places)
                first = first or (time.monotonic() if written else 0.0)
                if written >= load.records:
                    return first, time.monotonic()
                time.sleep(0.05)
        finally:
            consumer.close()
        raise RuntimeError(f"MirrorMaker 2 has copied {written} of {load.records} records in {_LONGEST_S:.0f} s.")


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
            messages = consumer.consume(10_000, _QUIET_S)
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
