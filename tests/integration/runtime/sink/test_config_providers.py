"""Runs whose configurations only refer to their secrets."""

import json
from dataclasses import replace

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from airflow_connect.runtime import crash_points
from airflow_connect.runtime.driver.entry import plan_connector, run_connector, validate_connector
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from tests.support.copies.s3 import InProcessEngine, numbered
from tests.support.kafka_data import wait_until
from tests.support.steps import Crashed

KAFKAS = "org.apache.kafka.common.config.provider"


@pytest.fixture
def secrets(tmp_path, s3, monkeypatch):
    """Places that hold the keys of the S3 server: a file, and an environment variable."""
    file = tmp_path / "s3.properties"
    file.write_text(f"secret={s3.secret_key}\n")
    monkeypatch.setenv("TEST_S3_KEY_ID", s3.access_key)
    return file


@pytest.fixture
def sink(make_topic, produce, make_sink, secrets):
    """A connector with 30 records in 3 partitions, whose keys are references to a file and to a variable."""
    topic = make_topic(partitions=3)
    produce(topic, numbered(0, 30, 3)[0])
    made = make_sink(topic, flush_size="4")
    made.worker_config |= {
        "config.providers": "file,env",
        "config.providers.file.class": f"{KAFKAS}.FileConfigProvider",
        "config.providers.file.param.allowed.paths": str(secrets.parent),
        "config.providers.env.class": f"{KAFKAS}.EnvVarConfigProvider",
        "config.providers.env.param.allowlist.pattern": "TEST_.*",
    }
    made.config |= {
        "aws.secret.access.key": f"${{file:{secrets}:secret}}",
        "aws.access.key.id": "${env:TEST_S3_KEY_ID}",
    }
    return made


def everything_in(bootstrap, topic):
    """All bytes of keys, values and headers of a topic, aborted transactions included."""
    consumer = Consumer({
        "bootstrap.servers": bootstrap, "group.id": "reader", "isolation.level": "read_uncommitted",
        "enable.partition.eof": True,
    })  # fmt: skip
    places = [TopicPartition(topic, partition, 0) for partition in consumer.list_topics(topic).topics[topic].partitions]
    consumer.assign(places)
    held, ended = [], set()
    while len(ended) < len(places):
        for message in consumer.consume(1_000, 0.2):
            # Other tests write to the topic meanwhile: a partition may end more than once.
            if message.error() is not None and message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            if message.error() is None:
                held += [message.key() or b"", message.value() or b"", repr(message.headers()).encode()]
    consumer.close()
    return b"".join(held)


def run_at_crash(sink, steps, point):
    steps.crash(point)
    with pytest.raises(Crashed):
        sink.try_run()


def test_keys_from_a_file_and_the_environment_copy_and_are_shown_nowhere(sink, kafka, capfd):
    report = sink.run()

    sink.assert_exactly_once(numbered(0, 30)[1])
    assert report.records == 30
    held = everything_in(kafka.bootstrap, "connect-runs")
    shown = json.dumps([*sink.events, report.to_json()], default=str) + repr(sink.spec())
    shown += "".join(capfd.readouterr())
    shown += repr(SinkConfiguration.from_spec(sink.spec()))
    assert sink.s3.secret_key not in shown
    assert sink.name.encode() in held
    assert sink.s3.secret_key.encode() not in held


def test_manifest_holds_references_and_is_recovered_with_what_they_stand_for_now(sink, steps, secrets):
    run_at_crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    held = sink.view().manifest
    for upload in sink.s3.client().list_multipart_uploads(Bucket=sink.bucket)["Uploads"][:3]:
        sink.s3.client().abort_multipart_upload(
            Bucket=sink.bucket, Key=upload["Key"], UploadId=upload["UploadId"]
        )  # some files must be copied again, by the configuration of the manifest
    moved = secrets.rename(secrets.with_name("rotated.properties"))
    sink.config["aws.secret.access.key"] = f"${{file:{moved}:secret}}"

    report = sink.run()

    assert held.config["aws.secret.access.key"] == f"${{file:{secrets}:secret}}"
    assert sink.s3.secret_key not in json.dumps(held.to_json())
    assert report.recovered_run_id == held.run_id
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_bucket_behind_a_reference_that_changed_under_an_open_manifest_is_refused(sink, steps, monkeypatch):
    monkeypatch.setenv("TEST_BUCKET", sink.bucket)
    sink.config["s3.bucket.name"] = "${env:TEST_BUCKET}"
    run_at_crash(sink, steps, crash_points.MANIFEST_WRITTEN)
    held = sink.view().manifest
    assert sink.bucket not in json.dumps(held.to_json())

    monkeypatch.setenv("TEST_BUCKET", "another-bucket")
    refused = sink.try_run()
    assert refused.error["code"] == "config.reference_changed"
    assert refused.error["configPath"] == "s3.bucket.name"
    assert "another-bucket" not in json.dumps(refused.to_json())

    monkeypatch.setenv("TEST_BUCKET", sink.bucket)
    assert sink.run().recovered_run_id == held.run_id
    sink.assert_exactly_once(numbered(0, 30)[1])


def test_wrong_secret_behind_a_reference_is_refused_without_being_shown(sink, secrets):
    secrets.write_text("secret=hunter2-of-the-bucket")

    report = sink.try_run()

    assert report.error["code"] == "s3.credentials_wrong"
    assert "hunter2" not in json.dumps([*sink.events, report.to_json()], default=str)


def test_missing_value_ends_the_run_before_anything_is_started(sink, secrets):
    secrets.write_text("other=hunter2")

    report = sink.try_run()

    assert (report.error["type"], report.error["configPath"]) == ("ConfigError", "aws.secret.access.key")
    assert f"${{file:{secrets}:secret}}" in report.error["message"]
    assert "hunter2" not in json.dumps(report.to_json())
    assert sink.engine.jobs == 0
    assert {f["key"]: f["level"] for f in validate_connector(sink.spec())} == {"aws.secret.access.key": "error"}


def test_plan_resolves_references_of_the_worker(sink, kafka, monkeypatch):
    monkeypatch.setenv("TEST_BROKERS", kafka.bootstrap)
    sink.worker_config["bootstrap.servers"] = "${env:TEST_BROKERS}"

    assert sum(map(len, plan_connector(sink.spec()).ranges)) == 30
    assert sink.run().records == 30


def test_references_that_the_caller_has_looked_up_are_taken_from_it(sink, s3):
    sink.config["aws.secret.access.key"] = "${airflow:s3:password}"
    spec = replace(sink.spec(), references={"${airflow:s3:password}": s3.secret_key})

    report = run_connector(spec, sink.events.append, InProcessEngine())

    assert report.status == "done", report.error
    wait_until(lambda: len(sink.values()) == 30, "30 records are in the bucket")
