"""Answers that blame another record, and nodes that do not belong together: nothing is lost or rejected by them."""

from __future__ import annotations

import json

import pytest

from airflow_connect.errors import SearchError, UnavailableError
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.servers.search_proxy import CUT_BEFORE, search_proxy

pytestmark = pytest.mark.integration


def rows(topic, count=600):
    return [record(n, {"n": n}, key=f"k{n % 100}", topic=topic) for n in range(count)]


def last_of_each(count=600):
    return {f"k{n % 100}": {"n": n} for n in range(count)}


def reversed_items(answer):
    """As a proxy gives them that puts the answers of several servers together."""
    found = json.loads(answer)
    return json.dumps({**found, "items": found["items"][::-1]}).encode()


def test_answer_with_items_in_another_order_blames_no_other_record(opensearch, unique_name):
    """The first record became the dead letter, and the fourth, which the server has refused, counted as written."""
    mapping = {"mappings": {"properties": {"n": {"type": "long"}}}}
    assert opensearch.request("PUT", f"/{unique_name}", mapping)[0] == 200
    records = [record(n, {"n": "no number" if n == 3 else str(n)}, key=f"k{n}", topic=unique_name) for n in range(4)]
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.rewrite_answer = reversed_items
        task = SearchTask(proxy.url, unique_name, errors_tolerance="all", retry_backoff_ms="10")
        errant = task.write(records)
        assert proxy.bulk_sizes[:3] == [4, 4, 2]
    assert [offset for offset, _ in errant] == [3]
    assert documents(opensearch, unique_name) == {f"k{n}": {"n": str(n)} for n in range(3)}


def test_answers_that_keep_another_order_end_the_task(opensearch, unique_name):
    SearchTask(opensearch.url, unique_name).write([record(1, {"n": 1}, key="k1", topic=unique_name)])
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.rewrite_answer = reversed_items
        with pytest.raises(UnavailableError, match="with their ids in another order") as caught:
            SearchTask(proxy.url, unique_name, max_retries="0").write(rows(unique_name, 4))
    assert caught.value.code == "search.retries"


def test_nodes_of_two_clusters_are_refused(opensearch, unique_name):
    """Each cluster got every second request, and all records counted as written."""
    other = {"name": "other", "cluster_uuid": "another-cluster"}
    with search_proxy(opensearch.ports[0]) as one, search_proxy(opensearch.ports[0]) as two:
        SearchTask(f"{one.url},{two.url}", unique_name).write(rows(unique_name))
        two.early_faults = [(200, json.dumps(other).encode())]
        with pytest.raises(SearchError, match="are of 2 clusters") as caught:
            SearchTask(f"{one.url},{two.url}", unique_name).write(rows(unique_name))
    assert (
        caught.value.code == "search.clusters" and one.url in caught.value.message and two.url in caught.value.message
    )


@pytest.mark.parametrize(
    ("answer", "is_named"),
    [((403, b'{"error":{"type":"security_exception"},"status":403}'), True), (CUT_BEFORE, False), ((200, b"?"), False)],
)
def test_node_that_does_not_tell_its_cluster_is_named_or_not_used(opensearch, unique_name, answer, is_named):
    with search_proxy(opensearch.ports[0]) as one, search_proxy(opensearch.ports[0]) as two:
        two.early_faults = [answer]
        runner = SearchTask(f"{one.url},{two.url}", unique_name).open()
        for row in rows(unique_name):
            runner.put(row)
        runner.complete()
        runner.close()
        assert two.early_faults == []
    notes = [
        note for note in runner.notes.sentences if "whether all nodes of connection.url are of one cluster" in note
    ]
    assert len(notes) == is_named and all(two.url in note and one.url not in note for note in notes)
    assert documents(opensearch, unique_name) == last_of_each()


def stopped_at(item):
    """Changes the first answer: the document at a position got an error of the server, although it was written."""
    answers = []

    def change(answer):
        found = json.loads(answer)
        answers.append(found)
        if len(answers) == 1:
            ((_, result),) = found["items"][item].items()
            error = {"type": "unavailable_shards_exception", "reason": "[0] primary shard is not active Timeout: [15s]"}
            result |= {"status": 503, "error": error}
        return json.dumps(found).encode()

    return change


