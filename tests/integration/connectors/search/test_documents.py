"""What a run, or a task, leaves in a real index: documents field by field, ids, versions, deletions, data streams."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from confluent_kafka import Consumer, TopicPartition

from airflow_connect.api import schema as s
from airflow_connect.errors import DataError, SearchError
from tests.devstack.opensearch import OpenSearchServer
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents, search_sink
from tests.support.servers.search_proxy import search_proxy

pytestmark = pytest.mark.integration


def test_run_copies_every_field_of_every_record_and_the_next_run_only_what_is_new(
    kafka, opensearch, make_topic, produce
):
    topic = make_topic(partitions=2)
    values = [{"n": n, "text": f'"quotes" and ü {n}', "more": {"list": [0.5, None, n / 7]}} for n in range(3000)]
    produce(topic, [(n % 2, None, json.dumps(value)) for n, value in enumerate(values)])
    sink = search_sink(kafka, opensearch, topic)

    report = sink.run()

    wanted = {f"{topic}+{n % 2}+{n // 2}": value for n, value in enumerate(values)}
    assert report.records == len(values)
    assert sink.documents() == wanted
    produce(topic, [(0, None, '{"n": 3000}')])
    assert sink.run().records == 1
    assert sink.documents() == wanted | {f"{topic}+0+1500": {"n": 3000}}


def test_index_and_mapping_are_created_from_the_schema_of_the_first_record(opensearch, unique_name):
    topic = f"Orders.{unique_name}"
    price = s.decimal(2)
    schema = s.struct(
        ("id", s.INT64), ("name", s.STRING), ("price", price), ("seen", s.timestamp()), ("ok", s.OPTIONAL_BOOLEAN),
        ("tags", s.array(s.STRING)), ("counts", s.map_of(s.STRING, s.INT32)), ("blob", s.BYTES),
    )  # fmt: skip
    value = {
        "id": 1, "name": "a", "price": Decimal("9.50"), "seen": 1_700_000_000_000, "ok": None, "tags": ["x", "y"],
        "counts": {"a": 1}, "blob": b"\x01",
    }  # fmt: skip
    task = SearchTask(opensearch.url, topic, schema_ignore="false")
    task.write([record(0, value, key="k1", schema=schema, topic=topic)])

    index = topic.lower()
    assert documents(opensearch, index) == {
        "k1": {**value, "price": 9.5, "blob": "AQ=="},
    }
    mapping = opensearch.request("GET", f"/{index}/_mapping")[1][index]["mappings"]["properties"]
    assert {name: field["type"] for name, field in mapping.items() if name != "counts"} == {
        "id": "long", "name": "text", "price": "double", "seen": "date", "ok": "boolean", "tags": "text",
        "blob": "binary",
    }  # fmt: skip
    assert mapping["name"]["fields"]["keyword"] == {"type": "keyword", "ignore_above": 256}


def test_records_without_schema_and_without_mapping_say_what_to_set(opensearch, unique_name):
    task = SearchTask(opensearch.url, unique_name, schema_ignore="false")
    with pytest.raises(SearchError) as caught:
        task.write([record(0, {"a": 1}, key="k", topic=unique_name)])
    assert caught.value.code == "search.no_schema" and "schema.ignore=true" in caught.value.suggestion


def test_late_and_repeated_writes_and_deletions_change_nothing(opensearch, unique_name):
    """Versions are offsets: whoever comes late finds a newer one, deleted documents included."""
    log = [
        record(0, {"v": 0}, key="a", topic=unique_name),
        record(1, {"v": 1}, key="b", topic=unique_name),
        record(2, {"v": 2}, key="a", topic=unique_name),
        record(3, None, key="b", topic=unique_name),
    ]

    def write(rows):
        SearchTask(opensearch.url, unique_name, behavior_on_null_values="delete").write(rows)

    write(log)
    assert documents(opensearch, unique_name) == {"a": {"v": 2}}
    write(log)
    write(log[:2])  # a dead run whose request arrives late
    write(log[1:2])
    assert documents(opensearch, unique_name) == {"a": {"v": 2}}
    settings = opensearch.request("GET", f"/{unique_name}/_settings")[1][unique_name]["settings"]["index"]
    assert settings["gc_deletes"] == "1h"


def test_upsert_adds_fields_in_the_order_of_the_log(opensearch, unique_name):
    rows = [record(n, {f"f{n % 3}": n}, key=f"k{n % 2}", topic=unique_name) for n in range(400)]
    SearchTask(opensearch.url, unique_name, write_method="upsert", batch_size="20").write(rows)
    assert documents(opensearch, unique_name) == {
        "k0": {"f0": 396, "f1": 394, "f2": 398},
        "k1": {"f0": 399, "f1": 397, "f2": 395},
    }


def test_data_stream_takes_each_record_once_with_its_timestamp(opensearch, unique_name):
    dataset = unique_name.replace("-", "")  # The name of a dataset has no hyphens.
    template = {"index_patterns": [f"logs-{dataset}-*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    schema = s.struct(("n", s.INT64))
    rows = [
        record(n, {"n": n}, schema=schema, topic="Clicks").changed(timestamp=1_700_000_000_000 + n) for n in range(5)
    ]
    config = {
        "key_ignore": "true", "data_stream_type": "logs", "data_stream_dataset": dataset,
    }  # fmt: skip

    for _ in range(2):
        SearchTask(opensearch.url, "Clicks", **config).write(rows)

    assert documents(opensearch, f"logs-{dataset}-clicks") == {
        f"Clicks+0+{n}": {"@timestamp": 1_700_000_000_000 + n, "n": n} for n in range(5)
    }
    own = SearchTask(opensearch.url, "Clicks", **config, data_stream_timestamp_field="missing,at")
    half = "\ud83d"  # Of a surrogate pair: it ended the run, whatever errors.tolerance was.
    own.write([record(9, {"n": 9, "at": "2026-01-01T00:00:00Z", "text": half}, topic="Clicks")])
    found = documents(opensearch, f"logs-{dataset}-clicks")["Clicks+0+9"]
    assert (found["@timestamp"], found["text"]) == ("2026-01-01T00:00:00Z", half)


def test_data_stream_without_a_template_says_what_is_missing(opensearch, unique_name):
    task = SearchTask(
        opensearch.url, unique_name, key_ignore="true", data_stream_type="metrics", data_stream_dataset="none_here"
    )
    with pytest.raises(SearchError) as caught:
        task.write([record(0, {"a": 1}, topic=unique_name)])
    assert caught.value.code == "search.create" and "template" in caught.value.suggestion


def test_ids_that_the_server_chooses_write_a_record_again(opensearch, unique_name):
    for _ in range(2):
        SearchTask(opensearch.url, unique_name, use_autogenerated_ids="true").write(
            [record(0, {"n": 1}, topic=unique_name)]
        )
    assert list(documents(opensearch, unique_name).values()) == [{"n": 1}, {"n": 1}]


def test_alias_must_exist_and_is_written_through(opensearch, unique_name):
    config = {
        "external_resource_usage": "alias_index", "topic_to_external_resource_mapping": f"t:{unique_name}",
        "key_ignore": "true",
    }  # fmt: skip
    with pytest.raises(SearchError) as caught:
        SearchTask(opensearch.url, "t", **config).write([record(0, {"n": 1}, topic="t")])
    assert caught.value.code == "search.missing"
    index = f"{unique_name}-1"
    assert opensearch.request("PUT", f"/{index}", {"aliases": {unique_name: {}}})[0] == 200
    SearchTask(opensearch.url, "t", **config).write([record(0, {"n": 1}, topic="t")])
    assert documents(opensearch, index) == {"t+0+0": {"n": 1}}


@pytest.mark.parametrize("usage", ["", "index"])
def test_alias_that_is_removed_during_a_run_is_not_replaced_by_an_index(opensearch, unique_name, usage):
    """Such as by whoever moves it with two requests, or between them: the topic has the name of the alias."""
    index = f"{unique_name}-1"
    assert opensearch.request("PUT", f"/{index}", {"aliases": {unique_name: {}}})[0] == 200
    mapped = {"topic_to_external_resource_mapping": f"{unique_name}:{unique_name}"}
    more = {"external_resource_usage": usage, **mapped} if usage else {}

    def removed(number, _path):
        if number == 2:
            assert opensearch.request("DELETE", f"/{index}/_alias/{unique_name}")[0] == 200

    with search_proxy(opensearch.ports[0], removed) as proxy:
        task = SearchTask(proxy.url, unique_name, key_ignore="true", batch_size="1", max_in_flight_requests="1", **more)
        with pytest.raises(SearchError, match="is not an alias"):
            task.write([record(n, {"n": n}, topic=unique_name) for n in range(2)])
    assert opensearch.request("GET", f"/{unique_name}")[0] == 404
    assert documents(opensearch, index) == {f"{unique_name}+0+0": {"n": 0}}


@pytest.mark.parametrize("usage", ["datastream", "alias_datastream"])
def test_data_streams_with_names_of_their_own_get_the_records_of_their_topics(opensearch, unique_name, usage):
    """OpenSearch has no aliases of data streams (Elasticsearch has), so these are aliases of indices."""
    streams = [f"{unique_name}-{n}" for n in range(2)]
    names = streams
    if usage == "datastream":
        template = {"index_patterns": [f"{unique_name}-*"], "data_stream": {}, "priority": 500}
        assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
        made = [opensearch.request("PUT", f"/_data_stream/{stream}") for stream in streams]
    else:
        names = [f"alias-{stream}" for stream in streams]
        made = [
            opensearch.request("PUT", f"/{stream}", {"aliases": {name: {}}})
            for stream, name in zip(streams, names, strict=True)
        ]
    assert [status for status, _ in made] == [200, 200]
    config = {
        "external_resource_usage": usage, "key_ignore": "true", "errors_tolerance": "all",
        "topic_to_external_resource_mapping": f"a:{names[0]},b:{names[1]}",
    }  # fmt: skip
    # As RegexRouter leaves them: the topic is another one, the original topic is not.
    log = [record(n, {"n": n}, topic="a").changed(topic="abc"[n % 3], timestamp=n) for n in range(9)]
    for _ in range(2):
        letters = SearchTask(opensearch.url, "a", **config).write(log)
    for first, stream in enumerate(streams):
        numbers = range(first, 9, 3)
        assert documents(opensearch, stream) == {f"a+0+{n}": {"@timestamp": n, "n": n} for n in numbers}
    assert [offset for offset, _ in letters] == [2, 5, 8]
    assert "topic c is not in topic.to.external.resource.mapping" in letters[0][1]


@pytest.mark.parametrize(("behavior", "left"), [("ignore", "abd"), ("delete", "ad"), ("fail", "abd")])
@pytest.mark.parametrize("write_method", ["insert", "upsert"])
def test_null_values_are_ignored_deleted_or_reported(opensearch, unique_name, behavior, left, write_method):
    log = [record(n, {"n": n}, key=key, topic=unique_name) for n, key in enumerate("abd")]
    log += [record(3, None, key="b", topic=unique_name), record(4, None, key="missing", topic=unique_name)]
    config = {"behavior_on_null_values": behavior, "write_method": write_method}
    letters = SearchTask(opensearch.url, unique_name, **config, errors_tolerance="all").write(log)
    assert "".join(sorted(documents(opensearch, unique_name))) == left
    assert [offset for offset, _ in letters] == ([3, 4] if behavior == "fail" else [])
    if behavior == "fail":
        assert "behavior.on.null.values=ignore" in letters[0][1]
        with pytest.raises(DataError, match="has no value"):
            SearchTask(opensearch.url, unique_name, **config).write(log)


def test_null_values_delete_nothing_if_ids_are_not_keys(opensearch, unique_name):
    log = [record(0, {"n": 0}, key="a", topic=unique_name), record(1, None, key="a", topic=unique_name)]
    config = {"behavior_on_null_values": "delete", "key_ignore": "true"}
    assert SearchTask(opensearch.url, unique_name, **config, errors_tolerance="all").write(log) == []
    assert documents(opensearch, unique_name) == {f"{unique_name}+0+0": {"n": 0}}


def test_warning_about_a_rejected_document_has_the_place_and_the_reason(opensearch, unique_name, caplog):
    mapping = {"mappings": {"properties": {"n": {"type": "long"}}}}
    assert opensearch.request("PUT", f"/{unique_name}", mapping)[0] == 200
    for behavior in ("ignore", "warn"):
        task = SearchTask(opensearch.url, unique_name, behavior_on_malformed_documents=behavior)
        task.write([record(7, {"n": "no number"}, key="k", topic=unique_name)])
    told = [entry.getMessage() for entry in caplog.records if "connectors.search" in entry.name]
    assert len(told) == 1
    assert f"{unique_name}-0@7" in told[0] and "failed to parse field [n] of type [long]" in told[0]


@pytest.mark.parametrize("behavior", ["ignore", "warn", "fail"])
def test_rejected_documents_carry_the_reason_of_the_server(opensearch: OpenSearchServer, unique_name, behavior):
    mapping = {"mappings": {"properties": {"n": {"type": "long"}}}}
    assert opensearch.request("PUT", f"/{unique_name}", mapping)[0] == 200
    rows = [record(n, {"n": "no number" if n == 3 else n}, key=str(n), topic=unique_name) for n in range(6)]
    config = {"behavior_on_malformed_documents": behavior}
    if behavior == "fail":
        with pytest.raises(DataError, match="mapper_parsing_exception"):
            SearchTask(opensearch.url, unique_name, **config).write(rows)
        letters = SearchTask(opensearch.url, unique_name, errors_tolerance="all", **config).write(rows)
        assert [offset for offset, _ in letters] == [3]
        assert "failed to parse field [n] of type [long]" in letters[0][1]
    else:
        assert SearchTask(opensearch.url, unique_name, **config).write(rows) == []
    assert sorted(documents(opensearch, unique_name)) == ["0", "1", "2", "4", "5"]


def test_dead_letter_queue_gets_what_the_server_rejects_from_columns_too(kafka, opensearch, make_topic, produce):
    topic, queue = make_topic(), make_topic()
    produce(topic, [(0, None, json.dumps({"n": "x" if n in (7, 2500) else n})) for n in range(3000)])
    sink = search_sink(
        kafka, opensearch, topic, errors_tolerance="all", errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_context_headers_enable="true", errors_deadletterqueue_topic_replication_factor="1",
    )  # fmt: skip
    properties = {"properties": {"n": {"type": "long"}}}
    assert opensearch.request("PUT", f"/{sink.bucket}/_mapping", properties)[0] == 200

    report = sink.run()

    assert (report.records, report.dead_lettered) == (2998, 2)
    assert len(sink.documents()) == 2998
    letters = letters_of(kafka.bootstrap, queue, 2)
    assert [value for value, _ in letters] == [b'{"n": "x"}'] * 2
    assert all(b"mapper_parsing_exception" in headers["__connect.errors.exception.message"] for _, headers in letters)


def test_dead_letter_queue_gets_what_is_dropped_without_a_failure(kafka, opensearch, make_topic, produce):
    """`ignore` drops documents even if no error is tolerated; the queue gets them nevertheless."""
    topic, queue = make_topic(), make_topic()
    produce(topic, [(0, None, json.dumps({"n": "x" if n == 7 else n})) for n in range(20)])
    sink = search_sink(
        kafka, opensearch, topic, behavior_on_malformed_documents="ignore", errors_deadletterqueue_topic_name=queue,
        errors_deadletterqueue_context_headers_enable="true", errors_deadletterqueue_topic_replication_factor="1",
    )  # fmt: skip
    properties = {"properties": {"n": {"type": "long"}}}
    assert opensearch.request("PUT", f"/{sink.bucket}/_mapping", properties)[0] == 200
    report = sink.run()
    assert report.status == "done" and len(sink.documents()) == 19
    ((value, headers),) = letters_of(kafka.bootstrap, queue, 1)
    assert value == b'{"n": "x"}'
    assert b"mapper_parsing_exception" in headers["__connect.errors.exception.message"]


def letters_of(bootstrap, topic, count):
    """Value and headers of so many records."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": topic, "auto.offset.reset": "earliest"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = consumer.consume(count, timeout=60)
        return [(message.value(), dict(message.headers() or ())) for message in found]
    finally:
        consumer.close()


