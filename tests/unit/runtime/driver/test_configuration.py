"""What a manifest keeps of the configuration, so that a lost file can be laid out and converted again."""

from __future__ import annotations

from typing import Any

import pytest

from airflow_connect.errors import ConfigError
from airflow_connect.runtime.driver.sink.configuration import SinkConfiguration
from airflow_connect.runtime.spec import RunSpec

CONNECTOR: dict[str, Any] = {
    "name": "sink",
    "connector.class": "io.confluent.connect.s3.S3SinkConnector",
    "topics": "t",
    "s3.bucket.name": "bucket",
    "aws.access.key.id": "id",
    "aws.secret.access.key": "hush",
    "storage.class": "io.confluent.connect.s3.storage.S3Storage",
    "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
    "flush.size": "3",
    "value.converter.schemas.enable": "true",
}
WORKER: dict[str, Any] = {
    "bootstrap.servers": "broker:9092",
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "value.converter": "org.apache.kafka.connect.json.JsonConverter",
    "value.converter.schemas.enable": "false",
    "value.converter.basic.auth.user.info": "me:hush",
}


def test_without_secrets_keeps_the_workers_converters_and_no_secret() -> None:
    kept = SinkConfiguration.from_spec(RunSpec(CONNECTOR, WORKER)).without_secrets()

    assert kept["value.converter"] == "org.apache.kafka.connect.json.JsonConverter"
    assert kept["key.converter"] == "org.apache.kafka.connect.storage.StringConverter"
    assert kept["value.converter.schemas.enable"] == "false"
    assert "hush" not in str(kept)
    assert kept["flush.size"] == "3"


def test_master_that_spark_does_not_know_is_found_before_anything_starts() -> None:
    spec = RunSpec(CONNECTOR, {**WORKER, "spark.master": "mesos://zk:5050"})
    found = [f for f in SinkConfiguration.findings(spec) if f["level"] == "error"]

    assert [(f["key"], f["message"]) for f in found] == [("spark.master", "Spark has no master 'mesos'.")]
    with pytest.raises(ConfigError, match="Spark has no master"):
        SinkConfiguration.from_spec(spec)
