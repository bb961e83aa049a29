"""A node with small limits, on which nothing is simulated: 413, circuit breaker, indexing pressure, a cluster block."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest

from airflow_connect.errors import SearchError, UnavailableError
from airflow_connect.kafka.reading import batch_fetch
from airflow_connect.runtime.executor.sink import coalescing
from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents, search_sink
from tests.support.servers.search_proxy import search_proxy
from tests.support.steps import HookedEngine

pytestmark = pytest.mark.integration
MOST_BYTES = 128 << 10
PRESSURE_BYTES = 64 << 10
# Full requests only, so that their sizes are known.
ONE_BY_ONE = {"max_in_flight_requests": "1", "max_retries": "20", "linger_ms": "600000"}
_PREDICATE = "org.apache.kafka.connect.transforms.predicates.HasHeaderKey"
HAS_NO_COLUMNS = {
    "transforms": "drop", "transforms.drop.type": "org.apache.kafka.connect.transforms.Filter",
    "transforms.drop.predicate": "marked", "predicates": "marked", "predicates.marked.type": _PREDICATE,
    "predicates.marked.name": "x",
}  # fmt: skip
BREAKER = "network.breaker.inflight_requests.limit"


@pytest.fixture(scope="module")
def small_node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenSearchServer]:
    """Takes requests up to 128 KiB; 64 KiB of documents at a time. It can write snapshots."""
    settings = {"http.max_content_length": f"{MOST_BYTES}b", "indexing_pressure.memory.limit": f"{PRESSURE_BYTES}b"}
    settings["path.repo"] = str(tmp_path_factory.mktemp("snapshots"))
    server = OpenSearchServer.start(settings=settings)
    yield server
    server.discard()


def rows(topic, count=3000):
    return [record(n, {"n": n, "text": "x" * 180}, key=f"k{n}", topic=topic) for n in range(count)]


def wanted(count=3000):
    return {f"k{n}": {"n": n, "text": "x" * 180} for n in range(count)}


def set_cluster(server, **settings):
    body = {"persistent": {name.replace("__", "."): value for name, value in settings.items()}}
    status, answer = server.request("PUT", "/_cluster/settings", body)
    assert status == 200, answer


def test_requests_that_the_node_calls_too_large_or_too_much_get_smaller(small_node, unique_name):
    """Half a megabyte in one request at first: 413; then 429 for the indexing pressure."""
    with search_proxy(small_node.ports[0]) as proxy:
        SearchTask(proxy.url, unique_name, **ONE_BY_ONE).write(rows(unique_name))
        sizes = [len(body) for body in proxy.bodies]
    assert documents(small_node, unique_name) == wanted()
    assert sizes[0] > 3 * MOST_BYTES and min(sizes) < PRESSURE_BYTES


def test_later_requests_of_a_task_stay_below_the_size_that_was_refused(small_node, unique_name):
    with search_proxy(small_node.ports[0]) as proxy:
        task = SearchTask(proxy.url, unique_name, **ONE_BY_ONE, batch_size="900", max_buffered_records="900")
        task.write(rows(unique_name, 5400))
        sizes = [len(body) for body in proxy.bodies]
    assert documents(small_node, unique_name) == wanted(5400)
    assert 0 < sum(size > MOST_BYTES for size in sizes) <= 3, sizes


def test_document_that_is_too_large_for_the_node_is_found_among_others(small_node, unique_name):
    values = {n: {"n": n, "text": "x" * (MOST_BYTES if n == 7 else 10)} for n in range(40)}
    task = SearchTask(small_node.url, unique_name, errors_tolerance="all")
    letters = task.write([record(n, value, key=str(n), topic=unique_name) for n, value in values.items()])
    assert [offset for offset, _ in letters] == [7] and "too large for the server (413)" in letters[0][1]
    assert documents(small_node, unique_name) == {str(n): value for n, value in values.items() if n != 7}


def test_circuit_breaker_is_answered_by_smaller_requests_and_named_if_it_stays(small_node, unique_name):
    set_cluster(small_node, **{BREAKER: "20kb"})
    try:
        task = SearchTask(small_node.url, unique_name, max_retries="20", bulk_size_bytes="100000")
        task.write(rows(unique_name, 1000))
        set_cluster(small_node, **{BREAKER: "1kb"})
        with pytest.raises(UnavailableError) as stays:
            SearchTask(small_node.url, unique_name, max_retries="3").write(rows(unique_name, 1000))
    finally:
        set_cluster(small_node, **{BREAKER: None})
    assert documents(small_node, unique_name) == wanted(1000)
    assert stays.value.code == "search.retries" and "circuit_breaking_exception" in stays.value.message
    assert "max.in.flight.requests" in stays.value.suggestion


def test_run_from_columns_learns_the_limits_too(kafka, small_node, make_topic, produce):
    topic = make_topic(partitions=2)
    produce(topic, [(n % 2, None, json.dumps({"n": n, "text": "x" * 180})) for n in range(2000)])
    sink = search_sink(kafka, small_node, topic, max_retries="50", retry_backoff_ms="20")
    report = sink.run()
    assert report.records == 2000
    assert sorted(value["n"] for value in sink.documents().values()) == list(range(2000))


def test_cluster_that_somebody_has_made_read_only_is_named(small_node, unique_name):
    SearchTask(small_node.url, unique_name).write(rows(unique_name, 3))
    set_cluster(small_node, cluster__blocks__read_only=True)
    try:
        with pytest.raises(SearchError) as blocked:
            SearchTask(small_node.url, unique_name).write(rows(unique_name, 6))
        with pytest.raises(SearchError) as new:
            SearchTask(small_node.url, f"{unique_name}-new").write(rows(f"{unique_name}-new", 6))
    finally:
        set_cluster(small_node, cluster__blocks__read_only=None)
    assert blocked.value.code == "search.blocked" and "cluster read-only" in blocked.value.message
    assert new.value.code == "search.create" and "cluster read-only" in new.value.message
    assert documents(small_node, unique_name) == wanted(3)


def test_index_that_was_closed_and_restored_from_a_snapshot_is_named(kafka, small_node, make_topic, produce):
    """It keeps its id: the documents of runs after the snapshot were missing without a word."""
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, small_node, topic)

    def call(method, path, body=None):
        status, answer = small_node.request(method, path, body)
        assert status == 200, answer
        return answer

    def notes_of_a_run():
        produce(topic, [(0, None, '{"n": 1}')])
        return [note for note in sink.run().notes if "snapshot" in note]

    place = next(iter(call("GET", "/_nodes/settings?flat_settings=true")["nodes"].values()))["settings"]["path.repo"]
    call("PUT", "/_snapshot/backup", {"type": "fs", "settings": {"location": place}})
    assert notes_of_a_run() == []
    call("PUT", "/_snapshot/backup/one?wait_for_completion=true", {"indices": sink.bucket})
    assert notes_of_a_run() == []
    call("POST", f"/{sink.bucket}/_close")
    call("POST", "/_snapshot/backup/one/_restore?wait_for_completion=true", {"indices": sink.bucket})

    (note,) = notes_of_a_run()

    assert note.startswith(f"{sink.bucket} was restored from a snapshot since the last run. This run writes {topic}-0")
    assert "from offset 2 on" in note
    assert sorted(sink.documents()) == [f"{topic}+0+0", f"{topic}+0+2"]
    assert notes_of_a_run() == []
    sink.set_offsets({0: 1})
    assert notes_of_a_run() == []
    assert sorted(sink.documents()) == [f"{topic}+0+{n}" for n in range(5)]


@pytest.mark.parametrize("columnar", [False, True], ids=["rows", "columns"])
def test_run_ends_early_if_the_server_refuses_many_documents(
    kafka, opensearch, make_topic, produce, unique_name, monkeypatch, columnar
):
    """In columns, the dead letters of a run had no limit."""
    monkeypatch.setattr(batch_fetch, "MAX_MESSAGES", 300)
    monkeypatch.setattr(coalescing, "PARTITION_RECORDS", 300)
    topic = make_topic(partitions=1)
    produce(topic, [(0, None, json.dumps({"n": "bad" if n % 2 else n})) for n in range(3000)])
    sink = search_sink(kafka, opensearch, topic, errors_tolerance="all", batch_size="100", max_buffered_records="200")
    dead_letters = "errors.deadletterqueue.topic."
    sink.config |= {f"{dead_letters}name": f"{unique_name}-dlq", f"{dead_letters}replication.factor": "1"}
    if not columnar:
        sink.config |= HAS_NO_COLUMNS
    mapping = {"properties": {"n": {"type": "long"}}}
    assert opensearch.request("PUT", f"/{sink.bucket}/_mapping", mapping)[0] == 200
    sink.engine = HookedEngine(change=lambda task: replace(task, max_dead_letter_bytes=20_000))
    first = sink.run()
    assert any("ended early in 1 partition" in note for note in first.notes)
    assert 100 < first.dead_lettered < 1000
    reports = [first]
    while (report := sink.run()).status != "empty":
        reports.append(report)
    assert sum(report.dead_lettered for report in reports) == 1500
    assert sorted(value["n"] for value in sink.documents().values()) == list(range(0, 3000, 2))