def test_too_many_fields_are_named(opensearch, unique_name):
    settings = {"settings": {"index.mapping.total_fields.limit": 5}}
    assert opensearch.request("PUT", f"/{unique_name}", settings)[0] == 200
    value = {f"f{n}": n for n in range(20)}
    with pytest.raises(DataError) as caught:
        SearchTask(opensearch.url, unique_name).write([record(0, value, key="k", topic=unique_name)])
    assert "too many fields" in str(caught.value) and "total_fields.limit" in str(caught.value)


def test_schema_with_too_many_fields_is_named_before_the_first_document(opensearch, unique_name):
    settings = {"settings": {"index.mapping.total_fields.limit": 5}}
    assert opensearch.request("PUT", f"/{unique_name}", settings)[0] == 200
    schema = s.struct(*((f"f{n}", s.INT32) for n in range(20)))
    row = record(0, {f"f{n}": n for n in range(20)}, key="k", schema=schema, topic=unique_name)
    with pytest.raises(SearchError) as caught:
        SearchTask(opensearch.url, unique_name, schema_ignore="false").write([row])
    assert caught.value.code == "search.mapping_limit" and "Limit of total fields [5]" in caught.value.message


def test_error_of_a_value_that_is_no_object_does_not_have_the_value(opensearch, unique_name):
    task = SearchTask(opensearch.url, unique_name, errors_tolerance="all")
    found = task.write([record(n, v, key="k", topic=unique_name) for n, v in enumerate(["secret", 4711, [8], True])])
    messages = [message for _, message in found]
    kinds = ["a text", "a number", "an array", "a boolean"]
    assert [message.split(" is not a JSON object, but ")[1].split(".")[0] for message in messages] == kinds


