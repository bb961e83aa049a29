"""One of several indices of an alias is lost, with documents of this run, or of earlier ones: others stay."""

from __future__ import annotations

import pytest

from airflow_connect.api.offsets import TopicPartition
from airflow_connect.api.sink_state import CopiedRun, PlannedRun
from airflow_connect.connectors.search.connector import ElasticsearchSinkConnector
from airflow_connect.errors import SearchError
from tests.support.copies.jdbc_sink_tasks import LAST, record
from tests.support.copies.search_sink import SearchTask, documents, search_sink

pytestmark = pytest.mark.integration

NO_REPLICAS = {"number_of_replicas": 0}


def put_index(server, name, alias, **options):
    body = {"settings": NO_REPLICAS, "aliases": {alias: options}}
    assert server.request("PUT", f"/{name}", body)[0] == 200


def put_two(server, alias):
    put_index(server, f"{alias}-1", alias)
    put_index(server, f"{alias}-2", alias, is_write_index=True)


def lose_second(server, alias, how):
    path = f"/{alias}-2/_alias/{alias}" if how == "removed" else f"/{alias}-2"
    assert server.request("DELETE", path)[0] == 200
    if how == "made again":
        put_index(server, f"{alias}-2", alias, is_write_index=True)


@pytest.mark.parametrize("how", ["deleted", "made again", "removed", "stays"])
def test_index_of_an_alias_that_is_lost_between_two_tasks_of_a_run_fails_it(opensearch, unique_name, how):
    """One index that both tasks have seen was enough: what the first one had written was lost."""
    put_two(opensearch, unique_name)
    reports = []
    for n in range(2):
        task = SearchTask(opensearch.url, unique_name)
        runner = task.open()
        runner.put(record(n, {"v": n}, key=f"k{n}", topic=unique_name))
        reports.append(runner.report(TopicPartition(unique_name, 0), LAST, end=None, reason=""))
        runner.close()
        if n == 0 and how != "stays":
            lose_second(opensearch, unique_name, how)
    connector = ElasticsearchSinkConnector()
    connector.config = task.config
    run = CopiedRun(PlannedRun(), reports=reports)
    if how == "stays":
        assert connector.state_after(run).notes == []
        return
    with pytest.raises(SearchError, match=f"{unique_name} was deleted while this run wrote to it") as caught:
        connector.state_after(run)
    assert caught.value.code == "search.deleted"


def test_index_that_comes_by_a_rollover_and_is_lost_during_the_same_task_fails_it(opensearch, unique_name):
    """A note said that a pipeline had sent the document there."""
    put_index(opensearch, f"{unique_name}-000001", unique_name, is_write_index=True)
    runner = SearchTask(opensearch.url, unique_name, batch_size="1").open()
    assert opensearch.request("POST", f"/{unique_name}/_rollover", {"settings": NO_REPLICAS})[0] == 200
    runner.put(record(0, {"v": 0}, key="a", topic=unique_name))
    runner.deliver()
    runner._task._sender.wait()
    assert opensearch.request("POST", f"/{unique_name}/_rollover", {"settings": NO_REPLICAS})[0] == 200
    runner.put(record(1, {"v": 1}, key="b", topic=unique_name))
    runner.deliver()
    runner._task._sender.wait()
    assert opensearch.request("DELETE", f"/{unique_name}-000003")[0] == 200
    with pytest.raises(SearchError, match=f"{unique_name} was deleted while this task wrote to it"):
        runner.complete()
    runner.abort()


@pytest.mark.parametrize("how", ["deleted", "made again"])
def test_index_of_an_alias_that_is_lost_between_runs_is_named_although_older_ones_stay(
    kafka, opensearch, make_topic, produce, how
):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    name = sink.bucket
    sink.remove_all()
    put_two(opensearch, name)

    def notes_of_a_run():
        produce(topic, [(0, None, '{"v": 1}')])
        return [note for note in sink.run().notes if "at the last run" in note]

    assert notes_of_a_run() == []
    lose_second(opensearch, name, how)
    if how == "deleted":
        put_index(opensearch, f"{name}-3", name, is_write_index=True)
    (note,) = notes_of_a_run()
    assert note.startswith(f"{name} had {name}-2 at the last run, which was deleted, created again or removed from it")
    assert f"This run writes {topic}-0 from offset 1 on" in note
    assert list(documents(opensearch, name)) == [f"{topic}+0+1"]
    assert opensearch.request("DELETE", f"/{name}-1")[0] == 200  # As a policy does.
    assert notes_of_a_run() == []
