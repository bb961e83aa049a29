"""Slashes that make empty directories: names as Confluent writes them where the store keeps them, else a refusal."""

from __future__ import annotations

import boto3
import pytest

from tests.integration.connectors.files.s3.objects import STRING_CONVERTER, contents

pytestmark = pytest.mark.integration


@pytest.fixture
def sink(make_topic, produce, make_sink):
    """A sink with one record to copy."""
    topic = make_topic()
    produce(topic, [(0, None, "1")])
    return make_sink(topic)


@pytest.mark.parametrize("topics_dir", ["raw/", "/raw", "raw//x"])
def test_topics_dir_that_the_store_folds_is_refused_and_a_corrected_run_copies(sink, topics_dir):
    report = sink.try_run(**{"topics.dir": topics_dir})
    assert (report.status, report.error["code"], report.error["configPath"]) == ("failed", "s3.odd_name", "topics.dir")
    assert sink.engine.jobs == 0

    assert sink.run(**{"topics.dir": "raw"}).records == 1
    assert list(contents(sink).values()) == [[1]]


def test_connector_that_an_older_version_has_wedged_copies_when_its_names_are_corrected(sink, monkeypatch):
    with monkeypatch.context() as older:
        older.setattr("airflow_connect.stores.s3.requests.has_odd_directories", lambda key: False)
        assert sink.try_run(**{"topics.dir": "raw/"}).error["code"] == "publish.lost"
    assert sink.view().manifest is not None

    report = sink.run(**{"topics.dir": "raw"})

    assert (report.records, sink.offsets(), sink.view().manifest) == (1, {0: 1}, None)
    assert list(contents(sink).values()) == [[1]]
    (note,) = [note for note in report.notes if "are given up" in note]
    assert "1 file under" in note and "'raw//" in note and note in sink.warnings()


def test_manifest_of_an_older_version_that_is_partly_visible_is_finished_without_its_odd_names(
    make_topic, produce, make_sink, monkeypatch
):
    topic = make_topic()
    produce(topic, [(0, b"k", None if n % 2 else f"{n}") for n in range(6)])
    sink = make_sink(topic, behavior_on_null_values="write", store_kafka_keys="true")
    sink.config |= {"tombstone.encoded.partition": "gone//away", "key.converter": STRING_CONVERTER}
    with monkeypatch.context() as older:
        older.setattr("airflow_connect.stores.s3.requests.has_odd_directories", lambda key: False)
        assert sink.try_run().error["code"] == "publish.lost"

    stuck = sink.try_run().error
    report = sink.run(**{"offsets.out.of.range": "nearest"})

    assert (stuck["code"], stuck["configPath"]) == ("publish.lost", "offsets.out.of.range")
    assert "gone//away" in stuck["message"]
    assert sorted(contents(sink).values(), key=str) == [["k", "k", "k"], [0, 2, 4]]
    assert (sink.offsets(), sink.view().manifest) == ({0: 6}, None)
    note, how = [note for note in report.notes if "gone//away" in note or "still holds" in note]
    assert "airflow-connect replay" in how
    assert "3 records between offsets 1 and 6 are given up" in note
    assert "gone//away" in note


def test_path_format_that_the_store_folds_is_refused_and_a_corrected_run_copies(sink):
    hourly = {
        "partitioner.class": "TimeBasedPartitioner",
        "partition.duration.ms": "3600000",
        "path.format": "'year'=YYYY//'month'=MM",
        "locale": "en-US",
        "timezone": "UTC",
        "timestamp.extractor": "Record",
    }
    report = sink.try_run(**hourly)
    assert (report.status, report.error["code"]) == ("failed", "s3.odd_name")
    assert "//month=" in report.error["message"]

    assert sink.run(**{**hourly, "path.format": "'year'=YYYY/'month'=MM"}).records == 1


@pytest.mark.parametrize(("topics_dir", "prefix"), [("raw/", "raw//"), ("/raw", "/raw/")])
def test_topics_dir_that_the_store_keeps_has_the_names_of_confluent(sink, moto_url, topics_dir, prefix):
    keys = {"aws_access_key_id": "a", "aws_secret_access_key": "b", "region_name": "us-east-1"}
    client = boto3.client("s3", endpoint_url=moto_url, **keys)
    client.create_bucket(Bucket=sink.bucket)

    sink.run(**{"store.url": moto_url, "s3.region": "us-east-1", "topics.dir": topics_dir})

    topic = sink.connector()["topics"]
    found = [entry["Key"] for entry in client.list_objects_v2(Bucket=sink.bucket)["Contents"]]
    assert found == [f"{prefix}{topic}/partition=0/{topic}+0+0000000000.json"]
