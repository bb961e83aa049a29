"""Lost answers, overload, a server that ends in the middle, blocked and closed indices."""

from __future__ import annotations

import json
import threading

import pytest

from airflow_connect.api import schema as s
from airflow_connect.api.record import Header
from airflow_connect.errors import AccessError, DataError, SearchError, UnavailableError
from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents
from tests.support.servers.search_proxy import CUT_BEFORE, LOSE, search_proxy
from tests.support.values.columns import to_columns

pytestmark = pytest.mark.integration
OVERLOAD = (429, b'{"error":{"type":"es_rejected_execution_exception","reason":"queue is full"},"status":429}')


def rows(topic, count=600):
    return [record(n, {"n": n}, key=f"k{n % 100}", topic=topic) for n in range(count)]


def last_of_each(count=600):
    return {f"k{n % 100}": {"n": n} for n in range(count)}


def test_requests_whose_answers_are_lost_are_sent_again_and_change_nothing(opensearch, unique_name):
    def fault(number, _path):
        return {1: LOSE, 3: CUT_BEFORE, 4: LOSE}.get(number)

    with search_proxy(opensearch.ports[0], fault) as proxy:
        SearchTask(proxy.url, unique_name, batch_size="100", max_in_flight_requests="2").write(rows(unique_name))
        assert len(proxy.bodies) > 6
    assert documents(opensearch, unique_name) == last_of_each()


def test_answer_that_ends_in_the_middle_is_one_that_was_lost(opensearch, unique_name):
    """As from a proxy that marks the end of an answer by the end of the connection."""
    part = (200, b'{"errors":false,"items":[{"index":{"sta')
    with search_proxy(opensearch.ports[0], lambda number, _: part if number in (1, 3) else None) as proxy:
        SearchTask(proxy.url, unique_name, batch_size="200").write(rows(unique_name))
    assert documents(opensearch, unique_name) == last_of_each()


def test_overload_is_answered_by_smaller_requests(opensearch, unique_name):
    with search_proxy(opensearch.ports[0], lambda number, _: OVERLOAD if number <= 3 else None) as proxy:
        SearchTask(proxy.url, unique_name, batch_size="400", max_in_flight_requests="1").write(rows(unique_name, 2000))
        sizes = proxy.bulk_sizes
    assert sizes[:4] == [400, 200, 100, 50]
    assert documents(opensearch, unique_name) == last_of_each(2000)


def test_document_that_met_a_mapping_in_the_making_is_sent_again(opensearch, unique_name):
    """Two requests brought a new field with different types at the same time; the one that lost fits afterwards."""
    reason = "mapper [n] cannot be changed from type [float] to [long]"
    item = {"index": {"status": 400, "error": {"type": "illegal_argument_exception", "reason": reason}}}
    raced = (200, json.dumps({"errors": True, "items": [item]}).encode())
    with search_proxy(opensearch.ports[0], lambda number, _: raced if number == 1 else None) as proxy:
        assert SearchTask(proxy.url, unique_name).write(rows(unique_name, 1)) == []
    assert documents(opensearch, unique_name) == last_of_each(1)
    with search_proxy(opensearch.ports[0], lambda *_: raced) as proxy, pytest.raises(DataError, match="changed from"):
        SearchTask(proxy.url, unique_name).write(rows(unique_name, 1))


def test_documents_meet_several_mappings_in_the_making(opensearch, unique_name):
    """The second half of a request after the first one, and a document with two new fields at its second try."""

    def fault(number, _path):
        items = {2: ["n"] * 50, 3: ["m"] * 50, 5: ["n"] * 50}.get(number, [])
        reasons = [f"mapper [{field}] cannot be changed from type [float] to [long]" for field in items]
        errors = [{"type": "illegal_argument_exception", "reason": reason} for reason in reasons]
        answer = {"errors": True, "items": [{"index": {"status": 400, "error": error}} for error in errors]}
        return OVERLOAD if number == 1 else (200, json.dumps(answer).encode()) if items else None

    with search_proxy(opensearch.ports[0], fault) as proxy:
        assert SearchTask(proxy.url, unique_name, errors_tolerance="all").write(rows(unique_name, 100)) == []
        assert proxy.bulk_sizes == [100, 50, 50, 50, 50, 50]
    assert documents(opensearch, unique_name) == last_of_each(100)


