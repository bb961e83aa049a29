"""What the HDFS sink writes: names, formats, directories, rotation, on the real broker and a real HDFS."""

from __future__ import annotations

import io
import json
from typing import Any

import fastavro
import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq
import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from tests.devstack.hdfs import HdfsCluster
from tests.integration.connectors.files.s3.objects import STRING_CONVERTER, WITH_SCHEMAS, envelope, struct
from tests.support.copies.hdfs import HdfsSink, hdfs_sink
from tests.support.copies.s3 import numbered

pytestmark = pytest.mark.integration

FORMATS = "io.confluent.connect.hdfs"
EVENT = struct(("n", "int32"), ("city", "string?"))
MINUTE = 60_000


@pytest.fixture
def make_hdfs_sink(kafka: KafkaBroker, hdfs: HdfsCluster):
    def make(topic: str, **config: str) -> HdfsSink:
        return hdfs_sink(kafka, hdfs, topic, **config)

    return make


def events(count: int) -> list[dict[str, Any]]:
    return [{"n": n, "city": None if n % 3 == 0 else f"city {n}"} for n in range(count)]


def avro_rows(data: bytes) -> list[Any]:
    return list(fastavro.reader(io.BytesIO(data)))


def lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


READERS = {
    "avro.AvroFormat": (".avro", avro_rows),
    "json.JsonFormat": (".json", lines),
    "parquet.ParquetFormat": (".parquet", lambda data: pq.read_table(io.BytesIO(data)).to_pylist()),
    "orc.OrcFormat": (".orc", lambda data: orc.ORCFile(pa.BufferReader(data)).read().to_pylist()),
}


@pytest.mark.parametrize("file_format", READERS)
def test_every_format_is_read_back_and_named_as_confluent_names_it(make_topic, produce, make_hdfs_sink, file_format):
    topic = make_topic()
    produce(topic, [(0, None, envelope(EVENT, event)) for event in events(7)])
    sink = make_hdfs_sink(topic, format_class=f"{FORMATS}.{file_format}", flush_size="3")
    sink.worker_config = WITH_SCHEMAS
    sink.run()
    extension, read = READERS[file_format]
    folder = f"topics/{topic}/partition=0/{topic}+0+"
    keys = sink.keys()
    assert keys == [f"{folder}{start:010d}+{end:010d}{extension}" for start, end in ((0, 2), (3, 5), (6, 6))]
    assert [row for key in keys for row in read(sink.body(key))] == events(7)
    assert sink.uploads() == []


def test_text_has_a_line_for_each_value(make_topic, produce, make_hdfs_sink):
    topic = make_topic()
    produce(topic, [(0, None, text) for text in ("one", "two", "zürich 🚲")])
    sink = make_hdfs_sink(topic, format_class=f"{FORMATS}.string.StringFormat", value_converter=STRING_CONVERTER)
    sink.run()
    [key] = sink.keys()
    assert key.endswith("+0000000000+0000000002.txt")
    assert sink.body(key).decode() == "one\ntwo\nzürich 🚲\n"


def test_avro_is_the_default_format(make_topic, produce, make_hdfs_sink):
    topic = make_topic()
    produce(topic, [(0, None, envelope(EVENT, event)) for event in events(2)])
    sink = make_hdfs_sink(topic)
    sink.worker_config = WITH_SCHEMAS
    sink.run(**{"format.class": None})
    [key] = sink.keys()
    assert key.endswith(".avro")


