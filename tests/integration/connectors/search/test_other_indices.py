"""An index that is deleted, during a run or between two, and targets that change or hide documents, are named."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink_state import CopiedRun, PlannedRun
from airflow_connect.connectors.search.indices import state_after
from airflow_connect.errors import SearchError
from tests.support.copies.jdbc_sink_tasks import LAST, record
from tests.support.copies.search_sink import SearchTask, documents, search_sink
from tests.support.servers.search_proxy import search_proxy

pytestmark = pytest.mark.integration

NO_REPLICAS = {"number_of_replicas": 0}


def created(server, name, **mapping):
    body = {"settings": NO_REPLICAS, **({"mappings": mapping} if mapping else {})}
    assert server.request("PUT", f"/{name}", body)[0] == 200


def notes(server, topic, *values, **config):
    runner = SearchTask(server.url, topic, **config).open()
    for offset, value in enumerate(values):
        runner.put(record(offset, value, key=f"k{offset}", topic=topic))
    runner.complete()
    runner.close()
    return list(runner.notes.sentences)


@pytest.mark.parametrize("comes_back", [True, False])
def test_index_that_is_deleted_during_a_run_fails_it(opensearch, unique_name, comes_back):
    """The server creates it again for the next document, and says nothing: the first one counted as written."""
    runner = SearchTask(opensearch.url, unique_name, batch_size="1", max_in_flight_requests="1").open()
    runner.put(record(0, {"v": 0}, key="a", topic=unique_name))
    runner.deliver()
    runner._task.flush()
    assert opensearch.request("DELETE", f"/{unique_name}")[0] == 200
    if comes_back:
        runner.put(record(1, {"v": 1}, key="b", topic=unique_name))
    with pytest.raises(SearchError, match="was deleted while this task wrote to it") as caught:
        runner.complete()
    runner.abort()
    assert caught.value.code == "search.deleted"
    assert documents(opensearch, unique_name) == ({"b": {"v": 1}} if comes_back else {})


@pytest.mark.parametrize("how", ["deleted", "removed", "stays"])
def test_index_of_an_alias_that_is_lost_during_a_run_fails_it_although_others_stay(opensearch, unique_name, how):
    def put_written():
        body = {"settings": NO_REPLICAS, "aliases": {unique_name: {"is_write_index": True}}}
        assert opensearch.request("PUT", f"/{unique_name}-2", body)[0] == 200

    created(opensearch, f"{unique_name}-1")
    assert opensearch.request("PUT", f"/{unique_name}-1/_alias/{unique_name}")[0] == 200
    put_written()
    runner = SearchTask(opensearch.url, unique_name, batch_size="1").open()
    runner.put(record(0, {"v": 0}, key="a", topic=unique_name))
    runner.deliver()
    runner._task._sender.wait()
    if how == "deleted":
        assert opensearch.request("DELETE", f"/{unique_name}-2")[0] == 200
        put_written()
    elif how == "removed":
        assert opensearch.request("DELETE", f"/{unique_name}-2/_alias/{unique_name}")[0] == 200
    if how == "stays":
        runner.complete()
    else:
        with pytest.raises(SearchError, match=f"{unique_name} was deleted while this task wrote to it, or leads to"):
            runner.complete()
    runner.abort()


@pytest.mark.parametrize("is_deleted", [True, False])
def test_index_that_is_deleted_between_two_tasks_of_a_run_fails_it(opensearch, unique_name, is_deleted):
    """Each task saw one index only: what the first one had written was lost, and its offsets were committed."""
    reports = []
    for n in range(2):
        runner = SearchTask(opensearch.url, unique_name).open()
        runner.put(record(n, {"v": n}, key=f"k{n}", topic=unique_name))
        reports.append(runner.report(TopicPartition(unique_name, 0), LAST, end=None, reason=""))
        runner.close()
        if is_deleted and n == 0:
            assert opensearch.request("DELETE", f"/{unique_name}")[0] == 200
    run = CopiedRun(PlannedRun(), reports=reports)
    if not is_deleted:
        assert state_after(run).notes == []
        return
    with pytest.raises(SearchError, match=f"{unique_name} was deleted while this run wrote to it") as caught:
        state_after(run)
    assert caught.value.code == "search.deleted"


def test_index_that_was_deleted_between_runs_is_named_if_the_run_that_created_it_has_failed(
    kafka, opensearch, make_topic, produce
):
    topic = make_topic(partitions=1)
    produce(topic, [(0, None, '{"v": 1}')])
    sink = search_sink(kafka, opensearch, topic)
    sink.config |= {"external.resource.usage": None, "topic.to.external.resource.mapping": None}

    def others(report):
        return [note for note in report.notes if "is another index than the one" in note]

    assert others(sink.run()) == []
    produce(topic, [(0, None, '{"v": 2}')])
    assert others(sink.run()) == []
    assert opensearch.request("DELETE", f"/{topic}")[0] == 200
    produce(topic, [(0, None, '{"v": 3}'), (0, None, '{"v": "a text"}')])
    assert sink.try_run().status == "failed"
    (note,) = others(sink.run(behavior_on_malformed_documents="ignore"))
    assert note.startswith(topic) and f"This run writes {topic}-0 from offset 2 on" in note
    assert documents(opensearch, topic) == {f"{topic}+0+2": {"v": 3}}
    produce(topic, [(0, None, '{"v": 4}')])
    assert others(sink.run()) == []


def test_target_that_leads_to_other_indices_than_at_the_last_run_is_named(kafka, opensearch, make_topic, produce):
    """A reindexing copies what an index has when it begins; what runs write until the alias is moved stays behind."""
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    name = sink.bucket

    def notes_of_a_run():
        produce(topic, [(0, None, '{"v": 1}')])
        return [note for note in sink.run().notes if "the records before are not in it" in note]

    def change(*actions):
        assert opensearch.request("POST", "/_aliases", {"actions": list(actions)})[0] == 200

    assert notes_of_a_run() == []
    created(opensearch, f"{name}-2")
    assert opensearch.request("DELETE", f"/{name}")[0] == 200
    change({"add": {"index": f"{name}-2", "alias": name}})
    (note,) = notes_of_a_run()  # An index became an alias.
    assert note.startswith(f"{name} has no index any more that it had at the last run ({name}-2 now)")
    assert f"This run writes {topic}-0 from offset 1 on" in note
    assert notes_of_a_run() == []
    created(opensearch, f"{name}-3")
    change({"remove": {"index": f"{name}-2", "alias": name}}, {"add": {"index": f"{name}-3", "alias": name}})
    (note,) = notes_of_a_run()  # The alias was moved.
    assert f"({name}-3 now)" in note
    assert len(documents(opensearch, f"{name}-3")) == 1
    created(opensearch, f"{name}-4")  # One more index, to which the server writes, is no other target.
    change(
        {"add": {"index": f"{name}-4", "alias": name, "is_write_index": True}},
        {"add": {"index": f"{name}-3", "alias": name, "is_write_index": False}},
    )
    assert notes_of_a_run() == []
    assert len(documents(opensearch, f"{name}-4")) == 1


def test_data_stream_that_was_made_again_is_named_and_one_that_has_lost_old_indices_is_not(
    kafka, opensearch, make_topic, produce
):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    name = f"logs-{sink.bucket.replace('-', '')}-x"
    template = {"index_patterns": [name], "data_stream": {}, "priority": 500, "template": {"settings": NO_REPLICAS}}
    assert opensearch.request("PUT", f"/_index_template/{name}", template)[0] == 200
    assert opensearch.request("PUT", f"/_data_stream/{name}")[0] == 200
    sink.config |= {
        "external.resource.usage": "datastream",
        "topic.to.external.resource.mapping": f"{topic}:{name}",
    }

    def notes_of_a_run():
        produce(topic, [(0, None, '{"v": 1}')])
        return [note for note in sink.run().notes if "the records before are not in it" in note]

    assert notes_of_a_run() == []
    assert opensearch.request("POST", f"/{name}/_rollover")[0] == 200
    assert opensearch.request("DELETE", f"/.ds-{name}-000001")[0] == 200
    assert notes_of_a_run() == []
    assert opensearch.request("DELETE", f"/_data_stream/{name}")[0] == 200
    assert opensearch.request("PUT", f"/_data_stream/{name}")[0] == 200
    (note,) = notes_of_a_run()
    assert note.startswith(f"{name} has no index any more that it had at the last run (.ds-{name}-000001 now)")
    assert notes_of_a_run() == []


@pytest.mark.parametrize("ids", ["true", "false"], ids=["offsets", "keys"])
def test_alias_whose_keys_may_be_in_another_index_is_named(opensearch, unique_name, ids):
    """The server knows the ids of the index to which it writes only."""
    for n in (1, 2):
        created(opensearch, f"{unique_name}-{n}")
    assert opensearch.request("PUT", f"/{unique_name}-1/_doc/k0", {"v": "old"})[0] == 201
    parts = [{"index": f"{unique_name}-{n}", "alias": unique_name, "is_write_index": n == 2} for n in (1, 2)]
    assert opensearch.request("POST", "/_aliases", {"actions": [{"add": part} for part in parts]})[0] == 200
    said = notes(opensearch, unique_name, {"v": "new"}, key_ignore=ids)
    assert len(said) == (1 if ids == "false" else 0)
    assert all(
        note.startswith(f"{unique_name} has 2 indices, and the server writes to one of them only") for note in said
    )
    assert len(documents(opensearch, f"{unique_name}-1")) == len(documents(opensearch, f"{unique_name}-2")) == 1


@pytest.mark.parametrize("before", [1, 2])
def test_alias_that_gets_its_second_index_during_a_run_is_named(opensearch, unique_name, before):
    """Keys of before the rollover became second documents, and the report of that run did not say so."""
    for n in range(1, before + 1):
        body = {"settings": NO_REPLICAS, "aliases": {unique_name: {"is_write_index": n == before}}}
        assert opensearch.request("PUT", f"/{unique_name}-{n:06}", body)[0] == 200
    runner = SearchTask(opensearch.url, unique_name, batch_size="1", max_in_flight_requests="1").open()
    runner.put(record(0, {"v": 0}, key="a", topic=unique_name))
    runner.deliver()
    runner._task.flush()
    settings = {**NO_REPLICAS, "index.mapping.ignore_malformed": True}
    assert opensearch.request("POST", f"/{unique_name}/_rollover", {"settings": settings})[0] == 200
    runner.put(record(1, {"v": 1}, key="a", topic=unique_name))
    runner.complete()
    runner.close()
    assert [documents(opensearch, f"{unique_name}-{n:06}") for n in (before, before + 1)] == [
        {"a": {"v": 0}},
        {"a": {"v": 1}},
    ]
    several, ignoring = runner.notes.sentences
    assert several.startswith(f"{unique_name} has 2 indices, and the server writes to one of them only")
    assert ignoring.startswith(f"The index {unique_name}-{before + 1:06} has ignore_malformed")


def test_indices_that_lose_or_ignore_what_they_have_taken_are_named(opensearch, unique_name):
    """A document counts as written, and no search finds it by the value."""
    inner = {"properties": {"m": {"type": "long", "ignore_malformed": True}, "o": {"type": "long"}}}
    text = {"type": "text", "fields": {"number": {"type": "double", "ignore_malformed": "true"}}}
    template = {"longs": {"match_mapping_type": "long", "mapping": {"type": "long", "ignore_malformed": True}}}
    created(opensearch, unique_name, properties={"a": inner, "t": text}, dynamic_templates=[template])
    (note,) = notes(opensearch, unique_name, {"a": {"m": "no number"}})
    assert f"The index {unique_name} has ignore_malformed (a.m, t.number, dynamic template longs)" in note

    late = {"settings": {**NO_REPLICAS, "index.translog.durability": "async"}}
    assert opensearch.request("PUT", f"/{unique_name}-late", late)[0] == 200
    (note,) = notes(opensearch, f"{unique_name}-late", {"v": 1})
    assert note.startswith(f"index.translog.durability is async for {unique_name}-late: the server answers before")

    whole = {"settings": {**NO_REPLICAS, "index.mapping.ignore_malformed": True}}
    assert opensearch.request("PUT", f"/{unique_name}-whole", whole)[0] == 200
    (note,) = notes(opensearch, f"{unique_name}-whole", {"v": 1})
    assert "has ignore_malformed (index.mapping.ignore_malformed)" in note


@pytest.mark.parametrize("keeps", [False, True])
def test_timestamp_of_a_document_that_is_replaced_is_counted(opensearch, unique_name, keeps):
    dataset = unique_name.replace("-", "")
    template = {"index_patterns": [f"logs-{dataset}-*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"key_ignore": "true", "data_stream_type": "logs", "data_stream_dataset": dataset}
    if keeps:
        config["data_stream_timestamp_field"] = "@timestamp"
    runner = SearchTask(opensearch.url, "clicks", **config).open()
    own = [{"@timestamp": "2020-01-01T00:00:00Z"}, {"v": 1, "@timestamp": 5}, {"@timestamp": "2020-01-02T00:00:00Z"}]
    for offset, value in enumerate(own):
        runner.put(record(offset, value, topic="clicks").changed(timestamp=5))
    runner.complete()
    runner.close()
    said = [note for note in runner.notes.sentences if "@timestamp" in note]
    kept = [found["@timestamp"] for _, found in sorted(documents(opensearch, f"logs-{dataset}-clicks").items())]
    if keeps:
        assert said == [] and kept == ["2020-01-01T00:00:00Z", "5", "2020-01-02T00:00:00Z"]
    else:
        assert (
            len(said) == 1 and said[0].startswith("2 records have a field @timestamp of their own") and kept == [5] * 3
        )
        assert "The first is clicks-0@0." in said[0]


@pytest.mark.parametrize("ids", ["true", "false"], ids=["columns of offsets", "keys"])
def test_documents_that_are_sent_to_another_index_are_counted(opensearch, unique_name, ids):
    """An ingest pipeline may set `_index`. The node of the tests has none: a proxy changes the index of a request."""
    created(opensearch, unique_name)
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.rewrite = lambda path: path.replace(f"/{unique_name}/", f"/{unique_name}-2026-11/")
        (note,) = notes(SimpleNamespace(url=proxy.url), unique_name, {"v": 1}, {"v": 2}, key_ignore=ids)
    assert note.startswith(f"2 records were written to {unique_name}-2026-11, which is no index of {unique_name}:")
    assert f"The first was {unique_name}-0@0." in note
    assert len(documents(opensearch, f"{unique_name}-2026-11")) == 2 and documents(opensearch, unique_name) == {}


def test_documents_of_an_alias_that_is_rolled_over_are_not_called_moved(opensearch, unique_name):
    indices = [f"{unique_name}-{n}" for n in (1, 2)]
    for index in indices:
        created(opensearch, index)

    def write_to(index):
        parts = [{"index": one, "alias": unique_name, "is_write_index": one == index} for one in indices]
        actions = [{"add": part} for part in parts if part["index"] <= index]
        assert opensearch.request("POST", "/_aliases", {"actions": actions})[0] == 200

    write_to(indices[0])
    runner = SearchTask(
        opensearch.url, unique_name, batch_size="1", max_in_flight_requests="1", key_ignore="true"
    ).open()
    runner.put(record(0, {"v": 0}, topic=unique_name))
    runner.deliver()
    runner._task.flush()
    write_to(indices[1])
    runner.put(record(1, {"v": 1}, topic=unique_name))
    runner.complete()
    runner.close()
    assert list(runner.notes.sentences) == []
    assert [len(documents(opensearch, index)) for index in indices] == [1, 1]
