"""`store.kafka.records`: what a backup holds is what Kafka has, byte for byte."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.kafka.reading.batch_reader import RangeReader
from airflow_connect.kafka.reading.message_headers import HEADERS
from airflow_connect.kafka.writing.produced import ProducedColumns
from airflow_connect.kafka.writing.task_producer import TaskProducer
from tests.integration.connectors.files.s3.objects import AVRO_FORMAT, PARQUET_FORMAT, records
from tests.support.copies.s3 import Sink

pytestmark = pytest.mark.integration

ODD_HEADERS = [(b"a", b"1"), (b"na\xffme", None), (b"a", b"")]


def in_kafka(bootstrap: str, topic: str, partitions: int) -> list[dict[str, Any]]:
    """Every committed record of the topic, without any converter."""
    found = []
    settings = {"bootstrap.servers": bootstrap, "group.id": topic, "isolation.level": "read_committed"}
    client = Consumer(settings)
    ends = [client.get_watermark_offsets(TopicPartition(topic, number))[1] for number in range(partitions)]
    client.close()
    ranges = [OffsetRange(topic, number, 0, end) for number, end in enumerate(ends)]
    for batch in RangeReader(settings, ranges).columns():
        headers = batch.headers()
        for n in range(len(batch)):
            kind = {1: "CreateTime", 2: "LogAppendTime"}[batch.timestamp_type]
            found.append(
                {
                    "topic": topic,
                    "partition": batch.partition,
                    "offset": int(batch.offsets[n]),
                    "timestamp": int(batch.timestamps[n]),
                    "timestamp_type": kind,
                    "key": batch.keys[n].as_py(),
                    "value": batch.values[n].as_py(),
                    "headers": [] if headers is None else headers[n].as_py(),
                }
            )
    return sorted(found, key=lambda one: (one["partition"], one["offset"]))


def in_bucket(sink: Sink) -> list[dict[str, Any]]:
    """Every record of every object."""
    return sorted(map(dict, records(sink, f"topics/{sink.topic}/")), key=lambda one: (one["partition"], one["offset"]))


@pytest.mark.parametrize("file_format", [AVRO_FORMAT, PARQUET_FORMAT], ids=["avro", "parquet"])
@pytest.mark.parametrize("times", ["CreateTime", "LogAppendTime"])
def test_backup_holds_what_kafka_has(
    kafka: Any, make_topic: Any, produce: Any, make_sink: Any, file_format: str, times: str
) -> None:
    topic = make_topic(2, {"message.timestamp.type": times})
    produce(topic, [(0, b"k", b"v", 1_700_000_000_000, [("h", b"x"), ("h", None)]), (0, b"k", None, 5, [])])
    produce.transaction(topic, [(0, None, b"", 1_600_000_000_000, []), (1, b"", b"\0\xff", 7, [])], "commit")
    produce.transaction(topic, [(0, b"aborted", b"", 0, [])], "abort")
    producer = TaskProducer({"bootstrap.servers": kafka.bootstrap}, "", 60_000)
    producer.fence()
    headers = pa.array([[{"key": name, "value": value} for name, value in ODD_HEADERS]], HEADERS)
    one = pa.array([b"odd"], pa.binary())
    producer.send_columns(ProducedColumns(topic, one, one, 1, None, headers))
    producer.flush()
    producer.close()
    sink = make_sink(topic, **{"store.kafka.records": "true", "format.class": file_format, "flush.size": "2"})

    report = sink.run()

    wanted = in_kafka(kafka.bootstrap, topic, 2)
    assert in_bucket(sink) == wanted
    assert report.records == len(wanted) == 5
    assert [(one["key"], one["value"]) for one in wanted[:3]] == [(b"k", b"v"), (b"k", None), (None, b"")]
    assert [(one["key"], one["value"]) for one in wanted[-1]["headers"]] == ODD_HEADERS
