"""Runs whose documents have ids or versions of another kind than those of before, or go to other targets."""

from __future__ import annotations

import json

import pytest

from tests.support.copies.search_sink import documents, search_sink
from tests.support.kafka_data import TopicProducer, create_topic

pytestmark = pytest.mark.integration

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


def named(report, words) -> list[str]:
    return [note for note in report.notes if words in note]


def rows(value, count=5, keys=5, timestamp_ms=0, headers=()):
    return [(0, f"k{n % keys}", json.dumps({"v": value}), timestamp_ms, list(headers)) for n in range(count)]


def test_header_that_the_versions_of_documents_do_not_have_is_named(kafka, opensearch, make_topic, produce):
    """The repair that a note recommends lost all records of the next runs, which said that they were written."""
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic, key_ignore="false")
    sink.config["key.converter"] = STRINGS
    produce(topic, rows("old", 40))
    assert sink.run().records == 40
    sink.config |= {"external.version.header": "rev", "header.converter": STRINGS}
    for n in range(2):
        produce(topic, rows("new", headers=[("rev", b"11")]))
        report = sink.run()
        assert len(named(report, f"Documents of {topic} in {sink.bucket} had keys as ids, and offsets")) == 1 - n
        (note,) = named(report, "versions of another kind")
        assert note.startswith(f"5 records were NOT written to {sink.bucket}, and counted as filtered")
        assert (report.records, report.filtered) == (0, 5)
    assert {one["v"] for one in sink.documents().values()} == {"old"}


def test_versions_that_have_counted_upserts_are_named(kafka, opensearch, make_topic, produce):
    """As many upserts as records of a partition: the next offset is the version of the document."""
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic, key_ignore="false", write_method="upsert")
    sink.config["key.converter"] = STRINGS
    produce(topic, [row for n in range(20) for row in rows(n, 1)])
    assert sink.run().records == 20
    sink.config["write.method"] = "insert"
    produce(topic, rows(99, 1))
    report = sink.run()
    assert len(named(report, "had keys as ids, and versions that count the upserts at the last run")) == 1
    assert len(named(report, "versions of another kind")) == report.filtered == 1
    assert [one["v"] for one in sink.documents().values()] == [19]


def test_ids_of_another_kind_are_named(kafka, opensearch, make_topic, produce):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    sink.config["key.converter"] = STRINGS
    found = []
    for ignores in ("true", "false", "false"):
        sink.config["key.ignore"] = ignores
        produce(topic, rows(1))
        found.append(named(sink.run(), "The documents of before keep their ids"))
    assert [len(notes) for notes in found] == [0, 1, 0] and len(sink.documents()) == 10


def test_index_that_another_one_replaces_in_the_middle_of_a_topic_is_named(kafka, opensearch, make_topic, produce):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    produce(topic, rows(1))
    assert named(sink.run(), "earlier runs") == []
    other = f"{sink.bucket}-v2"
    assert opensearch.request("PUT", f"/{other}", {"settings": {"number_of_replicas": 0}})[0] == 200
    sink.config["topic.to.external.resource.mapping"] = f"{topic}:{other}"
    produce(topic, rows(2, 2))
    (note,) = named(sink.run(), "which earlier runs have not written")
    assert f"they went to {sink.bucket}." in note and f"{topic}-0 from offset 5 on" in note
    assert len(documents(opensearch, other)) == 2
    produce(topic, rows(3, 1))
    assert named(sink.run(), "earlier runs") == []


def test_index_of_each_day_is_no_missing_one_unless_it_was_there(kafka, opensearch, make_topic, produce):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic)
    sink.config |= {
        "external.resource.usage": "DISABLED",
        "topic.to.external.resource.mapping": None,
        "transforms": "day",
        "transforms.day.type": "org.apache.kafka.connect.transforms.TimestampRouter",
        "transforms.day.topic.format": "${topic}-${timestamp}",
        "transforms.day.timestamp.format": "yyyy",
    }

    def missing(year):
        produce(topic, rows(year, 2, timestamp_ms=(year - 1970) * 31_557_600_000 + 10**10))
        return named(sink.run(), "was missing and was created")

    assert missing(2020) == [] and missing(2021) == []
    assert len(documents(opensearch, f"{topic}-2021")) == 2
    assert opensearch.request("DELETE", f"/{topic}-2021")[0] == 200
    assert len(missing(2021)) == 1