@pytest.mark.parametrize("write_method", ["insert", "upsert"])
def test_deletions_that_find_no_document_are_counted(opensearch, unique_name, write_method):
    task = SearchTask(opensearch.url, unique_name, behavior_on_null_values="delete", write_method=write_method)
    runner = task.open()
    for offset, (key, value) in enumerate([("a", {"v": 1}), ("a", None), ("b", None), ("c", None)]):
        runner.put(record(offset, value, key=key, topic=unique_name))
    runner.complete()
    (note,) = runner.notes.sentences
    assert note.startswith(f"2 records were without value, and deleted no document of {unique_name}:")
    assert f"The first was {unique_name}-0@2." in note and documents(opensearch, unique_name) == {}
    runner.close()


@pytest.mark.parametrize("start", [0, 7])
def test_index_that_is_created_in_the_middle_of_a_topic_is_named(opensearch, unique_name, start):
    """It may have been deleted between two runs: the offsets of what it held are still committed."""
    runner = SearchTask(opensearch.url, unique_name).open(start=start)
    runner.put(record(7, {"v": 1}, key="a", topic=unique_name))
    runner.complete()
    said = [note for note in runner.notes.sentences if note.startswith(f"{unique_name} was missing and was created.")]
    assert len(said) == (1 if start else 0)
    assert not start or f"This run writes {unique_name}-0 from offset 7 on." in said[0]
    runner.close()


def test_key_with_half_of_a_surrogate_pair_is_a_dead_letter(opensearch, unique_name):
    """It ended the run with a TypeError of the JSON writer."""
    rows = [record(n, {"v": n}, key=key, topic=unique_name) for n, key in enumerate(["a\ud800", "b"])]
    ((offset, reason),) = SearchTask(opensearch.url, unique_name, errors_tolerance="all").write(rows)
    assert offset == 0 and "has half of a surrogate pair" in reason
    assert documents(opensearch, unique_name) == {"b": {"v": 1}}
