"""The S3 sink under the conformance suite that third parties use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.devstack.s3 import S3Server
from airflow_connect.testing import SinkConformance

pytestmark = pytest.mark.integration


class Bucket(NamedTuple):
    server: S3Server
    name: str


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestS3Sink(SinkConformance):
    connector_class = "io.confluent.connect.s3.S3SinkConnector"

    @pytest.fixture
    def target(self, s3: S3Server, bucket: str) -> Bucket:
        return Bucket(s3, bucket)

    def connector_config(self, target: Bucket) -> Mapping[str, str]:
        return {
            "s3.bucket.name": target.name,
            "s3.region": target.server.region,
            "store.url": target.server.endpoint_url,
            "aws.access.key.id": target.server.access_key,
            "aws.secret.access.key": target.server.secret_key,
            "storage.class": "io.confluent.connect.s3.storage.S3Storage",
            "format.class": "io.confluent.connect.s3.format.json.JsonFormat",
            "flush.size": "7",
            "behavior.on.null.values": "ignore",
        }

    def read_back(self, target: Bucket) -> Sequence[Any]:
        client = target.server.client()
        pages = client.get_paginator("list_objects_v2").paginate(Bucket=target.name)
        keys = sorted(entry["Key"] for page in pages for entry in page.get("Contents", ()))
        bodies = [client.get_object(Bucket=target.name, Key=key)["Body"].read() for key in keys]
        return [json.loads(line) for body in bodies for line in body.splitlines()]
