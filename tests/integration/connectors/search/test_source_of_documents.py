"""An index that does not keep whole documents: an update makes the new document of what is kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask
from tests.support.servers.search_proxy import search_proxy

pytestmark = pytest.mark.integration

LACKS = {
    "excludes": ({"excludes": ["secret", "more.*"]}, "_source.excludes (secret, more.*)"),
    "includes": ({"includes": ["n"]}, "_source.includes (n)"),
}


def made(server: OpenSearchServer, index: str, source: dict[str, Any]) -> None:
    mapping = {"_source": source, "properties": {"secret": {"type": "keyword"}, "n": {"type": "long"}}}
    body = {"settings": {"number_of_replicas": 0}, "mappings": mapping}
    assert server.request("PUT", f"/{index}", body)[0] == 200


def found(server: OpenSearchServer, index: str, secret: str) -> int:
    assert server.request("POST", f"/{index}/_refresh")[0] == 200
    _, answer = server.request("POST", f"/{index}/_search", {"query": {"term": {"secret": secret}}})
    count: int = answer["hits"]["total"]["value"]
    return count


def notes(server: OpenSearchServer, index: str, value: dict[str, Any], offset: int, **config: str) -> list[str]:
    runner = SearchTask(server.url, index, **config).open()
    runner.put(record(offset, value, key="k", topic=index))
    runner.complete()
    runner.close()
    return list(runner.notes.sentences)


@pytest.mark.parametrize("lacks", LACKS)
def test_upserts_to_an_index_whose_source_lacks_fields_are_named(opensearch, unique_name, lacks):
    source, words = LACKS[lacks]
    made(opensearch, unique_name, source)
    more = {"write_method": "upsert", "linger_ms": "0"}
    (note,) = notes(opensearch, unique_name, {"n": 1, "secret": "s1"}, 0, **more)
    assert found(opensearch, unique_name, "s1") == 1
    assert words in note
    assert unique_name in note
    (note,) = notes(opensearch, unique_name, {"n": 2}, 1, **more)
    assert found(opensearch, unique_name, "s1") == 0  # What the note says.
    assert words in note


@pytest.mark.parametrize(("source", "method"), [({"excludes": ["secret"]}, "insert"), ({}, "upsert")])
def test_whole_documents_and_whole_sources_need_no_note(opensearch, unique_name, source, method):
    made(opensearch, unique_name, source)
    assert notes(opensearch, unique_name, {"n": 1, "secret": "s1"}, 0, write_method=method) == []
    assert found(opensearch, unique_name, "s1") == 1


def test_source_of_an_index_behind_an_alias_is_looked_at(opensearch, unique_name):
    made(opensearch, unique_name, {"excludes": ["secret"]})
    alias = f"{unique_name}-alias"
    assert opensearch.request("PUT", f"/{unique_name}/_alias/{alias}")[0] == 200
    (note,) = notes(opensearch, alias, {"n": 1}, 0, write_method="upsert")
    assert unique_name in note


def test_update_without_a_source_is_refused_by_the_server(opensearch, unique_name):
    made(opensearch, unique_name, {"enabled": False})
    task = SearchTask(opensearch.url, unique_name, write_method="upsert", errors_tolerance="all")
    task.write([record(0, {"n": 1}, key="k", topic=unique_name)])
    ((offset, error),) = task.write([record(1, {"n": 2}, key="k", topic=unique_name)])
    assert offset == 1
    assert "source" in error


def test_mapping_that_the_user_may_not_read_is_named(opensearch, unique_name):
    made(opensearch, unique_name, {})
    refusal = b'{"error": {"type": "security_exception", "reason": "no permissions"}, "status": 403}'
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.early_faults = [(200, b'{"x": {"aliases": {}}}'), (403, refusal)]
        task = SearchTask(proxy.url, unique_name, write_method="upsert").open()
        task.put(record(0, {"n": 1, "secret": "s1"}, key="k", topic=unique_name))
        task.complete()
        task.close()
    assert [note for note in task.notes.sentences if f"refused GET /{unique_name} (403)" in note]
    assert found(opensearch, unique_name, "s1") == 1