def test_overload_that_stays_ends_the_task(opensearch, unique_name):
    with search_proxy(opensearch.ports[0], lambda *_: OVERLOAD) as proxy:
        with pytest.raises(UnavailableError) as caught:
            SearchTask(proxy.url, unique_name, max_retries="2").write(rows(unique_name, 10))
        assert len(proxy.bodies) == 3
    assert "es_rejected_execution_exception" in caught.value.message
    assert f"in 3 tries, the first of them from the record at {unique_name}-0@0: " in caught.value.message


def test_server_that_is_killed_in_the_middle_and_comes_back_has_every_document():
    server = OpenSearchServer.start()
    try:
        begun = threading.Event()

        def fault(number, _path):
            if number == 5:
                begun.set()

        with search_proxy(server.ports[0], fault) as proxy:
            errors: list[BaseException] = []

            def write():
                task = SearchTask(
                    proxy.url, "orders", batch_size="50", max_in_flight_requests="3", max_retries="1000",
                    retry_backoff_ms="50", flush_timeout_ms="300000",
                )  # fmt: skip
                try:
                    task.write(rows("orders", 3000))
                except BaseException as error:  # noqa: BLE001 (for the assertion)
                    errors.append(error)

            writer = threading.Thread(target=write)
            writer.start()
            assert begun.wait(60)
            server.kill()
            server.restart()
            writer.join(240)
            assert not writer.is_alive() and errors == []
        assert documents(server, "orders") == last_of_each(3000)
    finally:
        server.discard()


def test_closed_and_blocked_indices_are_named(opensearch, unique_name):
    assert opensearch.request("PUT", f"/{unique_name}")[0] == 200
    assert opensearch.request("PUT", f"/{unique_name}/_settings", {"index.blocks.write": True})[0] == 200
    with pytest.raises(SearchError) as blocked:
        SearchTask(opensearch.url, unique_name).write(rows(unique_name, 3))
    assert blocked.value.code == "search.blocked" and "FORBIDDEN/8/index write" in blocked.value.message
    # What a server sets when a disk is too full.
    settings = {"index.blocks.write": None, "index.blocks.read_only_allow_delete": True}
    assert opensearch.request("PUT", f"/{unique_name}/_settings", settings)[0] == 200
    with pytest.raises(UnavailableError) as full:
        SearchTask(opensearch.url, unique_name, max_retries="1").write(rows(unique_name, 3))
    assert "too full" in full.value.suggestion
    settings = {"index.blocks.read_only_allow_delete": None}
    assert opensearch.request("PUT", f"/{unique_name}/_settings", settings)[0] == 200
    assert opensearch.request("POST", f"/{unique_name}/_close")[0] == 200
    with pytest.raises(SearchError) as closed:
        SearchTask(opensearch.url, unique_name).write(rows(unique_name, 3))
    assert closed.value.code == "search.index" and "Open the index" in closed.value.suggestion


def test_index_that_requires_a_routing_ends_the_run_although_malformed_documents_are_ignored(opensearch, unique_name):
    """The server refuses each document with the status of a malformed one; all of them were left out."""
    mapping = {"mappings": {"_routing": {"required": True}}}
    assert opensearch.request("PUT", f"/{unique_name}", mapping)[0] == 200
    with pytest.raises(SearchError, match="routing is required") as caught:
        SearchTask(opensearch.url, unique_name, behavior_on_malformed_documents="ignore").write(rows(unique_name, 3))
    assert caught.value.code == "search.index" and "_routing.required" in caught.value.suggestion


def test_append_only_index_ends_the_run_although_malformed_documents_are_ignored(opensearch, unique_name):
    """It refuses each document with an id, which is no fault of the documents."""
    assert opensearch.request("PUT", f"/{unique_name}", {"settings": {"index.append_only.enabled": True}})[0] == 200
    ignoring = {"behavior_on_malformed_documents": "ignore", "key_ignore": "true"}
    with pytest.raises(SearchError, match=r"index\.append_only\.enabled") as caught:
        SearchTask(opensearch.url, unique_name, **ignoring).write(rows(unique_name, 3))
    assert caught.value.code == "search.index"
    SearchTask(opensearch.url, unique_name, use_autogenerated_ids="true", **ignoring).write(rows(unique_name, 3))
    assert len(documents(opensearch, unique_name)) == 3


