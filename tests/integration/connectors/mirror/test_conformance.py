"""The mirror source under the conformance suite that third parties use."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from airflow_connect.devstack.kafka import KafkaBroker
from airflow_connect.testing import SourceConformance
from airflow_connect.testing.cases.source_case import SourceCase
from tests.support.kafka_data import create_topic, produce

pytestmark = pytest.mark.integration


@pytest.fixture
def kafka_bootstrap(kafka: KafkaBroker) -> str:
    return kafka.bootstrap


class TestMirrorSource(SourceConformance):
    connector_class = "MirrorSourceConnector"

    @pytest.fixture
    def place(self, kafka: KafkaBroker, upstream_kafka: KafkaBroker) -> Any:
        """Both clusters; the fixture `case` adds the topic of the source cluster."""
        return {"source": upstream_kafka.bootstrap, "target": kafka.bootstrap}

    @pytest.fixture
    def case(self, kafka_bootstrap: str, place: Any) -> SourceCase:
        # The suite chooses the name of the remote topic: the alias is what stands before its separator.
        case = SourceCase(self, kafka_bootstrap, place)
        place["alias"], _, place["topic"] = case.topic.partition("-")
        create_topic(place["source"], place["topic"])
        return case

    def connector_config(self, place: Any, topic: str) -> Mapping[str, str]:
        return {
            "source.cluster.alias": place["alias"],
            "replication.policy.separator": "-",
            "source.cluster.bootstrap.servers": place["source"],
            "target.cluster.bootstrap.servers": place["target"],
            "topics": place["topic"],
            "replication.factor": "1",
            "offset-syncs.topic.replication.factor": "1",
        }

    def feed(self, place: Any, first: int, count: int) -> Sequence[Any]:
        values = [f"line {n}" for n in range(first, first + count)]
        produce(place["source"], place["topic"], [(0, str(n), json.dumps(v)) for n, v in enumerate(values)])
        return values
