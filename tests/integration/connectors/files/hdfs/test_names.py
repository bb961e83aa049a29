"""Names that HDFS refuses: escaped, refused in the configuration, or an error of their record."""

from __future__ import annotations

import json
from typing import Any

import pytest

from airflow_connect.api.record import SinkRecord
from airflow_connect.connectors.files.hdfs.config import HdfsSinkConfig
from airflow_connect.errors import ConfigError
from airflow_connect.layout.partitioners import DefaultPartitioner
from tests.support.copies.hdfs import hdfs_sink

pytestmark = pytest.mark.integration

SCHEMA = {"type": "struct", "fields": [{"field": "f", "type": "string"}]}
BY_FIELD = {
    "partitioner_class": "FieldPartitioner",
    "partition_field_name": "f",
    "value_converter": "org.apache.kafka.connect.json.JsonConverter",
    "value_converter_schemas_enable": "true",
}
TOLERANT = {"errors_tolerance": "all", "errors_deadletterqueue_topic_replication_factor": "1"}


class KeyPartitioner(DefaultPartitioner):
    """A third party's: the record's key is the directory."""

    def directory(self, record: SinkRecord, now_ms: int) -> str:
        return str(record.key)

    def directory_regex(self) -> str:
        return ".*"


def enveloped(*values: str) -> list[tuple[int, None, str]]:
    return [(0, None, json.dumps({"schema": SCHEMA, "payload": {"f": value}})) for value in values]


def test_colon_in_a_field_is_escaped_and_read_back(kafka: Any, hdfs: Any, make_topic: Any, produce: Any) -> None:
    topic = make_topic()
    produce(topic, enveloped("12:30", "plain"))
    sink = hdfs_sink(kafka, hdfs, topic, **BY_FIELD)
    sink.run()
    assert sink.keys() == [
        f"topics/{topic}/f=12%3A30/{topic}+0+0000000000+0000000000.json",
        f"topics/{topic}/f=plain/{topic}+0+0000000001+0000000001.json",
    ]
    assert sorted(value["f"] for value in sink.values()) == ["12:30", "plain"]


def test_field_too_long_for_a_name_goes_to_the_dead_letter_queue(
    kafka: Any, hdfs: Any, make_topic: Any, produce: Any
) -> None:
    topic = make_topic()
    produce(topic, enveloped("a", "long" * 64, "b"))
    sink = hdfs_sink(kafka, hdfs, topic, **BY_FIELD)
    refused = sink.try_run()
    report = sink.run(**TOLERANT, errors_deadletterqueue_topic_name=f"{topic}-dlq")
    assert refused.error is not None and refused.error["code"] == "data.hdfs_name"
    assert "names of at most 255 bytes" in refused.error["message"] and f"{topic}-0@1" in refused.error["message"]
    assert (report.records, report.dead_lettered) == (2, 1)
    assert sorted(value["f"] for value in sink.values()) == ["a", "b"]


@pytest.mark.parametrize("name", ["at:noon", "..", "a/../b", "x" * 256])
def test_name_of_a_third_party_that_hdfs_refuses_is_decided_by_the_tolerance(
    kafka: Any, hdfs: Any, make_topic: Any, produce: Any, name: str
) -> None:
    topic = make_topic()
    produce(topic, [(0, "good", "1"), (0, name, "2"), (0, "fine", "3")])
    sink = hdfs_sink(kafka, hdfs, topic, partitioner_class=f"{__name__}:KeyPartitioner")
    refused = sink.try_run()
    report = sink.run(**TOLERANT, errors_deadletterqueue_topic_name=f"{topic}-dlq")
    assert refused.error is not None and refused.error["code"] == "data.hdfs_name"
    assert (report.records, report.dead_lettered) == (2, 1)
    assert sorted(sink.values()) == [1, 3]


BY_TIME = {
    "partitioner.class": "TimeBasedPartitioner",
    "partition.duration.ms": "60000",
    "locale": "en",
    "timezone": "UTC",
    "timestamp.extractor": "Record",
}


@pytest.mark.parametrize(
    ("key", "text", "is_refused"),
    [
        ("path.format", "'at'=HH:mm", True),
        ("path.format", "'at'=YYYY-MM-dd'T'HHZZ", True),
        ("path.format", "'at'=HH-mm", False),
        ("path.format", "'at'=YYYY-MM-dd'T'HHZ", False),
        ("topics.dir", "my:topics", True),
        ("logs.dir", "my:logs", True),
        ("complete.marker", "_DONE:1", True),
        ("late.records.directory", "_late:1", True),
        ("partition.field.name", "a,b:c", True),
    ],
)
def test_names_that_hdfs_refuses_are_found_in_the_configuration(key: str, text: str, is_refused: bool) -> None:
    given = {
        "name": "n",
        "connector.class": "io.confluent.connect.hdfs.HdfsSinkConnector",
        "topics": "t",
        "store.url": "hdfs://namenode:8020",
        "flush.size": "3",
        **BY_TIME,
        "path.format": "'day'=YYYY-MM-dd",
        key: text,
    }
    if not is_refused:
        assert HdfsSinkConfig.config_def().parse(given)[key] == text
        return
    with pytest.raises(ConfigError) as caught:
        HdfsSinkConfig.config_def().parse(given)
    assert caught.value.config_path == key
    assert "HDFS does not allow ':' in names" in str(caught.value)