def test_index_whose_metadata_is_blocked_is_not_taken_for_a_missing_one(opensearch, unique_name):
    """`index.blocks.metadata`: not set on the server of all tests, because other indices' aliases are then hidden."""
    reason = "index [x] blocked by: [FORBIDDEN/9/index metadata (api)];"
    blocked = {"error": {"type": "cluster_block_exception", "reason": reason}, "status": 403}
    with search_proxy(opensearch.ports[0], lambda *_: None) as proxy:
        proxy.early_faults = [(403, json.dumps(blocked).encode())]
        with pytest.raises(SearchError, match=f"refused to show {unique_name} .403.: .*FORBIDDEN/9/index metadata"):
            SearchTask(proxy.url, unique_name).write(rows(unique_name, 3))
    assert opensearch.request("GET", f"/{unique_name}")[0] == 404


def test_red_index_is_named_although_the_server_waits_longer_for_shards_than_we_do(opensearch, unique_name):
    make_red(opensearch, unique_name)
    with search_proxy(opensearch.ports[0]) as proxy:
        # Half of the read timeout, which the test does not wait for.
        proxy.rewrite = lambda path: path.replace("timeout=15000ms", "timeout=100ms")
        task = SearchTask(proxy.url, unique_name, max_retries="1", read_timeout_ms="30000")
        with pytest.raises(UnavailableError) as red:
            task.write(rows(unique_name, 3))
    assert red.value.code == "search.retries" and "primary shard is not active" in red.value.message
    assert "The index is red" in red.value.suggestion


def test_red_index_that_recovers_in_the_middle_gets_every_document(opensearch, unique_name):
    make_red(opensearch, unique_name)

    def fault(number, _path):
        if number == 3:
            allocate(opensearch, unique_name, None)

    with search_proxy(opensearch.ports[0], fault) as proxy:
        config = {"read_timeout_ms": "1000", "max_retries": "1000", "max_in_flight_requests": "1"}
        SearchTask(proxy.url, unique_name, **config).write(rows(unique_name))
        assert len(proxy.bodies) >= 3
    assert documents(opensearch, unique_name) == last_of_each()


def make_red(server, index):
    """An index whose shard no node may hold."""
    settings = {"number_of_replicas": 0, "index.routing.allocation.require._name": "nowhere"}
    status, answer = server.request("PUT", f"/{index}?wait_for_active_shards=0", {"settings": settings})
    assert status == 200, answer


def allocate(server, index, node):
    settings = {"index.routing.allocation.require._name": node}
    assert server.request("PUT", f"/{index}/_settings", settings)[0] == 200


def test_index_that_is_read_only_until_a_disk_has_space_again_gets_every_document(opensearch, unique_name):
    assert opensearch.request("PUT", f"/{unique_name}")[0] == 200

    def set_block(value):
        settings = {"index.blocks.read_only_allow_delete": value}
        assert opensearch.request("PUT", f"/{unique_name}/_settings", settings)[0] == 200

    def fault(number, _path):
        if number in (2, 5):
            set_block(True if number == 2 else None)

    with search_proxy(opensearch.ports[0], fault) as proxy:
        SearchTask(proxy.url, unique_name, batch_size="100", max_in_flight_requests="1").write(rows(unique_name))
        assert len(proxy.bodies) >= 9
    assert documents(opensearch, unique_name) == last_of_each()


def test_requests_that_prepare_an_index_are_repeated_too(opensearch, unique_name):
    with search_proxy(opensearch.ports[0]) as proxy:
        busy = (503, b'{"error":{"type":"cluster_manager_not_discovered_exception","reason":null},"status":503}')
        proxy.early_faults = [busy, CUT_BEFORE, LOSE, LOSE, LOSE]
        schema = s.struct(("n", s.INT64))
        log = [record(n, {"n": n}, key=f"k{n}", schema=schema, topic=unique_name) for n in range(3)]
        SearchTask(proxy.url, unique_name, schema_ignore="false").write(log)
        assert proxy.early_faults == []
        proxy.early_faults = [busy] * 3
        with pytest.raises(UnavailableError, match="cluster_manager_not_discovered"):
            SearchTask(proxy.url, unique_name, max_retries="2").write(log)
    assert documents(opensearch, unique_name) == {f"k{n}": {"n": n} for n in range(3)}


def test_second_node_takes_over_when_the_first_is_lost(opensearch, unique_name):
    with search_proxy(opensearch.ports[0]) as other, search_proxy(opensearch.ports[0]) as lost:
        lost.fault = lambda *_: CUT_BEFORE
        lost.early_faults = [CUT_BEFORE] * 1000
        task = SearchTask(f"{lost.url},{other.url}", unique_name, batch_size="50", max_retries="20")
        task.write(rows(unique_name))
        assert lost.requests and other.bodies
    assert documents(opensearch, unique_name) == last_of_each()


