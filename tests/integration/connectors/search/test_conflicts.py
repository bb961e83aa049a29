"""Documents that the server refuses because it has one already: the report counts them and says what they mean."""

from __future__ import annotations

import json
import socket
import threading

import pytest

from airflow_connect.api import schema as s
from airflow_connect.converters.json.schema import schema_to_json
from airflow_connect.errors import UnavailableError
from tests.support.copies.jdbc_sink_tasks import record
from tests.support.copies.search_sink import SearchTask, documents, search_sink
from tests.support.kafka_data import add_partitions, create_topic, delete_topic

pytestmark = pytest.mark.integration


def no_default(_, default):
    return json.dumps(default)


def users(values):
    return [(partition, f"k{n}", json.dumps({"v": value})) for partition, n, value in values]


@pytest.mark.parametrize("other", ["k11", "ü"], ids=["in columns", "record by record"])
def test_newer_record_in_a_partition_that_was_added_is_left_out_with_a_note(
    kafka, opensearch, make_topic, produce, other
):
    """Its offset is lower than the version of the document: the server takes it for an old one."""
    topic = make_topic(partitions=1)
    produce(topic, users((0, n % 10, n) for n in range(100)))
    sink = search_sink(kafka, opensearch, topic, key_ignore="false")
    sink.config["key.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    assert sink.run().records == 100
    add_partitions(kafka.bootstrap, topic, 2)
    produce(topic, [(1, "k3", '{"v": 1000}'), (1, other, '{"v": 1001}')])

    report = sink.run()

    assert (report.records, report.filtered) == (1, 1)
    assert sink.documents()["k3"] == {"v": 93} and sink.documents()[other] == {"v": 1001}
    (note,) = [note for note in report.notes if "NOT written" in note]
    assert note.startswith(f"1 record was NOT written to {sink.bucket}")
    assert f"{topic}-1@0" in note and "version 93" in note and "more partitions" in note
    (before,) = [note for note in report.notes if note.startswith(f"Topic {topic} has 2 partitions, and had 1")]
    assert "One with a higher offset may replace a newer document" in before
    produce(topic, [(1, "k4", '{"v": 1002}')])
    assert not [note for note in sink.run().notes if note.startswith("Topic ")]


def test_changes_of_a_topic_are_named_once_also_by_a_run_that_copies_nothing(kafka, opensearch, make_topic, produce):
    topic = make_topic(partitions=1)
    produce(topic, users((0, n, n) for n in range(5)))
    sink = search_sink(kafka, opensearch, topic, key_ignore="false")
    sink.config["key.converter"] = "org.apache.kafka.connect.storage.StringConverter"
    sink.run()
    add_partitions(kafka.bootstrap, topic, 2)
    empty = sink.run()
    assert empty.status == "empty"
    assert [note for note in empty.notes if note.startswith(f"Topic {topic} has 2 partitions, and had 1")]
    produce(topic, [(1, "new", '{"v": 1000}')])
    assert not [note for note in sink.run().notes if note.startswith("Topic ")]

    delete_topic(kafka.bootstrap, topic)
    create_topic(kafka.bootstrap, topic)
    produce(topic, users([(0, 4, 1000)]))
    report = sink.run(offsets_out_of_range="earliest")

    assert (report.records, report.filtered) == (0, 1)
    created = f"Topic {topic} was deleted and created again since the last commit (partitions before: 2, now: 1)"
    (note,) = [note for note in report.notes if note.startswith(created)]
    assert "is below the version of an older document" in note


JSON_CONVERTER = "org.apache.kafka.connect.json.JsonConverter"
IDS = {
    "value.converter": JSON_CONVERTER,
    "value.converter.schema.content": schema_to_json(s.struct(("id", s.STRING), ("v", s.INT64)), no_default),
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "id",
}
OF_VALUES = {
    **IDS,
    "key.converter": "org.apache.kafka.connect.storage.StringConverter",
    "transforms": "key,id",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "id",
}
OF_KEYS = {
    **IDS,
    "key.converter": JSON_CONVERTER,
    "key.converter.schema.content": schema_to_json(s.struct(("id", s.STRING), ("shop", s.INT64)), no_default),
    "transforms": "id",
}


@pytest.mark.parametrize(
    ("ids", "more", "why", "follows"),
    [
        (OF_VALUES, {}, "have no keys, so that", "a newer record may not be written"),
        (OF_KEYS, {}, "have different keys in Kafka, such as", "a newer record may not be written"),
        (OF_VALUES, {"write_method": "upsert"}, "have no keys, so that", "fields of an older record may replace"),
    ],
    ids=["no keys", "longer keys", "upserts"],
)
def test_documents_whose_records_may_be_in_any_partition_are_named(
    kafka, opensearch, make_topic, produce, ids, more, why, follows
):
    """With ids that a transformation makes, an old record replaced a newer one of another partition without a word."""

    def spread(partitions, shops):
        topic = make_topic(partitions)
        names = [f"k{n % 3}" for n in range(600)]
        keys = [json.dumps({"id": name, "shop": n % shops}) for n, name in enumerate(names)]
        produce(
            topic,
            [(0, keys[n] if ids is OF_KEYS else None, f'{{"id": "{name}", "v": 1}}') for n, name in enumerate(names)],
        )
        sink = search_sink(kafka, opensearch, topic, key_ignore="false", **more)
        sink.config |= ids
        report = sink.run()
        assert report.records == 600
        return [note for note in report.notes if note.startswith(f"Records of {topic} ")]

    (note,) = spread(2, 2)
    assert why in note and "those of one document may be in any of its 2 partitions" in note and follows in note
    assert spread(1, 2) == []
    if ids is OF_KEYS:
        assert spread(2, 1) == []


@pytest.mark.parametrize("more", [{}, {"write_method": "upsert"}], ids=["columns", "upserts"])
def test_documents_whose_records_are_in_several_partitions_are_counted(kafka, opensearch, make_topic, produce, more):
    """Two tasks: neither sees that the other has a key, and no answer of the server tells."""
    topic = make_topic(2)
    for partition, names in enumerate((range(600), range(597, 1200))):
        produce(topic, [(partition, f"k{n}", f'{{"id": "a", "v": {n}}}') for n in names])
    sink = search_sink(kafka, opensearch, topic, key_ignore="false", tasks_max=2, **more)
    sink.config |= IDS
    (note,) = [note for note in sink.run().notes if "are in several partitions" in note]
    assert f"of {topic} for one document are in several partitions, which is so for 3 of 1,200 keys: {topic}-0@" in note


def test_repeated_copy_says_that_it_has_changed_nothing(opensearch, unique_name):
    rows = [record(n, {"v": n}, key=f"k{n % 2}", topic=unique_name) for n in range(6)]
    task = SearchTask(opensearch.url, unique_name)
    task.write(rows)
    runner = task.open()
    for row in rows:
        runner.put(row)
    runner.complete()
    runner.close()
    repeated, older = sorted(runner.notes.sentences)
    assert "2 records were not written again" in repeated and "A repeated copy changes no document" in repeated
    assert (
        older.startswith("4 records were not written, because a record of the same key with a higher")
        and f"{unique_name}-0@0" in older
    )
    assert documents(opensearch, unique_name) == {"k0": {"v": 4}, "k1": {"v": 5}}


@pytest.mark.parametrize("change", ["delete", "update"])
def test_document_that_another_program_has_changed_is_not_only_called_repeated(opensearch, unique_name, change):
    """Its version is counted up: the record of the next offset is refused as if it had been written before."""
    SearchTask(opensearch.url, unique_name).write([record(7, {"v": 7}, key="k", topic=unique_name)])
    method, path, body = ("DELETE", "_doc/k", None) if change == "delete" else ("POST", "_update/k", {"doc": {"t": 1}})
    assert opensearch.request(method, f"/{unique_name}/{path}", body)[0] == 200
    runner = SearchTask(opensearch.url, unique_name).open(start=8)
    runner.put(record(8, {"v": 8}, key="k", topic=unique_name))
    runner.complete()
    runner.close()
    assert documents(opensearch, unique_name) == ({} if change == "delete" else {"k": {"v": 7, "t": 1}})
    (note,) = [note for note in runner.notes.sentences if "not written again" in note]
    assert "or another program changes or deletes its documents" in note and f"{unique_name}-0@8" in note


def test_repeated_copy_of_documents_with_long_ids_says_the_same(opensearch, unique_name):
    """The server's reason was cut within the id: each run failed after some tries."""
    keys = [
        "k" * 512,
        "ü" * 256,
        "[x]: version conflict, current version [9] is higher or equal to the one provided [9]",
    ]
    rows = [record(n, {"v": n}, key=key, topic=unique_name) for n, key in enumerate(keys)]
    task = SearchTask(opensearch.url, unique_name, max_retries="1")
    task.write(rows)
    runner = task.open()
    for row in rows:
        runner.put(row)
    runner.complete()
    runner.close()
    (note,) = runner.notes.sentences
    assert "3 records were not written again" in note
    assert sorted(document["v"] for document in documents(opensearch, unique_name).values()) == [0, 1, 2]


def test_data_stream_with_keys_as_ids_keeps_the_first_record_and_counts_the_others(opensearch, unique_name):
    dataset = unique_name.replace("-", "")
    template = {"index_patterns": [f"logs-{dataset}-*"], "data_stream": {}, "priority": 500}
    assert opensearch.request("PUT", f"/_index_template/{unique_name}", template)[0] == 200
    schema = s.struct(("n", s.INT64))
    plain = [record(n, {"n": n}, key=f"k{n % 3}", schema=schema, topic="clicks") for n in range(30)]
    rows = [row.changed(timestamp=1_700_000_000_000) for row in plain]
    config = {"data_stream_type": "logs", "data_stream_dataset": dataset, "batch_size": "2"}
    task = SearchTask(opensearch.url, "clicks", **config, max_in_flight_requests="5")
    runner = task.open()
    for row in rows:
        runner.put(row)
    runner.complete()
    report = runner.report(runner.ranges[0].topic_partition, 30, end=30, reason="")
    runner.close()
    found = {name: value["n"] for name, value in documents(opensearch, f"logs-{dataset}-clicks").items()}
    assert found == {"k0": 0, "k1": 1, "k2": 2}
    assert (report.written, report.filtered) == (3, 27)
    (note,) = runner.notes.sentences
    assert note.startswith("27 records were NOT written") and "key.ignore=true" in note


def test_task_whose_requests_are_never_answered_ends_although_answers_may_take_any_time(unique_name):
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        config = {"read_timeout_ms": "0", "flush_timeout_ms": "1000", "max_retries": "0"}
        task = SearchTask(address, unique_name, **config)
        ended: list[BaseException] = []

        def write() -> None:
            try:
                task.write([record(0, {"a": 1}, key="k", topic=unique_name)])
            except UnavailableError as error:
                ended.append(error)

        thread = threading.Thread(target=write, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive()
    assert "did not answer" in str(ended[0])


@pytest.mark.parametrize("other", ["k11", "ü"], ids=["in columns", "record by record"])
def test_index_that_two_topics_fill_by_key_is_named(kafka, opensearch, make_topic, produce, other):
    """The second record of a key has the version of the first one, and the server takes it for that one."""
    first, second = sorted((make_topic(), make_topic()))
    for topic in (first, second):
        produce(topic, [(0, "k1", json.dumps({"of": topic})), (0, other, json.dumps({"of": topic}))])
    sink = search_sink(kafka, opensearch, f"{first},{second}", key_ignore="false")
    sink.config |= {
        "key.converter": "org.apache.kafka.connect.storage.StringConverter",
        "external.resource.usage": "DISABLED",
        "topic.to.external.resource.mapping": None,
        "transforms": "name",
        "transforms.name.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.name.regex": ".*",
        "transforms.name.replacement": sink.bucket,
    }
    named = f"{sink.bucket} is filled from 2 topics ({first}, {second})"

    report = sink.run()

    assert len(sink.documents()) == 2 and any(note.startswith(named) for note in report.notes), report.notes
    produce(first, [(0, "k3", "{}")])
    assert any(note.startswith(named) for note in sink.run().notes)  # also if only one of them has new records
    produce(first, [(0, "k4", "{}")])
    assert not any("is filled from" in note for note in sink.run(topics=first).notes)
