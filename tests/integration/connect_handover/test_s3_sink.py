"""An S3 sink that a live Kafka Connect worker and we run in turn, with one configuration.

The worker, Kafka and S3 are real. The worker's sink stands in for Confluent's: `s3_stand_in`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest

from airflow_connect.control.herder.herder import Herder
from airflow_connect.control.settings import ControlSettings
from airflow_connect.control.state.topics import StateTopics
from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from tests.conftest import MakeTopic, TopicProducer
from tests.integration.connect_handover.conftest import HANDOVER_S, Shared, our_worker
from tests.integration.connect_handover.stand_in import CLASS, WorkerWithS3
from tests.support.waiting import wait_until

pytestmark = pytest.mark.integration

BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter"
PARTITIONS = 2
FLUSH_SIZE = 5
# This S3 server keeps objects in files, and lists the one that it is writing under a name of its own.
HALF_WRITTEN = re.compile(r"\.bin-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")


def committed(sink: Shared) -> dict[int, int]:
    """Offsets of the group, by partition, as the worker tells them."""
    found = sink.worker.rest.offsets(sink.name)
    return {entry["partition"]["kafka_partition"]: entry["offset"]["kafka_offset"] for entry in found}


def places_in(s3: S3Server, bucket: str) -> Counter[tuple[int, int]]:
    """How often the bucket has each partition and offset; names must tell where their content begins."""
    client = s3.client()
    found: Counter[tuple[int, int]] = Counter()
    for entry in client.list_objects_v2(Bucket=bucket).get("Contents", []):
        if HALF_WRITTEN.search(entry["Key"]):
            continue
        name = re.fullmatch(r"topics/([^/]+)/partition=(\d+)/\1\+\2\+(\d{10})\.bin", entry["Key"])
        assert name is not None, entry["Key"]
        lines = client.get_object(Bucket=bucket, Key=entry["Key"])["Body"].read().decode().splitlines()
        start = int(name[3])
        assert lines == [f"{name[2]}-{offset}" for offset in range(start, start + len(lines))]
        found.update((int(name[2]), start + n) for n in range(len(lines)))
    return found


def once(ends: Mapping[int, int]) -> Counter[tuple[int, int]]:
    """Each record up to these offsets."""
    return Counter((partition, offset) for partition, end in ends.items() for offset in range(end))


@pytest.mark.budget(30)  # Kafka Connect needs seconds to start and to stop connectors.
def test_worker_then_ours_then_worker_then_ours_write_each_record_once(
    kafka: KafkaBroker, worker: WorkerWithS3, state_topics: dict[str, str], s3: S3Server, bucket: str,
    make_topic: MakeTopic, produce: TopicProducer, tmp_path: Any,
):  # fmt: skip
    topic = make_topic(PARTITIONS)
    config = {
        "connector.class": CLASS,
        "tasks.max": "2",
        "topics": topic,
        "key.converter": BYTES,
        "value.converter": BYTES,
        "s3.bucket.name": bucket,
        "s3.region": s3.region,
        "store.url": s3.endpoint_url,
        "aws.access.key.id": s3.access_key,
        "aws.secret.access.key": s3.secret_key,
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.bytearray.ByteArrayFormat",
        "flush.size": str(FLUSH_SIZE),
    }
    sink = Shared(worker, {**our_worker(kafka), **state_topics}, f"shared-{topic}", topic, tmp_path, config)
    ends = dict.fromkeys(range(PARTITIONS), 0)

    def more(*counts: int) -> None:
        for partition, count in enumerate(counts):
            start = ends[partition]
            produce(topic, [(partition, None, f"{partition}-{start + n}") for n in range(count)])
            ends[partition] += count

    def let_worker_write(wanted: dict[int, int]) -> None:
        sink.let_worker_run()
        wait_until(lambda: places_in(s3, bucket) == once(wanted), f"the worker's {wanted}", HANDOVER_S, every_s=0.2)
        worker.rest.stop(sink.name)
        assert committed(sink) == wanted

    try:
        more(13, 7)
        let_worker_write({0: 10, 1: 5})  # What does not fill an object waits in Kafka.
        assert_same_state(sink)
        assert sink.run_ours().records == 5
        assert places_in(s3, bucket) == once(ends) and committed(sink) == ends

        more(11, 6)
        let_worker_write({0: 23, 1: 12})
        more(2, 0)
        assert sink.run_ours().records == 4
        assert places_in(s3, bucket) == once(ends) and committed(sink) == ends
        assert sink.run_ours().status == "empty"
        assert_same_state(sink)
    finally:
        worker.rest.delete(sink.name)


def assert_same_state(sink: Shared) -> None:
    """Both read the same configuration and states from the topics."""
    settings = ControlSettings.from_worker(sink.ours)
    topics = StateTopics(settings)
    topics.open()
    herder = Herder(topics, settings, "127.0.0.1:1")
    assert herder.config(sink.name) == {**sink.config, "name": sink.name}
    assert herder.status(sink.name)["connector"]["state"] == "STOPPED"
    wait_until(lambda: herder.status(sink.name) == sink.worker.rest.status(sink.name), "the same states", HANDOVER_S)
