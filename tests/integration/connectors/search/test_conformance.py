"""The search sink under the conformance suite of all sinks, on a real OpenSearch."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from airflow_connect.testing import SinkConformance
from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.search_sink import SEARCH_SINK, documents

pytestmark = pytest.mark.integration


@dataclass
class Index:
    """An index of one test."""

    server: OpenSearchServer
    name: str


class TestSearchSink(SinkConformance):
    """Ids are topic+partition+offset, so each record is a document of its own."""

    connector_class = SEARCH_SINK
    errant_value = '{"n": "no number", "p": 1}'

    @pytest.fixture
    def target(self, opensearch: OpenSearchServer, unique_name: str) -> Iterator[Index]:
        mapping = {"properties": {"n": {"type": "long"}, "p": {"type": "long"}}}
        body = {"settings": {"number_of_replicas": 0}, "mappings": mapping}
        assert opensearch.request("PUT", f"/{unique_name}", body)[0] == 200
        yield Index(opensearch, unique_name)
        opensearch.request("DELETE", f"/{unique_name}")

    def connector_config(self, target: Index) -> Mapping[str, str]:
        return {
            "connection.url": target.server.url,
            "key.ignore": "true",
            "schema.ignore": "true",
            "behavior.on.null.values": "ignore",
            "read.timeout.ms": "30000",
            # Topics of the suite are named at random; this one name is for all of them.
            "transforms": "route",
            "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
            "transforms.route.regex": ".*",
            "transforms.route.replacement": target.name,
        }

    def read_back(self, target: Index) -> Sequence[Any]:
        found = documents(target.server, target.name)
        places = {name: tuple(map(int, name.split("+")[-2:])) for name in found}
        return [found[name] for name in sorted(found, key=lambda name: places[name])]