def test_list_of_topics_takes_names_after_transformations(kafka, opensearch, make_topic, produce):
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic, key_ignore="false", topic_key_ignore=topic)
    sink.config |= {
        "key.converter": STRINGS,
        "topic.to.external.resource.mapping": f"shop-{topic}:{sink.bucket}",
        "transforms": "name",
        "transforms.name.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.name.regex": "(.*)",
        "transforms.name.replacement": "shop-$1",
    }
    produce(topic, rows(1, 10, 5))
    (note,) = named(sink.run(), "has no effect")
    assert note.startswith(f"topic.key.ignore has {topic}, ") and f"the topic shop-{topic}," in note
    assert len(sink.documents()) == 5
    sink.config["topic.key.ignore"] = f"shop-{topic}"
    produce(topic, rows(1, 1))
    assert named(sink.run(), "has no effect") == []


TO_JSON = {"key.converter": "org.apache.kafka.connect.json.JsonConverter", "key.converter.schemas.enable": "false"}
TO_FIELD = {
    "transforms": "key,id",
    "transforms.key.type": "org.apache.kafka.connect.transforms.ValueToKey",
    "transforms.key.fields": "v",
    "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
    "transforms.id.field": "v",
}


@pytest.mark.parametrize("changes", [TO_JSON, TO_FIELD], ids=["converter", "transformations"])
@pytest.mark.parametrize("method", ["insert", "upsert"])
def test_change_of_what_makes_keys_is_named_once(kafka, opensearch, make_topic, produce, changes, method):
    """Each key got a second document, and the first one stayed as it was: no run said so."""
    topic = make_topic(partitions=1)
    sink = search_sink(kafka, opensearch, topic, key_ignore="false", write_method=method)
    sink.config["key.converter"] = STRINGS
    messages = [(0, json.dumps(f"k{n}"), json.dumps({"v": n})) for n in range(3)]
    found = []
    for more in ({}, {}, changes, {}, {"read.timeout.ms": "5000"}):
        sink.config |= more
        produce(topic, messages)
        found.append(named(sink.run(), f"What makes the ids of the documents of {topic} in {sink.bucket} was changed"))
    assert [len(notes) for notes in found] == [0, 0, 1, 0, 0] and len(sink.documents()) == 6


@pytest.mark.parametrize("columns", [True, False])
@pytest.mark.parametrize("method", ["insert", "upsert"])
def test_topic_of_the_same_name_in_another_cluster_is_named(
    kafka, upstream_kafka, opensearch, unique_name, method, columns
):
    """Its documents have the ids of the others, which were lost without a note."""
    notes, index, more = [], "", {}
    if not columns:
        more = {"transforms": "h", "transforms.h.type": "org.apache.kafka.connect.transforms.InsertHeader"}
        more |= {"transforms.h.header": "a", "transforms.h.value.literal": "b"}
    for broker, count in ((kafka, 5), (upstream_kafka, 3)):
        create_topic(broker.bootstrap, unique_name)
        sink = search_sink(broker, opensearch, unique_name, key_ignore="true", write_method=method, **more)
        sink.bucket = index = index or sink.bucket
        TopicProducer(broker.bootstrap)(unique_name, [(0, None, json.dumps({"v": count})) for _ in range(count)])
        notes.append(named(sink.run(), "written over documents"))
    assert notes[0] == [] and len(notes[1]) == 1
    assert notes[1][0].startswith(f"3 records were written over documents that {index} had with the same ids")
    assert notes[1][0].endswith(f"The first was {unique_name}-0@0.")


@pytest.mark.parametrize("ignores", ["true", "false"])
def test_deletions_that_no_document_can_have_are_named(kafka, opensearch, make_topic, produce, ignores):
    topic = make_topic()
    sink = search_sink(kafka, opensearch, topic, key_ignore=ignores, behavior_on_null_values="delete")
    sink.config["key.converter"] = STRINGS
    produce(topic, [(0, "k", '{"v": 1}'), (0, "k", None)])
    report = sink.run()
    assert len(named(report, "behavior.on.null.values=delete has no effect")) == (ignores == "true")
    assert len(sink.documents()) == (ignores == "true")
