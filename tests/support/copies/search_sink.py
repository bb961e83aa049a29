"""Runs of a search sink on the real broker and the real OpenSearch, its tasks alone, and what an index holds."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from airflow_connect.api.offsets import OffsetRange
from airflow_connect.api.sink_roles import RoleContext
from airflow_connect.connectors.search.task import ElasticsearchSinkTask
from airflow_connect.runtime.executor.sink.task_runner import SinkTaskRunner
from tests.support.copies.jdbc_sink_tasks import LAST, Errors
from tests.support.copies.s3 import Sink

if TYPE_CHECKING:
    from tests.devstack.opensearch import OpenSearchServer

SEARCH_SINK = "io.confluent.connect.elasticsearch.ElasticsearchSinkConnector"


def documents(server: OpenSearchServer, index: str) -> dict[str, dict[str, Any]]:
    """Every document of an index or a data stream, by id."""
    status, answer = server.request("POST", f"/{index}/_refresh")
    if status == 404:
        return {}
    assert status == 200, answer
    found: dict[str, dict[str, Any]] = {}
    after: list[Any] | None = None
    while True:
        query: dict[str, Any] = {"size": 5000, "sort": ["_doc"]}
        path = f"/{index}/_search?scroll=1m" if after is None else "/_search/scroll"
        body: dict[str, Any] = query if after is None else {"scroll": "1m", "scroll_id": after}
        status, answer = server.request("POST", path, body)
        assert status == 200, answer
        after = answer["_scroll_id"]
        hits = answer["hits"]["hits"]
        if not hits:
            server.request("DELETE", "/_search/scroll", {"scroll_id": after})
            return found
        for hit in hits:
            assert hit["_id"] not in found, f"{hit['_id']} is there twice"
            found[hit["_id"]] = hit["_source"]


@dataclass
class SearchSink(Sink):
    """One search sink connector of a test; its index is `bucket`."""

    server: OpenSearchServer | None = None

    @property
    def target(self) -> OpenSearchServer:
        """The server."""
        assert self.server is not None
        return self.server

    def connector(self, **overrides: Any) -> dict[str, Any]:
        """The configuration as people write it for Confluent's sink; `None` removes a key, `_` stands for `.`."""
        config = {
            "name": self.name,
            "connector.class": SEARCH_SINK,
            "tasks.max": "2",
            "topics": self.topic,
            "connection.url": self.target.url,
            "external.resource.usage": "index",
            "topic.to.external.resource.mapping": f"{self.topic}:{self.bucket}",
            "key.ignore": "true",
            "schema.ignore": "true",
            "read.timeout.ms": "30000",
            "connection.timeout.ms": "30000",
            **self.config,
        }
        overrides["batch_size"] = overrides.pop("flush_size", None)
        config.update({key.replace("_", "."): value for key, value in overrides.items()})
        return {key: value for key, value in config.items() if value is not None}

    def documents(self) -> dict[str, dict[str, Any]]:
        """Every document by id."""
        return documents(self.target, self.bucket)

    def values(self) -> list[Any]:
        """The number of every document."""
        self.target.request("POST", f"/{self.bucket}/_refresh")
        return [{"n": int(number)} for number, _ in self.identities().values()]

    def uploads(self) -> list[str]:
        """Nothing is staged."""
        return []

    def identities(self) -> dict[str, tuple[str, str]]:
        """Every visible document: none vanishes, and none changes."""
        status, answer = self.target.request(
            "POST", f"/{self.bucket}/_search", {"size": 10_000, "_source": ["n"], "sort": ["_doc"]}
        )
        assert status == 200, answer
        return {hit["_id"]: (str(hit["_source"]["n"]), "") for hit in answer["hits"]["hits"]}

    def settings_for_pieces(self, piece_bytes: int) -> dict[str, str]:
        """There is no such setting."""
        return {}

    def most_pieces(self) -> int:
        """Large records need several requests; no document tells which."""
        return 2

    def remove_all(self) -> None:
        """Delete the index."""
        self.target.request("DELETE", f"/{self.bucket}")


def search_sink(kafka: Any, server: OpenSearchServer, topic: str, **config: str) -> SearchSink:
    """A connector with an empty index of its own, without replicas."""
    name = f"sink-{uuid.uuid4().hex[:8]}"
    settings = {key.replace("_", "."): value for key, value in config.items()}
    body = {"settings": {"number_of_replicas": 0}}
    assert server.request("PUT", f"/{name}", body)[0] == 200
    return SearchSink(kafka, None, name, name, topic, settings, server=server)  # type: ignore[arg-type]


class SearchTask:
    """A task of the sink over partition 0 of a topic, without Kafka."""

    def __init__(self, url: str, topic: str, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        self.config = {
            "name": "sink",
            "connector.class": SEARCH_SINK,
            "topics": topic,
            "connection.url": url,
            "schema.ignore": "true",
            "read.timeout.ms": "30000",
            "connection.timeout.ms": "30000",
            "retry.backoff.ms": "20",
            **settings,
        }
        self.topic = topic
        self.errors = Errors(tolerates=self.config.get("errors.tolerance") == "all")

    def open(self, *, start: int = 0) -> SinkTaskRunner:
        """The task, open."""
        context = RoleContext(self.config, run_id="run", errors=self.errors)
        runner = SinkTaskRunner(
            ElasticsearchSinkTask(), context, [OffsetRange(self.topic, 0, start, LAST)], stages=False
        )
        runner.open()
        return runner

    def write(self, records: Sequence[Any]) -> list[tuple[int, str]]:
        """Write records to the end; returns what was reported as errant."""
        runner = self.open()
        try:
            for record in records:
                runner.put(record)
            runner.complete()
        except BaseException:
            runner.abort()
            raise
        runner.close()
        return self.errors.letters