def test_lost_answers_to_deletions_change_nothing(opensearch, unique_name):
    """Deletions carry their offset as version, too: repeated ones find it, and late writes find it as well."""
    keys = [f"k{n}" for n in range(40)]
    log = [record(n, {"n": n}, key=key, topic=unique_name) for n, key in enumerate(keys)]
    log += [record(40 + n, None, key=key, topic=unique_name) for n, key in enumerate(keys[:30])]
    log += [record(70 + n, {"n": -n}, key=key, topic=unique_name) for n, key in enumerate(keys[:10])]
    config = {"behavior_on_null_values": "delete", "batch_size": "10", "linger_ms": "600000"}
    with search_proxy(opensearch.ports[0], lambda number, _: LOSE if number in (1, 5, 7, 9) else None) as proxy:
        SearchTask(proxy.url, unique_name, **config).write(log)
        assert any(b'{"delete":' in body for body in proxy.bodies)
    left = {key: {"n": -n} for n, key in enumerate(keys[:10])} | {f"k{n}": {"n": n} for n in range(30, 40)}
    assert documents(opensearch, unique_name) == left
    for part in (log, log[:40], log[40:70]):  # the next run, and requests of a dead one that arrive late
        SearchTask(opensearch.url, unique_name, **config).write(part)
        assert documents(opensearch, unique_name) == left


def test_lost_answers_to_upserts_keep_the_order_of_each_key(opensearch, unique_name):
    log = [record(n, {f"f{n % 3}": n, "n": n}, key=f"k{n % 20}", topic=unique_name) for n in range(600)]
    faults = {2: LOSE, 3: CUT_BEFORE, 6: LOSE, 7: OVERLOAD}
    with search_proxy(opensearch.ports[0], lambda number, _: faults.get(number)) as proxy:
        SearchTask(proxy.url, unique_name, write_method="upsert", batch_size="60").write(log)
    merged: dict[str, dict[str, int]] = {}
    for row in log:
        merged.setdefault(row.key, {}).update(row.value)
    assert documents(opensearch, unique_name) == merged


def item_answer(*items):
    return 200, json.dumps({"errors": True, "items": [{"update": item} for item in items]}).encode()


BUSY = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "queue is full"}}
WRONG = {"status": 400, "error": {"type": "mapper_parsing_exception", "reason": "failed to parse"}}


def test_rejected_update_that_is_repeated_behind_an_earlier_one_is_judged_in_its_last_try(opensearch, unique_name):
    log = [record(n, {"n": n}, key="k", topic=unique_name) for n in range(2)]
    config = {"write_method": "upsert", "errors_tolerance": "all", "linger_ms": "600000"}
    answers = {1: item_answer(BUSY, WRONG)}
    with search_proxy(opensearch.ports[0], lambda number, _: answers.get(number)) as proxy:
        assert SearchTask(proxy.url, unique_name, **config).write(log) == []
    assert documents(opensearch, unique_name) == {"k": {"n": 1}}


def test_updates_that_are_written_behind_one_that_never_is_are_no_progress(opensearch, unique_name):
    log = [record(n, {"n": n}, key="k", topic=unique_name) for n in range(2)]
    config = {"write_method": "upsert", "max_retries": "3", "linger_ms": "600000"}
    answers = (item_answer(BUSY, {"status": 200}), item_answer(BUSY))
    with search_proxy(opensearch.ports[0]) as proxy:
        proxy.fault = lambda *_: answers[proxy.bodies[-1].count(b'{"update":') == 1]
        with pytest.raises(UnavailableError) as caught:
            SearchTask(proxy.url, unique_name, **config).write(log)
    assert caught.value.code == "search.retries" and "queue is full" in caught.value.message


