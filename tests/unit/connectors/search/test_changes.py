"""What is said about a topic with more partitions or another id, by what the ids of documents are."""

from __future__ import annotations

import pytest

from airflow_connect.api.cluster_facts import TopicChange
from airflow_connect.api.offsets import TopicPartition
from airflow_connect.connectors.search.connector import ElasticsearchSinkConnector
from airflow_connect.planning.planner import LogState, Memory
from airflow_connect.runtime.driver.sink.changed_topics import changed_topics

GROWN, RECREATED = TopicChange("t", 1, 3, False), TopicChange("t", 2, 2, True)
BASE = {
    "name": "n",
    "connector.class": "ElasticsearchSinkConnector",
    "topics": "t",
    "connection.url": "http://search:9200",
}


def notes(change: TopicChange, **config: str) -> list[str]:
    connector = ElasticsearchSinkConnector()
    connector.config = {**BASE, **{key.replace("_", "."): value for key, value in config.items()}}
    return list(connector.notes_on_changes([change]))


def test_keys_as_ids_depend_on_partitions_and_the_topic() -> None:
    (grown,) = notes(GROWN, key_ignore="false")
    assert grown.startswith(
        "Topic t has 3 partitions, and had 1 at the last commit. The ids of its documents are the keys"
    )
    (recreated,) = notes(RECREATED, key_ignore="false")
    assert recreated.startswith("Topic t was deleted and created again") and "before: 2, now: 2" in recreated


def test_offsets_as_ids_depend_on_the_topic_only() -> None:
    assert notes(GROWN, key_ignore="true") == []
    (recreated,) = notes(RECREATED, key_ignore="true")
    assert "its records replace documents of the old topic with the same ids" in recreated


@pytest.mark.parametrize("change", [GROWN, RECREATED])
def test_versions_of_a_header_depend_on_neither(change: TopicChange) -> None:
    assert notes(change, key_ignore="false", external_version_header="v") == []


STREAM = {"data_stream_type": "logs", "data_stream_dataset": "d"}
KEYS = {"key_ignore": "false"}


@pytest.mark.parametrize(
    ("config", "change", "expected"),
    [
        (KEYS | {"write_method": "upsert"}, GROWN, "no order between partitions"),
        (KEYS | STREAM, GROWN, "keeps the record of a key that comes first"),
        (KEYS | STREAM, RECREATED, "keeps the record of a key that comes first"),
        ({"key_ignore": "true"} | STREAM, RECREATED, "is NOT written, although it counts as written"),
    ],
)
def test_documents_without_versions_are_told_apart(config: dict[str, str], change: TopicChange, expected: str) -> None:
    (note,) = notes(change, **config)
    assert expected in note and "is below the version" not in note


@pytest.mark.parametrize(
    ("config", "change"),
    [
        (KEYS | {"write_method": "upsert"}, RECREATED),
        ({"key_ignore": "true"} | STREAM, GROWN),
        ({"key_ignore": "true", "key_ignore_id_strategy": "none"}, RECREATED),
        (KEYS | {"topic_key_ignore": "t"}, GROWN),
    ],
)
def test_nothing_is_said_where_nothing_follows(config: dict[str, str], change: TopicChange) -> None:
    assert notes(change, **config) == []


def test_changes_are_those_of_topics_that_were_committed() -> None:
    def places(**counts: int) -> dict[TopicPartition, int]:
        return {TopicPartition(topic, n): 0 for topic, count in counts.items() for n in range(count)}

    memory = Memory(places(same=2, grown=1, other=2, gone=1), {"same": "a", "grown": "b", "other": "c"}, 0)
    log = LogState(
        earliest=places(same=2, grown=3, other=2, new=5), end={}, committed={},
        topic_ids={"same": "a", "grown": "b", "other": "C", "new": "n"},
    )  # fmt: skip
    assert changed_topics(log, memory) == (TopicChange("grown", 1, 3, False), TopicChange("other", 2, 2, True))