def noted(url, log, **config):
    """Written and filtered records, and notes."""
    runner = SearchTask(url, log[0].topic, linger_ms="600000", **config).open()
    for row in log:
        runner.put(row)
    runner.complete()
    report = runner.report(runner.ranges[0].topic_partition, len(log), end=len(log), reason="")
    runner.close()
    return report.written, report.filtered, list(runner.notes.sentences)


def test_document_that_a_server_may_have_written_before_it_lost_its_shard_is_named(opensearch, unique_name):
    """Between two nodes, the connection broke after the primary had the document: it is there twice."""
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.rewrite_answer = stopped_at(1)
        config = {"key_ignore": "true", "use_autogenerated_ids": "true"}
        _, _, (note,) = noted(proxy.url, rows(unique_name, 3), **config)
    assert note.startswith(f"1 record was written to {unique_name} by a request that was sent again because")
    assert f"The first was {unique_name}-0@1." in note
    assert len(documents(opensearch, unique_name)) == 4


def test_record_of_a_data_stream_that_was_written_behind_another_of_its_key_counts_as_written(opensearch, unique_name):
    """It was sent again with the other one, and refused with it: nothing of the key counted as written."""
    stream = f"logs-{unique_name.replace('-', '')}-load"
    template = {"index_patterns": [f"{stream}*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    log = [record(n, {"n": n}, key=key, topic="load").changed(timestamp=n) for n, key in enumerate("aab")]
    busy = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue is full"}}
    items = [{"create": one} for one in (busy, {"status": 201, "_index": stream}, {"status": 201, "_index": stream})]
    first = 200, json.dumps({"errors": True, "items": items}).encode()
    config = {"data_stream_type": "logs", "data_stream_dataset": stream.split("-")[1]}
    written, filtered, _ = noted(opensearch.url, log[1:], **config)
    assert (written, filtered) == (2, 0)  # What the first answer says of them.
    with search_proxy(opensearch.ports[0], lambda number, _: first if number == 1 else None) as proxy:
        written, filtered, (note,) = noted(proxy.url, log, **config)
    assert (written, filtered) == (2, 1) and "The first was load-0@0." in note


def test_server_that_does_not_know_a_parameter_rejects_no_document(opensearch, unique_name):
    """Such as require_alias before Elasticsearch 7.10: each document was dropped as malformed."""
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.rewrite = lambda path: f"{path}&require_anything=true"
        with pytest.raises(SearchError, match=r"unrecognized parameter: \[require_anything\]") as caught:
            SearchTask(proxy.url, unique_name, behavior_on_malformed_documents="ignore").write(rows(unique_name, 3))
    assert caught.value.code == "search.refused"


HTML = b"<html><body>Request blocked</body></html>"


@pytest.mark.parametrize("status", [400, 403, 406])
def test_document_that_a_firewall_does_not_let_through_is_named(opensearch, unique_name, status):
    """The first request ended each run, with advice about user and password, and no record was named."""
    made = [record(n, {"v": "<script>" if n == 7 else "fine"}, key=f"k{n}", topic=unique_name) for n in range(20)]

    def fault(_, __):
        return (status, HTML) if b"<script>" in proxy.bodies[-1] else None

    with search_proxy(opensearch.ports[0], fault) as proxy, pytest.raises(SearchError) as caught:
        SearchTask(proxy.url, unique_name).write(made)
    assert f"with the document of the record at {unique_name}-0@7 alone ({status})" in caught.value.message
    assert "firewall" in caught.value.suggestion


@pytest.mark.parametrize("status", [408, 425, 499])
def test_answer_of_a_proxy_that_passes_is_repeated(opensearch, unique_name, status):
    with search_proxy(opensearch.ports[0], lambda number, _: (status, HTML) if number == 1 else None) as proxy:
        assert SearchTask(proxy.url, unique_name).write(rows(unique_name, 5)) == []
    assert len(documents(opensearch, unique_name)) == 5
