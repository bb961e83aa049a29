"""What `migrate` suggests for a configuration of Aiven's S3 sink."""

from __future__ import annotations

from airflow_connect.config.resolved.loading import connector_definition
from airflow_connect.control.migration.aiven_s3 import AIVEN, FORMATS, OURS, SAME_MEANING, equivalents
from airflow_connect.runtime.driver.entry import validate_connector
from airflow_connect.runtime.spec import RunSpec

CONFIG = {
    "name": "orders",
    "connector.class": AIVEN,
    "topics": "orders",
    "aws.s3.bucket.name": "lake",
    "aws.secret.access.key": "opensesame",
    "file.max.records": "500",
    "format.output.type": "jsonl",
}


def test_keys_that_are_set_are_named_with_ours_and_no_value() -> None:
    told = dict(equivalents(CONFIG))
    assert told["aws.s3.bucket.name"] == "s3.bucket.name is the key here."
    assert told["file.max.records"] == "flush.size is the key here."
    assert "JsonFormat" in told["format.output.type"]
    assert "default is gzip" in told["file.compression.type"]
    assert "aws.s3.region" not in told
    assert "values only" in told["format.output.fields"]  # Aiven's default has an envelope
    assert "opensesame" not in str(told)


def test_the_format_without_an_equivalent_is_said() -> None:
    told = dict(equivalents({"connector.class": "AivenKafkaConnectS3SinkConnector"}))
    assert told["format.output.type"] == "The value is csv. No format here has the same files."
    assert told["file.max.records"].endswith("needs a number.")


def test_other_classes_get_no_suggestion() -> None:
    assert list(equivalents({"connector.class": OURS})) == []
    assert list(equivalents({})) == []


def test_every_suggested_key_and_format_is_valid_here() -> None:
    known = connector_definition({"connector.class": OURS}).keys
    assert set(SAME_MEANING.values()) <= set(known)
    for form in FORMATS.values():
        config = {"name": "orders", "connector.class": OURS, "topics": "orders", "flush.size": "500",
                  "s3.bucket.name": "lake", "storage.class": "io.confluent.connect.s3.storage.S3Storage",
                  "format.class": form}  # fmt: skip
        json = "org.apache.kafka.connect.json.JsonConverter"
        worker = {"bootstrap.servers": "localhost:9092", "key.converter": json, "value.converter": json}
        found = validate_connector(RunSpec(config, worker))
        assert [finding for finding in found if finding["level"] == "error"] == []
