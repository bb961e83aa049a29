"""The HDFS sink under the conformance suite that third parties use."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing import SinkConformance
from tests.devstack.hdfs import HdfsCluster
from tests.support import hdfs_files

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestHdfsSink(SinkConformance):
    connector_class = "io.confluent.connect.hdfs.HdfsSinkConnector"

    @pytest.fixture
    def target(self, hdfs: HdfsCluster) -> str:
        return f"{hdfs.url}/conformance-{uuid.uuid4().hex[:8]}"

    def connector_config(self, target: str) -> Mapping[str, str]:
        return {
            "store.url": target,
            "format.class": "io.confluent.connect.hdfs.json.JsonFormat",
            "flush.size": "7",
            "behavior.on.null.values": "ignore",
        }

    def read_back(self, target: str) -> Sequence[Any]:
        files = sorted(hdfs_files.visible_files(target).items())
        return [json.loads(line) for _, data in files for line in data.splitlines()]
