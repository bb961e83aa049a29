"""What the local sink writes: names, formats, keys and headers, null values, conflicts, and what a sweep takes."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path

import fastavro
import pyarrow.parquet as pq
import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.documents.run import RunReport
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec
from airflow_connect.stores.local.store import LocalStore
from airflow_connect.stores.store import FileIdentity
from airflow_connect.testing.runs import run_here
from tests.support.kafka_data import TopicProducer

pytestmark = pytest.mark.integration

SCHEMA = {"type": "struct", "fields": [{"field": "id", "type": "int64"}, {"field": "city", "type": "string"}]}
CITIES = ("Berlin", "Paris")
T0 = 1_763_690_400_000  # 2025-11-21T02:00:00Z


class Case:
    """A connector over a topic of one partition, and its directory."""

    def __init__(self, bootstrap: str, topic: str, root: Path) -> None:
        self.bootstrap, self.topic, self.root = bootstrap, topic, root

    def spec(self, **keys: str) -> RunSpec:
        connector = {
            "name": f"{self.topic}-files",
            "connector.class": "LocalSinkConnector",
            "topics": self.topic,
            "store.url": f"file://{self.root}",
            "format.class": "JsonFormat",
            "flush.size": "4",
            **{key.replace("_", "."): value for key, value in keys.items()},
        }
        worker = {
            "bootstrap.servers": self.bootstrap,
            "group.id": "local",
            "key.converter": "StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "true",
            "value.converter.schema.content": json.dumps(SCHEMA),
            "runs.storage.replication.factor": "1",
        }
        return RunSpec(connector, worker)

    def run(self, **keys: str) -> RunReport:
        return run_here(self.spec(**keys))[0]

    def files(self) -> dict[str, bytes]:
        start = self.root / "topics" / self.topic
        return {str(p.relative_to(start)): p.read_bytes() for p in sorted(start.rglob("*")) if p.is_file()}


@pytest.fixture
def case(kafka: KafkaBroker, make_topic: Callable[..., str], produce: TopicProducer, tmp_path: Path) -> Case:
    topic = make_topic(1)
    rows = [
        (0, f"k{n}".encode(), json.dumps({"id": n, "city": CITIES[n % 2]}).encode(), T0 + n * 900_000, [("h", b"v")])
        for n in range(10)
    ]
    produce(topic, rows)
    return Case(kafka.bootstrap, topic, tmp_path / "out")


def ids_of(name: str, data: bytes) -> list[int]:
    if name.endswith(".avro"):
        return [row["id"] for row in fastavro.reader(io.BytesIO(data))]
    if name.endswith(".parquet"):
        return pq.read_table(io.BytesIO(data)).column("id").to_pylist()
    return [json.loads(line)["id"] for line in data.splitlines()]


@pytest.mark.parametrize(
    ("keys", "extension"),
    [
        ({"format_class": "JsonFormat"}, ".json"),
        ({"format_class": "io.confluent.connect.s3.format.avro.AvroFormat", "avro_codec": "deflate"}, ".avro"),
        ({"format_class": "io.confluent.connect.s3.format.parquet.ParquetFormat"}, ".snappy.parquet"),
        (
            {
                "format_class": "ByteArrayFormat",
                "value_converter": "org.apache.kafka.connect.converters.ByteArrayConverter",
                "format_bytearray_extension": ".raw",
            },
            ".raw",
        ),
    ],
    ids=["json", "avro", "parquet", "bytes"],
)
def test_names_hold_both_offsets_and_files_what_they_say(case: Case, keys: dict[str, str], extension: str) -> None:
    report = case.run(**keys)

    assert (report.status, report.records, report.files) == ("done", 10, 3), report.error
    found = {name: ids_of(name, data) for name, data in case.files().items()}
    offsets = ((0, 3), (4, 7), (8, 9))
    assert found == {
        f"partition=0/{case.topic}+0+{a:010}+{b:010}{extension}": list(range(a, b + 1)) for a, b in offsets
    }
    assert not (case.root / "topics" / "+tmp").exists()
    assert case.run(**keys).status == "empty"


def test_directories_of_time_and_of_fields(case: Case) -> None:
    hourly = {
        "partitioner_class": "HourlyPartitioner",
        "timestamp_extractor": "Record",
        "locale": "en-US",
        "timezone": "UTC",
        "flush_size": "100",
    }
    case.run(**hourly)
    assert [name.rpartition("/")[0] for name in case.files()] == [
        f"year=2025/month=11/day=21/hour={hour:02}" for hour in (2, 3, 4)
    ]

    case.root = case.root.parent / "by-city"
    by_city = {"name": f"{case.topic}-2", "partitioner_class": "FieldPartitioner", "partition_field_name": "city"}
    case.run(**by_city)
    assert {name.rpartition("/")[0] for name in case.files()} == {"city=Berlin", "city=Paris"}


def test_keys_headers_and_null_values(case: Case, produce: TopicProducer) -> None:
    produce(case.topic, [(0, b"gone", None, T0, [("h", b"v")])])
    report = case.run(
        store_kafka_keys="true",
        keys_format_class="JsonFormat",
        store_kafka_headers="true",
        headers_format_class="JsonFormat",
        behavior_on_null_values="write",
        flush_size="100",
    )

    assert (report.status, report.records) == ("done", 11), report.error
    files = case.files()
    assert sorted(name.partition(".")[2] for name in files) == sorted(
        ["json", "keys.json", "headers.json", "keys.json", "headers.json"]
    )
    assert files[f"tombstone/{case.topic}+0+0000000010+0000000010.keys.json"] == b'"gone"\n'


def test_a_file_of_somebody_else_stops_the_run_until_it_is_moved_away(case: Case) -> None:
    stranger = case.root / "topics" / case.topic / "partition=0" / f"{case.topic}+0+0000000004+0000000007.json"
    stranger.parent.mkdir(parents=True)
    stranger.write_text("mine")

    report = case.run()

    assert report.error is not None and report.error["code"] == "publish.conflict"
    assert str(stranger) in report.error["message"]
    stranger.rename(case.root / "away")
    after = case.run()
    assert (after.status, after.recovered_run_id) == ("empty", report.run_id)
    assert sorted(n for name, data in case.files().items() for n in ids_of(name, data)) == list(range(10))


def test_leftovers_of_others_stay_and_published_files_too(case: Case) -> None:
    stager = LocalStore(str(case.root)).stager("other")
    case.root.mkdir()
    file = stager.open(FileIdentity("topics/another/partition=0/another+0+0.json", "another", 0, 0, root="topics/"))
    file.write(b"x")
    file.close(1, 1).result()
    stager.close()

    case.run()

    assert len(list((case.root / "topics/+tmp").rglob("*_tmp"))) == 1


def test_a_configuration_of_the_s3_sink_needs_two_other_keys(case: Case) -> None:
    given = {
        "s3.region": "eu-central-1",
        "s3.bucket.name": "b",
        "storage.class": "io.confluent.connect.s3.storage.S3Storage",
        "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
        "s3.compression.type": "gzip",
        "directory.delim": "/",
    }
    spec = case.spec()
    findings = validate_connector(RunSpec({**spec.connector, **given}, spec.worker))

    assert {finding["level"] for finding in findings} == {"ignored", "unknown"}
    assert {finding["key"] for finding in findings} == {
        "storage.class",
        "directory.delim",
        "s3.region",
        "s3.bucket.name",
    }
    assert run_here(RunSpec({**spec.connector, **given}, spec.worker))[0].status == "done"
    assert all(name.endswith(".json.gz") for name in case.files())


@pytest.mark.parametrize("url", ["out", "s3://bucket", "file://host/out", ""])
def test_an_address_that_is_no_directory_is_refused(case: Case, url: str) -> None:
    (found,) = validate_connector(case.spec(store_url=url))

    assert (found["key"], found["level"]) == ("store.url", "error")


def test_topics_dir_may_be_blank_or_written_with_slashes(case: Case) -> None:
    assert case.run(topics_dir="/a//b/").status == "done"
    assert (case.root / "a" / "b" / case.topic).is_dir()