def test_lost_answers_to_a_data_stream_write_nothing_twice(opensearch, unique_name):
    dataset = unique_name.replace("-", "")
    template = {"index_patterns": [f"metrics-{dataset}-*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {
        "key_ignore": "true", "data_stream_type": "metrics", "data_stream_dataset": dataset, "batch_size": "100",
    }  # fmt: skip
    with search_proxy(opensearch.ports[0], lambda number, _: LOSE if number in (1, 4) else None) as proxy:
        SearchTask(proxy.url, "load", **config).write([row.changed(timestamp=row.offset) for row in rows("load")])
    found = documents(opensearch, f"metrics-{dataset}-load")
    assert {name: value["n"] for name, value in found.items()} == {f"load+0+{n}": n for n in range(600)}


def noted(url, topic, log, **config):
    """The notes of a run of one request at a time."""
    settings = {"batch_size": "100", "max_in_flight_requests": "1", "linger_ms": "600000", **config}
    runner = SearchTask(url, topic, **settings).open()
    for row in log:
        runner.put(row)
    runner.complete()
    runner.close()
    return list(runner.notes.sentences)


@pytest.mark.parametrize("moves", [True, False])
def test_documents_that_are_twice_after_a_rollover_are_counted(opensearch, unique_name, moves):
    stream = f"metrics-{unique_name.replace('-', '')}-load"
    template = {"index_patterns": [f"{stream}*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"key_ignore": "true", "data_stream_type": "metrics", "data_stream_dataset": stream.split("-")[1]}

    def fault(number, _path):
        if number == 4 and moves:
            assert opensearch.request("POST", f"/{stream}/_rollover")[0] == 200
        return LOSE if number == 3 else None

    with search_proxy(opensearch.ports[0], fault) as proxy:
        notes = noted(proxy.url, "load", [row.changed(timestamp=row.offset) for row in rows("load")], **config)
    again = [note for note in notes if "sent again because its answer was lost" in note]
    assert [note.partition(" by a")[0] for note in again] == [f"100 records were written to {stream}"] * moves
    assert all("The first was load-0@200." in note for note in again)
    assert opensearch.request("POST", f"/{stream}/_refresh")[0] == 200
    assert opensearch.request("GET", f"/{stream}/_count")[1]["count"] == (700 if moves else 600)


@pytest.mark.parametrize("columnar", [False, True], ids=["records", "columns"])
@pytest.mark.parametrize("moves", [True, False])
def test_documents_that_an_interrupted_run_has_written_before_a_rollover_are_named(
    opensearch, unique_name, moves, columnar
):
    """The next run writes its records again, and a data stream knows the ids of its newest index only."""
    stream = f"metrics-{unique_name.replace('-', '')}-load"
    template = {"index_patterns": [f"{stream}*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    config = {"key_ignore": "true", "data_stream_type": "metrics", "data_stream_dataset": stream.split("-")[1]}
    schema = s.struct(("n", s.INT64))
    log = [record(n, {"n": n}, schema=schema, topic="load").changed(timestamp=n) for n in range(600)]
    assert noted(opensearch.url, "load", log[:100], **config) == []  # Offsets up to 100 are committed.
    interrupted = SearchTask(opensearch.url, "load", **config).open(start=100)
    for row in log[100:200]:
        interrupted.put(row)
    interrupted.complete()
    interrupted.abort()
    if moves:
        assert opensearch.request("POST", f"/{stream}/_rollover")[0] == 200
    runner = SearchTask(opensearch.url, "load", **config).open(start=100)
    if columnar:
        batch = to_columns(log[100:])
        assert runner.put_columns([batch], batch.offsets)
    else:
        for row in log[100:]:
            runner.put(row)
    runner.complete()
    runner.close()
    twice = [note for note in runner.notes.sentences if "so that these documents are there twice" in note]
    assert len(twice) == moves and all(
        f", an earlier index of {stream}, has the document load+0+100," in n for n in twice
    )
    assert opensearch.request("POST", f"/{stream}/_refresh")[0] == 200
    assert opensearch.request("GET", f"/{stream}/_count")[1]["count"] == (700 if moves else 600)
    if moves:  # Nothing was interrupted.
        late = SearchTask(opensearch.url, "load", **config).open(start=600)
        late.put(record(600, {"n": 600}, topic="load").changed(timestamp=600))
        late.complete()
        late.close()
        assert not any("there twice" in note for note in late.notes.sentences)


@pytest.mark.parametrize(("first", "second"), [("a", "b"), ("b", "a")], ids=["next", "back"])
def test_documents_that_an_interrupted_run_has_written_before_an_alias_was_moved_are_named(
    opensearch, unique_name, first, second
):
    alias, config = f"{unique_name}-alias", {"key_ignore": "true"}

    def write_to(name: str, *, before: str = "") -> None:
        actions = [{"add": {"index": f"{unique_name}-{name}", "alias": alias, "is_write_index": True}}]
        actions += [{"add": {"index": f"{unique_name}-{before}", "alias": alias, "is_write_index": False}}] * bool(
            before
        )
        assert opensearch.request("POST", "/_aliases", {"actions": actions})[0] == 200

    def notes(*log):
        return [note for note in noted(opensearch.url, alias, log, **config) if "there twice" in note]

    for name in (first, second):
        assert opensearch.request("PUT", f"/{unique_name}-{name}")[0] == 200
    write_to(first)
    row = record(0, {"n": 0}, topic=alias)
    assert notes(row) == []
    write_to(second, before=first)
    assert notes(record(1, {"n": 1}, topic=alias)) == []  # Nothing was interrupted.
    (note,) = notes(row)
    assert note.startswith(f"{unique_name}-{first}, an earlier index of {alias}, has the document {alias}+0+0,")
    assert notes(record(1, {"n": 1}, topic=alias)) == []


@pytest.mark.parametrize("answer", [LOSE, OVERLOAD], ids=["lost", "overload"])
def test_documents_with_ids_of_the_server_that_may_be_twice_are_counted(opensearch, unique_name, answer):
    config = {"key_ignore": "true", "use_autogenerated_ids": "true"}
    with search_proxy(opensearch.ports[0], lambda number, _: answer if number == 2 else None) as proxy:
        notes = noted(proxy.url, unique_name, rows(unique_name, 300), **config)
    is_lost = answer is LOSE
    assert [note.partition(" by a")[0] for note in notes] == [f"100 records were written to {unique_name}"] * is_lost
    assert len(documents(opensearch, unique_name)) == (400 if is_lost else 300)


def test_repeated_deletions_do_not_claim_that_there_was_nothing(opensearch, unique_name):
    log = [record(n, {"n": n}, key=f"k{n}", topic=unique_name) for n in range(100)]
    log += [record(100 + n, None, key=f"k{n}", topic=unique_name) for n in range(110)]
    config = {"write_method": "upsert", "behavior_on_null_values": "delete"}
    with search_proxy(opensearch.ports[0], lambda number, _: LOSE if number == 2 else None) as proxy:
        found, again = sorted(noted(proxy.url, unique_name, log, **config))
    assert found.startswith("10 records were without value, and deleted no document")
    assert again.startswith("100 records were without value, and sent again because an answer was lost")
    assert documents(opensearch, unique_name) == {}


def test_repeated_versions_of_a_header_are_not_called_older(opensearch, unique_name):
    log = [
        record(n, {"n": n}, key=f"k{n}", topic=unique_name).changed(headers=(Header("v", None, 7),)) for n in range(150)
    ]
    with search_proxy(opensearch.ports[0], lambda number, _: LOSE if number == 2 else None) as proxy:
        (note,) = noted(proxy.url, unique_name, log, external_version_header="v")
    assert note.startswith(f"50 records were not written, because {unique_name} has a document of the same key and ver")


def test_refused_login_is_named_without_secrets_and_credentials_are_sent(opensearch, unique_name):
    denied = (401, b'{"error":{"type":"security_exception","reason":"missing authentication"},"status":401}')
    with search_proxy(opensearch.ports[0], lambda *_: denied) as proxy:
        task = SearchTask(proxy.url, unique_name, connection_username="joe", connection_password="secret")
        with pytest.raises(AccessError) as caught:
            task.write(rows(unique_name, 3))
        assert proxy.headers[-1]["authorization"] == "Basic am9lOnNlY3JldA=="
        with pytest.raises(AccessError):
            SearchTask(proxy.url, unique_name, connection_api_key="a2V5").write(rows(unique_name, 3))
        assert proxy.headers[-1]["authorization"] == "ApiKey a2V5"
    assert "secret" not in str(caught.value) and caught.value.code == "search.denied"


def test_document_that_no_request_can_hold_is_found_among_others(opensearch, unique_name):
    """A request that is refused as a whole: the server names no document."""
    too_long = (400, b'{"error":{"type":"action_request_validation_exception","reason":"id is too long"},"status":400}')

    with search_proxy(opensearch.ports[0], lambda *_: None) as proxy:
        proxy.fault = lambda *_: too_long if b'"n":13}' in proxy.bodies[-1] else None
        task = SearchTask(proxy.url, unique_name, errors_tolerance="all", max_in_flight_requests="1")
        letters = task.write([record(n, {"n": n}, key=str(n), topic=unique_name) for n in range(40)])
    assert [offset for offset, _ in letters] == [13] and "id is too long" in letters[0][1]
    assert sorted(map(int, documents(opensearch, unique_name))) == [n for n in range(40) if n != 13]