@pytest.mark.parametrize(
    ("layout", "directories"),
    [
        (
            {"partitioner.class": f"{FORMATS}.partitioner.FieldPartitioner", "partition.field.name": "p"},
            ["p=0", "p=1"],
        ),
        (
            {
                "partitioner.class": f"{FORMATS}.partitioner.TimeBasedPartitioner", "locale": "en-US",
                "timezone": "UTC", "timestamp.extractor": "Record", "partition.duration.ms": "60000",
                "path.format": "'at'=HH-mm",
            },
            ["at=00-01", "at=00-02"],
        ),
        (
            {
                "partitioner.class": f"{FORMATS}.partitioner.HourlyPartitioner", "locale": "en-US",
                "timezone": "UTC", "timestamp.extractor": "RecordField", "timestamp.field": "ts",
            },
            ["year=1970/month=01/day=01/hour=00"],
        ),
    ],
    ids=["field", "time", "hourly"],
)  # fmt: skip
def test_directories_are_those_of_the_partitioner(make_topic, produce, make_hdfs_sink, layout, directories):
    topic = make_topic(config={"message.timestamp.before.max.ms": str(1 << 62)})
    schema = struct(("n", "int32"), ("p", "int32"), ("ts", "int64"))
    values = [{"n": n, "p": n % 2, "ts": (1 + n % 2) * MINUTE} for n in range(6)]
    produce(topic, [(0, None, envelope(schema, v), v["ts"]) for v in values])
    sink = make_hdfs_sink(topic, flush_size="4", **layout)
    sink.worker_config = WITH_SCHEMAS
    sink.run()
    keys = sink.keys()
    found = [key.removeprefix(f"topics/{topic}/").rpartition("/")[0] for key in keys]
    assert sorted(set(found)) == directories
    sink.assert_exactly_once(values)
    # A change of directory ends no file: four records first, then two, however they are spread.
    assert len(found) == 2 * len(directories)


def test_topics_dir_depends_on_the_topic(make_topic, produce, make_hdfs_sink, unique_name):
    topics = [make_topic(name=f"{unique_name}.{word}") for word in ("apple", "pear")]
    for topic in topics:
        produce(topic, [(0, None, '{"n": 1}')])
    sink = make_hdfs_sink(
        ",".join(topics),
        topics_dir="${2}/of/${topic}",
        topic_capture_groups_regex=r"([a-z0-9-]*)\.([a-z]*)",
    )
    sink.run()
    names = [f"{t.rpartition('.')[2]}/of/{t}/{t}/partition=0/{t}+0+0000000000+0000000000.json" for t in topics]
    assert sink.keys() == sorted(names)


def test_a_topic_that_the_expression_does_not_match_fails_the_run(make_topic, produce, make_hdfs_sink, unique_name):
    topic = make_topic(name=unique_name)
    produce(topic, [(0, None, "1")])
    sink = make_hdfs_sink(topic, topics_dir="${1}", topic_capture_groups_regex="(x).*")
    report = sink.try_run(**{"topics": None, "topics.regex": f"{unique_name}.*"})
    assert report.status == "failed"
    assert f"Topic {topic} does not fully match the regular expression" in str(report.error)
    assert sink.keys() == []


def test_one_schema_counts_for_all_directories(make_topic, produce, make_hdfs_sink):
    """Confluent's S3 sink would keep both files open; its HDFS sink has one schema per topic-partition."""
    topic = make_topic()
    wider = struct(("n", "int32"), ("city", "string?"), ("more", "string?"))
    schemas = [EVENT, wider, EVENT]
    produce(topic, [(0, None, envelope(schema, {"n": n, "city": f"c{n}"})) for n, schema in enumerate(schemas)])
    sink = make_hdfs_sink(topic, partitioner_class="FieldPartitioner", partition_field_name="city")
    sink.worker_config = WITH_SCHEMAS
    sink.run()
    keys = sink.keys()
    starts = [key.rpartition("/")[2].split("+")[2:] for key in keys]
    assert starts == [["0000000000", "0000000000.json"], ["0000000001", "0000000001.json"],
                      ["0000000002", "0000000002.json"]]  # fmt: skip


def test_records_left_behind_are_published_when_the_interval_has_passed(make_topic, produce, make_hdfs_sink):
    topic = make_topic()
    rows, values = numbered(0, 5)
    produce(topic, rows)
    sink = make_hdfs_sink(topic, flush_size="3", flush_on_end="false")
    assert (sink.run().records, sink.offsets()) == (3, {0: 3})
    assert sink.run(rotate_interval_ms=str(10**12)).records == 0
    assert sink.run(rotate_interval_ms="1").records == 2
    sink.assert_exactly_once(values)


def test_null_values_fail_the_run_unless_they_are_to_be_left_out(make_topic, produce, make_hdfs_sink):
    topic = make_topic()
    produce(topic, [(0, "k", '{"n": 1}'), (0, "k", None), (0, "k", '{"n": 2}')])
    sink = make_hdfs_sink(topic)
    report = sink.try_run()
    assert "has a null value" in str(report.error)
    assert sink.keys() == []
    assert sink.run(behavior_on_null_values="ignore").filtered == 1
    sink.assert_exactly_once([{"n": 1}, {"n": 2}])
